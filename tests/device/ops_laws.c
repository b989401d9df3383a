/* ops_laws.c - networks of the operator table on a device. */
#include "device/ops_laws.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bits.h"
#include "core/half.h"
#include "core/mem.h"
#include "device/device.h"
#include "ops/cases.h"
#include "tensor/values.h"

#define PASSES 2 /* in training; the second adds to the gradients of the first */
/* What an approximate exp or log may leave where the exact result is 0. */
#define FLOOR 2e-6F

typedef struct network {
    harness *h;
    const harness_mode *mode;
    const char *name;
    const ops_way *way;
    co_store *store;
    co_plan *plan;
} network;

/* Within the part of the largest value that the way allows, or bit by bit. */
static void check_values(const network *n, const char *what, const float *got, const float *want,
                         size_t count)
{
    const bool half = n->mode->precision.low != CO_F32;
    const float part = half ? n->way->half_tolerance : n->way->tolerance;
    float allowed = 0;

    for (size_t i = 0; i < count; i++)
        allowed = fabsf(want[i]) > allowed ? fabsf(want[i]) : allowed;
    allowed = allowed * part + (part > 0 ? FLOOR : 0);
    for (size_t i = 0; i < count; i++)
        if (allowed > 0 ? !(fabsf(got[i] - want[i]) <= allowed)
                        : !bits_are_same(&got[i], &want[i], sizeof(*got)))
            fail_msg("%s (batch %d, %s%s): %s[%zu] is %.9g, on the host %.9g", n->name,
                     (int)n->h->batch, n->mode->training ? "training" : "evaluation",
                     half ? ", 16 bits" : "", what, i, (double)got[i], (double)want[i]);
}

static void check_array(const network *n, co_store_array array, const char *what, const float *want,
                        size_t count)
{
    float *got = co_calloc(count ? count : 1, sizeof(*got));

    assert_non_null(got);
    assert_int_equal(co_store_read(n->store, array, 0, count, got), CO_OK);
    check_values(n, what, got, want, count);
    co_free(got);
}

/* As on the host: gradients hold NaN before. */
static void poison(const network *n)
{
    const size_t count = n->store->n;
    float *nan = co_calloc(count ? count : 1, sizeof(*nan));

    assert_non_null(nan);
    for (int p = 0; p < n->h->graph->n_param; p++) {
        const co_param *param = &n->h->graph->param[p];

        for (size_t e = 0; !param->spec.buffer && e < param->count; e++)
            nan[param->offset + e] = NAN;
    }
    assert_int_equal(co_store_write(n->store, CO_STORE_GRAD, 0, count, nan), CO_OK);
    co_free(nan);
}

static void open_network(network *n, co_device *device)
{
    const harness *h = n->h;
    const co_plan_options options = {.batch = h->batch,
                                     .training = n->mode->training,
                                     .backends = n->way->backends,
                                     .precision = n->mode->precision};

    assert_int_equal(co_store_create_on(&n->store, device, h->graph->n_store, h->graph->n_buffer),
                     CO_OK);
    assert_int_equal(co_store_write(n->store, CO_STORE_PARAM, 0, h->store->n, h->store->param),
                     CO_OK);
    assert_int_equal(
        co_store_write(n->store, CO_STORE_BUFFER, 0, h->store->n_buffer, h->store->buffer), CO_OK);
    poison(n);
    if (co_plan_create(&n->plan, h->graph, n->store, &options) != CO_OK)
        fail_msg("%s: %s", n->name, co_error_message());
}

static void feed(const network *n)
{
    const harness *h = n->h;

    for (int i = 0; i < h->graph->n_input; i++) {
        const co_graph_input *input = &h->graph->input[i];
        const co_var *var = &h->graph->var[input->var];
        const size_t bytes =
            (size_t)(h->batch * co_shape_count(&var->shape)) * co_dtype_size(var->dtype);
        const void *from = strcmp(input->name, CO_FIELD_LABEL) == 0    ? (const void *)h->label
                           : strcmp(input->name, CO_FIELD_TARGET) == 0 ? h->target
                                                                       : h->input;

        assert_int_equal(co_plan_feed(n->plan, input->name, from, bytes), CO_OK);
    }
    if (n->mode->training)
        assert_int_equal(co_plan_feed_samples(n->plan, h->sample, (uint64_t)h->batch), CO_OK);
}

/* As harness_run; the host waits once, after all passes. */
static void run(const network *n, int passes)
{
    co_step_given *given = co_values_given(n->store);
    co_run run = harness_run(n->h);

    given->step = run.values->given.step;
    given->samples = 1;
    assert_int_equal(co_values_send(n->store), CO_OK);
    run.values = n->store->values;
    run.sample = co_plan_samples(n->plan);
    for (int pass = 0; pass < passes; pass++) {
        run.accumulate = pass > 0;
        feed(n);
        assert_int_equal(co_plan_forward(n->plan, &run), CO_OK);
        if (n->mode->training)
            assert_int_equal(co_plan_backward(n->plan, &run, NULL, NULL), CO_OK);
    }
}

static void close_network(network *n)
{
    co_plan_destroy(n->plan);
    co_store_destroy(n->store);
    harness_destroy(n->h);
}

