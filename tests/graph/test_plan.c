/*
 * test_plan.c - compiling a graph: shared memory changes no result, gradient ranges are reported in
 * order, a step allocates nothing, every failed allocation is handled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/backends.h"
#include "core/config.h"
#include "core/mem.h"
#include "core/rng.h"
#include "graph/plan.h"
#include "ops/ops.h"

#define BATCH 5

static int add(co_graph *graph, const char *op, const char *name, const char *text, int a, int b)
{
    const co_op *found = co_op_find(op);
    const co_value *map = NULL;
    co_config *config = NULL;
    char attr[512] = "";
    int in[] = {a, b}, out = -1;

    assert_non_null(found);
    assert_true(found->attr_size <= sizeof(attr));
    assert_int_equal(co_config_parse(&config, "", 0, "test"), CO_OK);
    assert_int_equal(co_config_add_text(&map, config, text ? text : "{}"), CO_OK);
    assert_int_equal(co_keys_read(attr, found->keys, map, op, graph->arena), CO_OK);
    assert_int_equal(co_graph_add(&out, graph, found, name, attr, in), CO_OK);
    co_config_destroy(config);
    return out;
}

/* Convolutions, a residual, shared inputs, pooling, dropout and two linear layers. */
static co_graph *make_graph(void)
{
    const co_shape sample = {3, {2, 9, 9}};
    co_graph *g = NULL;
    const co_cross_entropy_attr loss = {0};
    int x, y;

    assert_int_equal(co_graph_create(&g), CO_OK);
    assert_int_equal(co_graph_add_input(&x, g, CO_FIELD_INPUT, &sample, CO_F32), CO_OK);
    x = add(g, "conv2d", "conv1", "{out: 6, kernel: 3, padding: 1}", x, 0);
    x = add(g, "batchnorm", "bn1", NULL, x, 0);
    x = add(g, "relu", NULL, NULL, x, 0);
    y = add(g, "conv2d", "conv2", "{out: 6, kernel: 3, padding: 1}", x, 0);
    y = add(g, "relu", NULL, NULL, y, 0);
    x = add(g, "add", NULL, NULL, x, y);
    x = add(g, "add", NULL, NULL, x, x);
    x = add(g, "maxpool", NULL, "{kernel: 2}", x, 0);
    x = add(g, "dropout2d", NULL, "{p: 0.25}", x, 0);
    x = add(g, "flatten", NULL, NULL, x, 0);
    x = add(g, "linear", "fc1", "{out: 7}", x, 0);
    x = add(g, "relu", NULL, NULL, x, 0);
    x = add(g, "linear", "fc2", "{out: 3}", x, 0);
    assert_int_equal(co_graph_add_loss(&x, g, &co_op_cross_entropy, NULL, &loss, x), CO_OK);
    assert_int_equal(co_graph_finish(g), CO_OK);
    return g;
}

static co_store *make_store(const co_graph *g)
{
    co_store *store = NULL;

    assert_int_equal(co_store_create(&store, g->n_store, g->n_buffer), CO_OK);
    co_graph_init(g, store, 7);
    return store;
}

static void fill(co_plan *plan)
{
    const co_rng rng = {.seed = 3, .stream = CO_RNG_TEST};
    int32_t *label = co_plan_input(plan, CO_FIELD_LABEL);

    assert_null(co_plan_input(plan, CO_FIELD_TARGET));
    co_rng_normal(co_plan_input(plan, CO_FIELD_INPUT), &rng, 0, BATCH * 2 * 9 * 9);
    for (int i = 0; i < BATCH; i++)
        label[i] = i % 3;
}

static const uint32_t samples[BATCH] = {4, 8, 15, 16, 23};
static const co_step_values values = {.given.step = 2, .grad_scale = 0.2f};
static const co_run run = {.seed = 5, .sample = samples, .values = &values};

typedef struct ranges {
    size_t end;
    int calls;
} ranges;

static co_status note_range(void *arg, size_t begin, size_t end)
{
    ranges *r = arg;

    assert_int_equal(begin, r->end);
    assert_true(end > begin);
    r->end = end;
    r->calls++;
    return CO_OK;
}

