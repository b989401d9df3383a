/*
 * test_kernels.c - kernels chosen by time: the faster one of each layer wins, layers that are
 * fused are judged together, and measuring changes nothing in the model but the choice.
 *
 * The kernels here are copies that take as long as they say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <cohort.h>

#include "backends/backends.h"
#include "core/clock.h"
#include "core/mem.h"
#include "model/kernels.h"
#include "model/model.h"

#define BATCH 4

static void spend(uint64_t us)
{
    const uint64_t end = co_clock_thread_ns() + us * 1000;

    while (co_clock_thread_ns() < end)
        continue;
}

static co_status slow_forward(co_call *call, const co_run *run)
{
    spend(300);
    return co_copy_forward(call, run);
}

/* Faster for the first layer, `a`, slower for the second. */
static co_status mixed_forward(co_call *call, const co_run *run)
{
    spend(strcmp(call->name, "a") == 0 ? 20 : 900);
    return co_copy_forward(call, run);
}

static bool refuse(const co_call *call, const char **why)
{
    (void)call;
    *why = "it takes nothing";
    return false;
}

/* Costs as much as it saves where the relu after it is no longer done in its call. */
static bool fuses_relu(const co_call *call)
{
    return strcmp(call->fused[0]->name, "relu") == 0 && !call->fused[1];
}

static co_status norm_forward(co_call *call, const co_run *run)
{
    spend(400);
    return co_copy_forward(call, run);
}

static co_status plain_norm_forward(co_call *call, const co_run *run)
{
    spend(200);
    return co_copy_forward(call, run);
}