static void check_network(co_device *device, const ops_case *c, const harness_mode *mode,
                          const ops_way *way)
{
    network n = {.h = cases_create(c), .mode = mode, .way = way, .name = c->name};
    const float *output = NULL, *loss = NULL;
    harness_result want;

    if (harness_measure(&want, n.h, mode, mode->training) != CO_OK)
        fail_msg("%s: %s", c->name, co_error_message());
    open_network(&n, device);
    run(&n, mode->training ? PASSES : 1);
    if (co_plan_results(&output, &loss, n.plan) != CO_OK)
        fail_msg("%s: %s", c->name, co_error_message());
    check_values(&n, "output", output, want.out, want.n_out);
    check_values(&n, "loss", loss, want.loss, want.n_loss);
    check_array(&n, CO_STORE_GRAD, "gradient", want.grad, want.n_grad);
    check_array(&n, CO_STORE_BUFFER, "buffer", want.buffer, want.n_buffer);
    harness_result_free(&want);
    close_network(&n);
}

#define half_training(type)                                                                        \
    {                                                                                              \
        .training = true, .precision = {.low = type, .everything = true, .norm_params = true }     \
    }

static void end_with_loss(ops_case *c, char *net, size_t size, const ops_way *way)
{
    if (!way->loss || strstr(c->net, "loss") || strstr(c->net, "cross_entropy"))
        return;
    snprintf(net, size, "%s; %s", c->net, way->loss);
    c->net = net;
}

void ops_check_case(co_device *device, const ops_case *c, const ops_way *way, bool half)
{
    static const harness_mode modes[] = {
        {.training = false}, {.training = true}, half_training(CO_BF16), half_training(CO_F16)};
    ops_case used = *c;
    char net[512];

    end_with_loss(&used, net, sizeof(net), way);
    for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++)
        if (modes[m].precision.low == CO_F32 || way->all_half ||
            (half && modes[m].precision.low == CO_BF16))
            check_network(device, &used, &modes[m], way);
}

static void add_step(char *out, size_t size, const co_plan_step *step)
{
    const co_call *call = step->call;
    size_t n = strlen(out);

    n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " " : "", call->op->name);
    for (int i = 0; call->fused[i] && n < size; i++)
        n += (size_t)snprintf(out + n, size - n, "+%s", call->fused[i]->name);
    if (call->op->is_loss && co_dtype_is_half(call->in[0]->dtype) && n < size)
        n += (size_t)snprintf(out + n, size - n, " of 16 bits");
    if (step->gradient && call->chained && n < size)
        (void)snprintf(out + n, size - n, "<%s", call->chained->fused[0]->name);
}

/* The case's network for training with tensors of 16 bits. */
static void open_half(network *n, co_device *device, const ops_case *c, const ops_way *way)
{
    static const harness_mode mode = half_training(CO_BF16);
    ops_case used = *c;
    char net[512];

    end_with_loss(&used, net, sizeof(net), way);
    *n = (network){.mode = &mode, .way = way, .name = c->name};
    n->h = cases_create(&used);
    open_network(n, device);
}

void ops_write_steps(char *out, size_t size, co_device *device, const ops_case *c,
                     const ops_way *way)
{
    network n;

    open_half(&n, device, c, way);
    *out = '\0';
    for (int s = 0; s < co_plan_step_count(n.plan); s++) {
        co_plan_step step;

        co_plan_step_at(&step, n.plan, s);
        if (strcmp(step.call->op->name, "cast") != 0)
            add_step(out, size, &step);
    }
    close_network(&n);
}

void ops_write_kernel(char *out, size_t size, co_device *device, const ops_case *c,
                      const ops_way *way, const char *op)
{
    network n;

    open_half(&n, device, c, way);
    *out = '\0';
    for (int s = 0; s < co_plan_step_count(n.plan) && !*out; s++) {
        co_plan_step step;

        co_plan_step_at(&step, n.plan, s);
        if (strcmp(step.call->op->name, op) == 0)
            (void)snprintf(out, size, "%s", step.seen->kernel->name);
    }
    close_network(&n);
}

bool ops_rounds_filters(co_device *device, const ops_case *c, const ops_way *way)
{
    bool rounds = true;
    network n;

    open_half(&n, device, c, way);
    run(&n, 1);
    for (int p = 0; p < n.h->graph->n_param; p++) {
        const co_param *param = &n.h->graph->param[p];
        float *got = co_calloc(2 * param->count, sizeof(*got)), *rounded = got + param->count;

        assert_non_null(got);
        if (!param->spec.buffer && param->spec.shape.ndim == 4) {
            assert_int_equal(
                co_store_read(n.store, CO_STORE_GRAD, param->offset, param->count, got), CO_OK);
            co_half_nearest(rounded, got, param->count, CO_BF16);
            rounds = rounds && memcmp(got, rounded, param->count * sizeof(*got)) == 0;
        }
        co_free(got);
    }
    close_network(&n);
    return rounds;
}

static bool is_named(const ops_case *c, const char *const *words)
{
    for (; words && *words; words++)
        if (strstr(c->net, *words) || strstr(c->name, *words))
            return true;
    return false;
}

int ops_check_table(co_device *device, const ops_way *way)
{
    int n = 0;

    for (const ops_case *const *part = cases_all; *part; part++)
        for (const ops_case *c = *part; c->name; c++) {
            if (way->with && !is_named(c, way->with))
                continue;
            ops_check_case(device, c, way, (c - *part) % 4 == 0);
            n++;
        }
    return n;
}