static void run_once(float *output, co_store *store, co_plan *plan)
{
    ranges r = {0, 0};

    fill(plan);
    assert_int_equal(co_plan_forward(plan, &run), CO_OK);
    memcpy(output, co_plan_output(plan), BATCH * 3 * sizeof(float));
    assert_int_equal(co_plan_backward(plan, &run, note_range, &r), CO_OK);
    assert_int_equal(r.end, store->n);
    assert_true(r.calls >= 5);
}

static void plan_reuse_changes_nothing(void **state)
{
    co_graph *g = make_graph();
    co_store *a = make_store(g), *b = make_store(g);
    co_plan_options options = {.batch = BATCH, .training = true, .backends = co_backends};
    co_plan *shared = NULL, *separate = NULL;
    float x[BATCH * 3], y[BATCH * 3];
    size_t used, unshared;

    (void)state;
    assert_int_equal(co_plan_create(&shared, g, a, &options), CO_OK);
    options.no_reuse = true;
    assert_int_equal(co_plan_create(&separate, g, b, &options), CO_OK);
    for (int round = 0; round < 3; round++) {
        run_once(x, a, shared);
        run_once(y, b, separate);
        assert_memory_equal(x, y, sizeof(x));
        assert_memory_equal(a->grad, b->grad, a->n * sizeof(float));
        assert_memory_equal(a->buffer, b->buffer, a->n_buffer * sizeof(float));
    }
    co_plan_memory(shared, &used, &unshared);
    assert_true(used < unshared * 3 / 4);
    co_plan_memory(separate, &used, &unshared);
    assert_int_equal(used, unshared);
    co_plan_destroy(shared);
    co_plan_destroy(separate);
    co_store_destroy(a);
    co_store_destroy(b);
    co_graph_destroy(g);
}

static void plan_step_allocates_nothing(void **state)
{
    co_graph *g = make_graph();
    co_store *store = make_store(g);
    const co_plan_options options = {.batch = BATCH, .training = true, .backends = co_backends};
    co_plan *plan = NULL;
    float out[BATCH * 3];

    (void)state;
    assert_int_equal(co_plan_create(&plan, g, store, &options), CO_OK);
    run_once(out, store, plan);
    co_mem_fail_at(0);
    run_once(out, store, plan);
    assert_int_equal(co_mem_count(), 0);
    co_plan_destroy(plan);
    co_store_destroy(store);
    co_graph_destroy(g);
}

static void plan_survives_every_failed_allocation(void **state)
{
    co_graph *g = make_graph();
    co_store *store = make_store(g);
    const co_plan_options options = {.batch = BATCH, .training = true, .backends = co_backends};
    uint64_t k = 0;
    co_status st;

    (void)state;
    do {
        co_plan *plan = NULL;

        co_mem_fail_at(++k);
        st = co_plan_create(&plan, g, store, &options);
        assert_true(st == CO_OK || st == CO_E_NOMEM);
        if (st == CO_OK)
            co_plan_destroy(plan);
    } while (st != CO_OK);
    co_mem_fail_at(0);
    assert_true(k > 5);
    co_store_destroy(store);
    co_graph_destroy(g);
}

static void plan_node_without_kernel_is_refused_with_reasons(void **state)
{
    static const co_kernel *const none[] = {NULL};
    static const co_backend empty = {.name = "empty", .kernels = none};
    static const co_backend *const backends[] = {&empty, NULL};
    co_graph *g = make_graph();
    co_store *store = make_store(g);
    const co_plan_options options = {.batch = BATCH, .backends = backends};
    co_plan *plan = NULL;

    (void)state;
    assert_int_equal(co_plan_create(&plan, g, store, &options), CO_E_UNSUPPORTED);
    assert_string_equal(co_error_message(),
                        "layer conv1: no backend can run conv2d (empty: has no kernel for it)");
    co_store_destroy(store);
    co_graph_destroy(g);
}

static bool plan_never(const co_call *call, const char **why)
{
    (void)call;
    *why = "it is too small";
    return false;
}

static bool plan_floats_alone(const co_call *call, const char **why)
{
    *why = "it has 16 bits";
    return call->in[0]->dtype == CO_F32;
}