#define KERNEL(id, of, ...)                                                                        \
    static const co_kernel id = {.op = of, .name = #id, .backward = co_copy_backward, __VA_ARGS__}

KERNEL(slow, "relu", .forward = slow_forward);
KERNEL(mixed, "relu", .forward = mixed_forward);
KERNEL(never, "relu", .forward = co_copy_forward, .supports = refuse);
KERNEL(fusing, "batchnorm", .forward = norm_forward, .fuses = fuses_relu);
KERNEL(plain, "batchnorm", .forward = plain_norm_forward);

static const co_kernel *const kernels[] = {&never, &slow, &mixed, NULL};
static const co_kernel *const norms[] = {&fusing, &plain, NULL};
static const co_backend ours = {.name = "ours", .kernels = kernels};
static const co_backend joined = {.name = "joined", .kernels = norms};
static const co_backend *const list[] = {&ours, &co_backend_ref, NULL};
static const co_backend *const fused_list[] = {&joined, &co_backend_ref, NULL};

/* Two activations of different shapes. */
#define TWO                                                                                        \
    "[{relu: {name: a}}, {maxpool: {kernel: 2}}, {relu: {name: b}}, flatten, {linear: {out: 3, "   \
    "name: fc}}]"
#define NORM "[{batchnorm: {name: bn}}, {relu: {name: act}}, flatten, {linear: {out: 3, name: fc}}]"

static co_model *make(const char *layers, const co_backend *const *backends)
{
    const co_model_options options = {
        .model = layers, .sample = {3, {2, 4, 4}}, .classes = 3, .threads = 1, .seed = 1};
    co_model *model = NULL;

    if (co_model_create(&model, &options) != CO_OK)
        fail_msg("%s", co_error_message());
    model->backends = backends;
    return model;
}

static int find(const co_model *model, const char *name)
{
    for (int i = 0; i < model->graph->n_node; i++)
        if (strcmp(model->graph->node[i].name, name) == 0)
            return i;
    fail_msg("no layer %s", name);
    return -1;
}

static void measure_faster_kernel_of_each_layer_wins(void **state)
{
    co_model *model = make(TWO, list);
    co_kernels_times times = {.report = NULL};
    char *text = NULL;

    (void)state;
    assert_int_equal(co_model_measure_kernels(&times, model, BATCH, 30), CO_OK);
    assert_ptr_equal(model->pick[find(model, "a")].kernel, &mixed);
    assert_ptr_equal(model->pick[find(model, "b")].kernel, &slow);
    assert_true(times.chosen_seconds < times.fixed_seconds);
    assert_int_equal(times.left, 0);
    assert_int_equal(
        co_kernels_write(&text, model,
                         &(co_kernels){.choice = CO_KERNELS_MEASURED, .seconds = 9, .batch = 4}),
        CO_OK);
    assert_string_equal(text, "{choice: measured, seconds: 9, batch: 4, layers: {a: ours/mixed, "
                              "maxpool1: ref, b: ours/slow, flatten3: ref, fc: ref, loss: ref}}");
    co_free(text);
    co_model_destroy(model);
}

/* The norm alone is faster in `plain`; with its relu, which then runs in 300 us, it is not. */
static void measure_fused_layers_are_judged_together(void **state)
{
    static const co_backend *const both[] = {&joined, &ours, &co_backend_ref, NULL};
    co_model *model = make(NORM, fused_list);
    co_kernels_times times = {.report = NULL};

    (void)state;
    assert_int_equal(co_model_measure_kernels(&times, model, BATCH, 30), CO_OK);
    assert_ptr_equal(model->pick[find(model, "bn")].kernel, &plain);
    model->backends = both;
    assert_int_equal(co_model_measure_kernels(&times, model, BATCH, 30), CO_OK);
    assert_ptr_equal(model->pick[find(model, "bn")].kernel, &fusing);
    assert_null(model->pick[find(model, "act")].kernel);
    co_model_destroy(model);
}

static void measure_without_time_is_fixed_choice(void **state)
{
    co_model *model = make(TWO, list);
    co_kernels_times times = {.report = NULL};

    (void)state;
    assert_int_equal(co_model_measure_kernels(&times, model, BATCH, 0), CO_OK);
    assert_ptr_equal(model->pick[find(model, "a")].kernel, &slow);
    assert_int_equal(times.tried, 0);
    assert_true(times.left > 0);
    co_model_destroy(model);
}

static void measure_leaves_weights_and_statistics(void **state)
{
    co_model *model = make(NORM, co_backends);
    const co_store *store = model->store;
    co_kernels_times times = {.report = NULL};
    float *before = co_calloc(store->n + store->n_buffer, sizeof(float));

    (void)state;
    assert_non_null(before);
    memcpy(before, store->param, store->n * sizeof(float));
    memcpy(before + store->n, store->buffer, store->n_buffer * sizeof(float));
    assert_int_equal(co_model_measure_kernels(&times, model, BATCH, 5), CO_OK);
    assert_memory_equal(before, store->param, store->n * sizeof(float));
    assert_memory_equal(before + store->n, store->buffer, store->n_buffer * sizeof(float));
    co_free(before);
    co_model_destroy(model);
}

/* In a plan of another batch the layer has the fixed choice. */
static void check_refusal_names_layer_and_others(void **state)
{
    co_model *model = make(TWO, list);
    co_config *config = NULL;
    co_plan *plan;

    (void)state;
    assert_int_equal(co_config_parse(&config, "{b: ours/never}", 15, "test"), CO_OK);
    assert_int_equal(co_model_set_kernels(model, co_config_root(config)), CO_OK);
    assert_int_equal(co_model_check_kernels(model, BATCH), CO_E_UNSUPPORTED);
    assert_string_equal(co_error_message(),
                        "layer b: `kernels` names ours/never, which cannot run it: it takes "
                        "nothing; here it can be ours/slow, ours/mixed, ref");
    assert_int_equal(co_model_plan(&plan, model, BATCH, true), CO_OK);
    assert_ptr_equal(co_plan_picked(plan, find(model, "b")).kernel, &slow);
    co_config_destroy(config);
    co_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(measure_faster_kernel_of_each_layer_wins),
        cmocka_unit_test(measure_fused_layers_are_judged_together),
        cmocka_unit_test(measure_without_time_is_fixed_choice),
        cmocka_unit_test(measure_leaves_weights_and_statistics),
        cmocka_unit_test(check_refusal_names_layer_and_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
