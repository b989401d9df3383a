/*
 * test_winograd.c - Winograd convolution against the one by its definition, at sizes for which
 * `ref` would take minutes: many channels, whose weights are transformed in groups, and many tiles,
 * which are processed in chunks. And the same bits for any number of threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "core/isa.h"
#include "core/mem.h"
#include "core/rng.h"
#include "emulated.h"

#define EMULATED 1000000000 /* products of a size that qemu computes in minutes */

typedef struct size {
    int64_t n, in, out, h, w, padding, kernel;
} size;

/* Tensors of a convolution: y and dx are in blocks of channels. */
typedef struct conv {
    co_conv2d_attr attr;
    co_tensor x, y, dy, dx;
    co_call call;
} conv;

static co_tensor make(uint32_t item, int ndim, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const co_rng rng = {.seed = 5, .stream = CO_RNG_TEST, .item = item};
    co_tensor tensor = {.shape = {.ndim = ndim, .dim = {a, b, c, d}}, .dtype = CO_F32};
    const size_t n = (size_t)co_shape_count(&tensor.shape);

    tensor.bytes = n * sizeof(float);
    tensor.data = co_calloc_aligned(n, sizeof(float));
    assert_non_null(tensor.data);
    co_rng_normal(tensor.data, &rng, 0, n);
    return tensor;
}

static void open_conv(conv *c, const size *s, bool direct, int threads)
{
    const co_kernel *kernel = direct ? &co_cpu_direct_conv : &co_cpu_winograd;
    const int64_t oh = s->h + 2 * s->padding - s->kernel + 1;
    const int64_t ow = s->w + 2 * s->padding - s->kernel + 1;
    co_call *call = &c->call;

    *c = (conv){.attr = {.out = s->out, .groups = 1, .bias = true}};
    for (int i = 0; i < 2; i++) {
        c->attr.k[i] = s->kernel;
        c->attr.s[i] = c->attr.d[i] = 1;
        c->attr.p[i] = s->padding;
    }
    c->x = make(1, 4, s->n, s->in, s->h, s->w);
    c->y = make(2, 4, s->n, s->out, oh, ow);
    c->dy = make(3, 4, s->n, s->out, oh, ow);
    c->dx = make(4, 4, s->n, s->in, s->h, s->w);
    *call = (co_call){
        .op = &co_op_conv2d,
        .name = "conv",
        .attr = &c->attr,
        .training = true,
        .threads = threads,
        .direct_convolution = direct,
        .n_in = 1,
        .n_out = 1,
        .n_param = 2,
        .in = {&c->x},
        .out = {&c->y},
        .grad_in = {&c->dx},
        .grad_out = {&c->dy},
        .param = {make(5, 4, s->out, s->in, s->kernel, s->kernel), make(6, 1, s->out, 0, 0, 0)},
        .grad_param = {make(7, 4, s->out, s->in, s->kernel, s->kernel),
                       make(8, 1, s->out, 0, 0, 0)},
        .kernel = kernel};
    call->self = co_calloc_aligned(1, kernel->self_size);
    assert_non_null(call->self);
    assert_int_equal(kernel->plan(call), CO_OK);
    assert_int_equal(kernel->plan_backward(call), CO_OK);
    call->scratch = co_calloc_aligned(call->scratch_bytes, 1);
    assert_non_null(call->scratch);
    if (kernel->bind)
        assert_int_equal(kernel->bind(call), CO_OK);
}

static void run_conv(conv *c)
{
    co_run run = {.accumulate = false};
    const co_kernel *kernel = c->call.kernel;

    assert_int_equal(kernel->forward(&c->call, &run), CO_OK);
    assert_int_equal(kernel->backward(&c->call, &run), CO_OK);
    run.accumulate = true;
    assert_int_equal(kernel->backward(&c->call, &run), CO_OK);
}

static void close_conv(conv *c)
{
    co_tensor *all[] = {&c->x,
                        &c->y,
                        &c->dy,
                        &c->dx,
                        &c->call.param[0],
                        &c->call.param[1],
                        &c->call.grad_param[0],
                        &c->call.grad_param[1]};

    if (c->call.kernel->fini)
        c->call.kernel->fini(&c->call);
    co_free(c->call.self);
    co_free(c->call.scratch);
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        co_free(all[i]->data);
}

/* Bits where `tolerance` is 0; else it is relative to the magnitude of the tensor's values. */
static void compare(const char *what, const co_tensor *got, const co_tensor *want, double tolerance)
{
    const float *a = got->data, *b = want->data;
    const size_t n = (size_t)co_shape_count(&want->shape);
    double squares = 0, worst = 0;

    if (tolerance == 0) {
        assert_memory_equal(a, b, n * sizeof(float));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        squares += (double)b[i] * (double)b[i];
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
    }
    if (!(worst <= tolerance * sqrt(squares / (double)n)))
        fail_msg("%s: off by %.3g, values of %.3g", what, worst, sqrt(squares / (double)n));
}

static void compare_all(const conv *got, const conv *want, double tolerance)
{
    compare("y", &got->y, &want->y, tolerance);
    compare("dx", &got->dx, &want->dx, tolerance);
    compare("dw", &got->call.grad_param[0], &want->call.grad_param[0], tolerance);
    compare("db", &got->call.grad_param[1], &want->call.grad_param[1], tolerance);
}

/* Of the definition, without padding. */
static int64_t products_of(const size *s)
{
    return s->n * s->in * s->out * s->h * s->w * s->kernel * s->kernel;
}

static void winograd_large_sizes_equal_direct(void **state)
{
    static const size sizes[] = {
        {9, 384, 336, 7, 8, 1, 3},   /* weights in groups, the last smaller, in one chunk */
        {2, 336, 400, 45, 34, 0, 3}, /* too many tiles for that */
        {3, 16, 16, 61, 66, 2, 3},   /* chunks, the last smaller */
        {2, 48, 32, 30, 27, 1, 3},   {5, 256, 176, 9, 12, 2, 5}, /* the same with 5x5 taps */
        {2, 96, 128, 45, 34, 0, 5},  {3, 16, 16, 61, 66, 4, 5},  {2, 48, 32, 30, 27, 1, 5},
    };

    (void)state;
    if (co_isa_level() == CO_ISA_BASE) {
        print_message("skipped: this machine has no AVX2\n");
        skip();
    }
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        conv direct, own, threads;
        const char *why;

        if (is_emulated() && products_of(&sizes[i]) > EMULATED)
            continue;
        open_conv(&own, &sizes[i], false, 1);
        assert_true(co_cpu_winograd.supports(&own.call, &why));
        open_conv(&direct, &sizes[i], true, 1);
        run_conv(&direct);
        run_conv(&own);
        compare_all(&own, &direct, sizes[i].kernel == 3 ? 5e-5 : 2e-4);
        open_conv(&threads, &sizes[i], false, 2);
        run_conv(&threads);
        compare_all(&threads, &own, 0);
        close_conv(&threads);
        close_conv(&direct);
        close_conv(&own);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(winograd_large_sizes_equal_direct)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