/* Two backends built from ref's first kernel: one with `first` and `second`, one with `third`. */
typedef struct plan_three {
    co_kernel first, second, third;
    const co_kernel *two[3], *one[2];
    co_backend a, b;
    const co_backend *list[4];
} plan_three;

static void plan_make_three(plan_three *t)
{
    t->first = t->second = t->third = *co_backend_ref.kernels[0];
    t->first.name = "first";
    t->second.name = "second";
    t->two[0] = &t->first, t->two[1] = &t->second, t->two[2] = NULL;
    t->one[0] = &t->third, t->one[1] = NULL;
    t->a = (co_backend){.name = "a", .kernels = t->two};
    t->b = (co_backend){.name = "b", .kernels = t->one};
    t->list[0] = &t->a, t->list[1] = &t->b, t->list[2] = &co_backend_ref, t->list[3] = NULL;
}

static void check_choice(const plan_three *t, co_dtype low, const char *backend, const char *kernel,
                         const char *refusals)
{
    co_graph *g = make_graph();
    co_store *store = make_store(g);
    const co_plan_options options = {.batch = BATCH,
                                     .training = true,
                                     .backends = t->list,
                                     .precision = {.low = low, .everything = true}};
    co_plan *plan = NULL;
    const char *why;

    assert_int_equal(co_plan_create(&plan, g, store, &options), CO_OK);
    assert_string_equal(co_plan_backend(plan, 0, &why), backend);
    assert_string_equal(why, refusals);
    if (kernel)
        assert_string_equal(co_plan_kernel(plan, 0), kernel);
    else
        assert_null(co_plan_kernel(plan, 0));
    co_plan_destroy(plan);
    co_store_destroy(store);
    co_graph_destroy(g);
}

static void plan_kernels_of_one_op_are_tried_in_order(void **state)
{
    plan_three t;

    (void)state;
    plan_make_three(&t);
    check_choice(&t, CO_F32, "a", "first", "");
    t.first.supports = plan_never;
    check_choice(&t, CO_F32, "a", "second", "a first: it is too small");
    t.second.supports = plan_never;
    check_choice(&t, CO_F32, "b", NULL, "a first: it is too small; a second: it is too small");
}

static void plan_yielding_kernel_runs_low_precision_last(void **state)
{
    plan_three t;

    (void)state;
    plan_make_three(&t);
    t.first.supports = plan_floats_alone;
    t.first.half = 1u << CO_BF16;
    check_choice(&t, CO_BF16, "a", "first", "");
    t.first.yields_half = t.second.yields_half = true;
    check_choice(&t, CO_BF16, "a", "first", "");
    t.third.half = 1u << CO_BF16;
    check_choice(&t, CO_BF16, "b", NULL, "a first: computes in fp32; a second: computes in fp32");
    check_choice(&t, CO_F32, "a", "first", "");
}

static void graph_impossible_node_is_refused(void **state)
{
    const co_shape sample = {3, {2, 9, 9}};
    const co_shape deep = {CO_MAX_DIMS, {1, 1, 1, 1, 1}};
    co_graph *g = NULL;
    int input, x, out, in[2];

    (void)state;
    assert_int_equal(co_graph_create(&g), CO_OK);
    assert_int_equal(co_graph_add_input(&out, g, "deep", &deep, CO_F32), CO_E_USAGE);
    assert_int_equal(co_graph_add_input(&input, g, CO_FIELD_INPUT, &sample, CO_F32), CO_OK);
    assert_int_equal(co_graph_add_input(&out, g, CO_FIELD_INPUT, &sample, CO_F32), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "input 'input'"));
    assert_int_equal(co_graph_find_input(g, CO_FIELD_INPUT), input);
    assert_int_equal(co_graph_find_input(g, CO_FIELD_LABEL), -1);
    x = add(g, "conv2d", "conv1", "{out: 6, kernel: 3}", input, 0);
    in[0] = x;
    in[1] = input;
    assert_int_equal(co_graph_add(&out, g, &co_op_add, "sum", NULL, in), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "layer sum: "));
    assert_int_equal(co_graph_add(&out, g, &co_op_relu, "conv1", NULL, in), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "'conv1'"));
    co_graph_destroy(g);
}

static void graph_init_depends_on_the_seed_alone(void **state)
{
    co_graph *g = make_graph();
    co_store *a = make_store(g), *b = make_store(g);

    (void)state;
    assert_memory_equal(a->param, b->param, a->n * sizeof(float));
    co_graph_init(g, b, 8);
    assert_memory_not_equal(a->param, b->param, a->n * sizeof(float));
    assert_int_equal(co_graph_param_count(g),
                     (2 * 9 + 1) * 6 + 12 + (6 * 9 + 1) * 6 + (96 + 1) * 7 + 8 * 3);
    co_store_destroy(a);
    co_store_destroy(b);
    co_graph_destroy(g);
}

/* The type of the first convolution's output with these backends. The plan is not run. */
static co_dtype plan_conv_dtype(const co_graph *g, co_store *store,
                                const co_backend *const *backends, bool everything)
{
    const co_plan_options options = {
        .batch = BATCH,
        .training = true,
        .backends = backends,
        .precision = {.low = CO_BF16, .everything = everything},
    };
    co_dtype dtype = CO_U8;
    co_plan *plan = NULL;

    assert_int_equal(co_plan_create(&plan, g, store, &options), CO_OK);
    for (int i = 0; i < co_plan_step_count(plan); i++) {
        co_plan_step step;

        co_plan_step_at(&step, plan, i);
        if (strcmp(step.name, "conv1") == 0 && !step.backward)
            dtype = step.call->out[0]->dtype;
    }
    co_plan_destroy(plan);
    return dtype;
}

static bool plan_always(const co_call *call)
{
    return call->in[0]->dtype == CO_BF16;
}

/* If a preferred kernel computes in floats, its tensors stay floats. If there is no kernel of 16
   bits and none prefers floats, or the level demands 16 bits everywhere, tensors have 16 bits as
   requested. */
static void plan_kernel_preferring_fp32_keeps_fp32(void **state)
{
    const co_kernel *const of_ref = co_backend_ref.kernels[0];
    co_kernel wide = *of_ref, half = *of_ref;
    const co_kernel *const wide_kernels[] = {&wide, NULL}, *const half_kernels[] = {&half, NULL};
    const co_backend a = {.name = "wide", .kernels = wide_kernels};
    const co_backend b = {.name = "half", .kernels = half_kernels};
    const co_backend *const both[] = {&a, &b, &co_backend_ref, NULL};
    const co_backend *const turned[] = {&b, &a, &co_backend_ref, NULL};
    const co_backend *const alone[] = {&a, &co_backend_ref, NULL};
    co_graph *g = make_graph();
    co_store *store = make_store(g);

    (void)state;
    assert_string_equal(of_ref->op, "conv2d");
    half.half = 1u << CO_BF16;
    assert_int_equal(plan_conv_dtype(g, store, both, false), CO_F32);
    assert_int_equal(plan_conv_dtype(g, store, turned, false), CO_BF16);
    assert_int_equal(plan_conv_dtype(g, store, alone, false), CO_BF16);
    assert_int_equal(plan_conv_dtype(g, store, both, true), CO_BF16);
    half.prefers_fp32 = plan_always;
    assert_int_equal(plan_conv_dtype(g, store, turned, false), CO_F32);
    assert_int_equal(plan_conv_dtype(g, store, turned, true), CO_BF16);
    half.half = 1u << CO_F16;
    assert_int_equal(plan_conv_dtype(g, store, both, false), CO_F32);
    half.prefers_fp32 = NULL;
    assert_int_equal(plan_conv_dtype(g, store, both, false), CO_BF16);
    co_store_destroy(store);
    co_graph_destroy(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plan_reuse_changes_nothing),
        cmocka_unit_test(plan_step_allocates_nothing),
        cmocka_unit_test(plan_survives_every_failed_allocation),
        cmocka_unit_test(plan_kernel_preferring_fp32_keeps_fp32),
        cmocka_unit_test(plan_node_without_kernel_is_refused_with_reasons),
        cmocka_unit_test(plan_kernels_of_one_op_are_tried_in_order),
        cmocka_unit_test(plan_yielding_kernel_runs_low_precision_last),
        cmocka_unit_test(graph_impossible_node_is_refused),
        cmocka_unit_test(graph_init_depends_on_the_seed_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
