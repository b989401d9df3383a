/*
 * test_half.c - every op with tensors of 16 bits.
 *
 * The exact result is ref's with float tensors; the reference is ref's with tensors of 16 bits,
 * which computes each op in float and rounds its tensors and weights. All backends together,
 * including kernels that compute in BF16 where the CPU supports it, must be as close to both.
 * Errors are those of a whole tensor, as one more rounding can change a single ReLU or a single
 * maximum.
 *
 * Where two numbers of a pooling window round to the same value, the maximum moves and with it the
 * gradient, in the reference as well. Inputs of a case are shifted copies of each other, so such a
 * tie occurs many times and the gradient is off by far more than rounding explains. That is no
 * fault of a kernel: such a case is repeated with other numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cases.h"
#include "core/isa.h"
#include "half_loops.h"
#include "ops/ops.h"

/* What the table runs on: all backends, or before them kernels of one form of product. */
static const co_backend *const *half_backends = co_backends;

/* Relative to the tensor's norm, per layer, in steps between two numbers next to 1: each layer adds
   to the rounding errors of those before it. */
#define HALF_TOLERANCE 8
#define HALF_FLOOR     1e-3
/* Between the reference and all backends, of the output, in the same steps: independent of the
   number of layers, as both round at the same places. */
#define HALF_APART 3
/* A sample's loss is its output times a random row: of the few samples of a case, by chance, the
   errors are larger beside the losses than those of the outputs are beside the outputs. */
#define HALF_PROJECTED 2
#define HALF_FILLS     8

typedef struct half_type {
    co_dtype dtype;
    double step;
} half_type;

static double half_error(const float *got, const float *want, size_t n)
{
    double error = 0, size = 0;

    for (size_t i = 0; i < n; i++) {
        const double d = (double)got[i] - (double)want[i];

        error += d * d;
        size += (double)want[i] * (double)want[i];
    }
    return sqrt(error) / (sqrt(size) + HALF_FLOOR * sqrt((double)n));
}

static void half_check_tensor(const float *got, const float *want, size_t n, double allowed,
                              const char *where, const char *what)
{
    const double error = half_error(got, want, n);

    if (!(error <= allowed))
        fail_msg("%s: %s is off by %g of its length, and may be by %g", where, what, error,
                 allowed);
}

static void half_check(const harness *h, const harness_result *got, const harness_result *want,
                       double allowed, const char *where)
{
    half_check_tensor(got->out, want->out, want->n_out, allowed, where, "output");
    half_check_tensor(got->loss, want->loss, want->n_loss, HALF_PROJECTED * allowed, where, "loss");
    for (int p = 0; p < h->graph->n_param; p++) {
        const co_param *param = &h->graph->param[p];
        const float *g = (param->spec.buffer ? got->buffer : got->grad) + param->offset;
        const float *w = (param->spec.buffer ? want->buffer : want->grad) + param->offset;

        half_check_tensor(g, w, param->count, allowed, where, param->name);
    }
}

static bool half_is_bf16(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return (bits & 0xffff) == 0;
}

/* A bias before batchnorm has a gradient of 0, which 16 bits turn into noise. */
static bool half_is_noise(const ops_case *c)
{
    return strstr(c->net, "batchnorm") && !strstr(c->net, "bias: false");
}

static double half_worst_gradient(const harness *h, const harness_result *got,
                                  const harness_result *want)
{
    double worst = 0;

    for (int p = 0; p < h->graph->n_param; p++) {
        const co_param *param = &h->graph->param[p];
        const size_t at = param->offset;

        if (!param->spec.buffer)
            worst = fmax(worst, half_error(got->grad + at, want->grad + at, param->count));
    }
    return worst;
}

/* Finds the exact result and the reference for the first numbers whose rounding moves no maximum.
   If none of HALF_FILLS will do, half_check fails. */
static void half_define(harness_result *want, harness_result *defined, harness *h,
                        const ops_case *c, co_plan_precision precision, double allowed)
{
    const harness_mode truth = {.training = true};
    const harness_mode ref = {.training = true, .precision = precision};

    for (uint64_t fill = 1;; fill++) {
        assert_int_equal(harness_measure(want, h, &truth, true), CO_OK);
        if (harness_measure(defined, h, &ref, true) != CO_OK)
            fail_msg("%s: %s", c->name, co_error_message());
        if (!c->kinked || fill == HALF_FILLS || half_worst_gradient(h, defined, want) <= allowed)
            return;
        harness_result_free(want);
        harness_result_free(defined);
        harness_fill(h, 11 + fill);
    }
}

static void half_run(const ops_case *c, const half_type *type)
{
    const co_plan_precision precision = {.low = type->dtype, .everything = true};
    const harness_mode all = {.backends = half_backends, .training = true, .precision = precision};
    harness *h = cases_create(c);
    const double allowed = HALF_TOLERANCE * (1 + h->layers) * type->step;
    harness_result want, defined, got;
    char where[192];

    snprintf(where, sizeof(where), "%s in %s (batch %d)", c->name, co_dtype_name(type->dtype),
             (int)c->batch);
    h->values.grad_scale = 0.125f;
    half_define(&want, &defined, h, c, precision, allowed);
    if (harness_measure(&got, h, &all, true) != CO_OK)
        fail_msg("%s: %s", where, co_error_message());
    if (!half_is_noise(c)) {
        half_check(h, &defined, &want, allowed, where);
        half_check(h, &got, &want, allowed, where);
    }
    half_check_tensor(defined.out, want.out, want.n_out, allowed, where, "ref's output");
    half_check_tensor(got.out, want.out, want.n_out, allowed, where, "output");
    half_check_tensor(got.out, defined.out, defined.n_out, HALF_APART * type->step, where,
                      "output, against ref's,");
    if (half_error(defined.out, want.out, want.n_out) == 0 && strstr(c->net, "conv2d"))
        fail_msg("%s: nothing was rounded", where);
    harness_result_free(&want);
    harness_result_free(&defined);
    harness_result_free(&got);
    harness_destroy(h);
}

static void ops_in_bf16_and_fp16_agree_with_fp32(void **state)
{
    static const half_type types[] = {{CO_BF16, 0x1p-7}, {CO_F16, 0x1p-10}};

    (void)state;
    for (int t = 0; t < (half_backends == co_backends ? 2 : 1); t++)
        for (const ops_case *const *part = cases_all; *part; part++)
            for (const ops_case *c = *part; c->name; c++)
                half_run(c, &types[t]);
}

/* Sizes at which Winograd's algorithm runs BF16 tensors where the CPU supports it: many full tiles,
   partial tiles, of 4, 7 and 8 results each way, and weights transformed in groups. The tensors
   equal those of the direct kernels but for single roundings, so weights are rounded as well. A
   bias is rounded by kernels that compute in floats alone. */
#define WINOGRAD_TOLERANCE 4e-4

static const ops_case winograd_cases[] = {
    {"conv2d of many full tiles",
     32,
     {3, {64, 8, 8}},
     "conv2d {out: 128, kernel: 3, padding: 1}",
     false},
    {"conv2d of tiles with rests",
     20,
     {3, {64, 7, 9}},
     "conv2d {out: 80, kernel: 3, bias: false}",
     false},
    {"conv2d of many weights",
     40,
     {3, {256, 4, 4}},
     "conv2d {out: 512, kernel: 3, padding: 1, bias: false}",
     false},
    {"conv2d of tiles of 7",
     4,
     {3, {64, 14, 14}},
     "conv2d {out: 96, kernel: 3, padding: 1}",
     false},
    {"conv2d of tiles of 8 with rests",
     6,
     {3, {80, 15, 16}},
     "conv2d {out: 64, kernel: 3, padding: 1}",
     false},
    {"conv2d of 5x5 taps", 4, {3, {64, 13, 18}}, "conv2d {out: 96, kernel: 5, padding: 2}", false},
    {"conv2d of weights in parts",
     8,
     {3, {272, 7, 7}},
     "conv2d {out: 512, kernel: 3, padding: 1, bias: false}",
     false}};

static void winograd_bf16_layer_agrees_with_direct(void **state)
{
    const co_plan_precision precision = {.low = CO_BF16, .everything = true};
    const harness_mode direct = {
        .backends = co_backends, .training = true, .direct = true, .precision = precision};
    const harness_mode any = {.backends = co_backends, .training = true, .precision = precision};

    (void)state;
    for (size_t k = 0; k < sizeof(winograd_cases) / sizeof(winograd_cases[0]); k++) {
        harness *h = cases_create(&winograd_cases[k]);
        harness_result want, got;

        assert_int_equal(harness_measure(&want, h, &direct, true), CO_OK);
        assert_int_equal(harness_measure(&got, h, &any, true), CO_OK);
        half_check(h, &got, &want, WINOGRAD_TOLERANCE, winograd_cases[k].name);
        for (size_t i = 0; i < got.n_out; i++)
            assert_true(half_is_bf16(got.out[i]));
        harness_result_free(&want);
        harness_result_free(&got);
        harness_destroy(h);
    }
}

/* Shapes of residual networks: strips that end within a row, strided parts, several planes of
   channels and blocks of results, all of which the loops for tiles cut. */
static const ops_case tiles_cases[] = {
    {"conv2d of 7 x 7", 3, {3, {64, 7, 7}}, "conv2d {out: 96, kernel: 3, padding: 1}", false},
    {"conv2d of 14 x 14",
     2,
     {3, {32, 14, 14}},
     "conv2d {out: 64, kernel: 3, padding: 1, bias: false}",
     false},
    {"conv2d to half the size",
     2,
     {3, {64, 13, 14}},
     "conv2d {out: 64, kernel: 3, padding: 1, stride: 2, bias: false}",
     false},
    {"conv2d pointwise, 7 x 7", 3, {3, {96, 7, 7}}, "conv2d {out: 160, kernel: 1}", false},
    {"conv2d pointwise, strided",
     2,
     {3, {64, 14, 13}},
     "conv2d {out: 128, kernel: 1, stride: 2, bias: false}",
     false},
    {"linear", 40, {1, {72}}, "linear {out: 50}", false},
    {"linear of whole blocks",
     33,
     {1, {96}},
     "linear {out: 64, bias: false}; linear {out: 32}",
     false},
    {"attention of several blocks", 2, {2, {150, 120}}, "attention {heads: 1}", false},
    {"attention of several blocks both ways",
     1,
     {2, {161, 240}},
     "attention {heads: 2, causal: false}",
     false},
    {"attention of several blocks with shared keys",
     1,
     {2, {256, 256}},
     "attention {heads: 4, kv_heads: 2}",
     false},
    {"residual block",
     3,
     {3, {64, 8, 8}},
     "conv2d {out: 64, kernel: 1, bias: false}; keep; conv2d {out: 64, kernel: 3, padding: 1, "
     "bias: false}; batchnorm; relu; conv2d {out: 64, kernel: 3, padding: 1, bias: false}; "
     "batchnorm; add; relu; conv2d {out: 32, kernel: 1}; flatten; linear {out: 40}",
     true}};

static void tiles_layers_agree_with_fp32(void **state)
{
    static const half_type bf16 = {CO_BF16, 0x1p-7};

    (void)state;
    for (size_t i = 0; i < sizeof(tiles_cases) / sizeof(tiles_cases[0]); i++)
        half_run(&tiles_cases[i], &bf16);
}

/* Of a residual block the loops of the form run the convolutions, and batch norm reads their
   layout. Without this the comparison would pass for loops that are never chosen. */
static void kernels_of_the_form_run_a_residual_block(void **state)
{
    const harness_mode mode = {.backends = half_backends,
                               .training = true,
                               .precision = {.low = CO_BF16, .everything = true}};
    const size_t last = sizeof(tiles_cases) / sizeof(tiles_cases[0]) - 1;
    harness *h = cases_create(&tiles_cases[last]);
    co_plan *plan = NULL;

    (void)state;
    assert_int_equal(harness_plan(&plan, h, &mode), CO_OK);
    for (int i = 0; i < h->graph->n_node; i++) {
        const char *op = h->graph->node[i].op->name, *backend = co_plan_backend(plan, i, NULL);

        if (strcmp(op, "conv2d") == 0 || strcmp(op, "linear") == 0)
            assert_string_equal(backend, half_backends[0]->name);
        if (strcmp(op, "batchnorm") == 0 && co_isa_has(CO_ISA_AVX512_BF16))
            assert_string_equal(backend, co_backend_cpu.name);
    }
    co_plan_destroy(plan);
    harness_destroy(h);
}

/* The 1x1 convolutions of that block are computed by loops of our own where the CPU multiplies
   BF16, as tiles or as pairs. */
static void direct_bf16_layer_comes_before_onednn(void **state)
{
    const harness_mode mode = {.backends = co_backends,
                               .training = true,
                               .precision = {.low = CO_BF16, .everything = true}};
    const size_t last = sizeof(tiles_cases) / sizeof(tiles_cases[0]) - 1;
    harness *h = cases_create(&tiles_cases[last]);
    co_plan *plan = NULL;
    int found = 0;

    (void)state;
    assert_int_equal(harness_plan(&plan, h, &mode), CO_OK);
    for (int i = 0; i < h->graph->n_node && co_isa_has(CO_ISA_AVX512_BF16); i++) {
        const co_node *node = &h->graph->node[i];
        const co_conv2d_attr *a = node->attr;

        if (strcmp(node->op->name, "conv2d") != 0 || a->k[0] > 1)
            continue;
        assert_string_equal(co_plan_backend(plan, i, NULL), co_backend_cpu.name);
        found++;
    }
    assert_int_equal(found, co_isa_has(CO_ISA_AVX512_BF16) ? 2 : 0);
    co_plan_destroy(plan);
    harness_destroy(h);
}

/* Without an argument all backends as they are; else with kernels of that form of product first. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ops_in_bf16_and_fp16_agree_with_fp32),
                                       cmocka_unit_test(tiles_layers_agree_with_fp32),
                                       cmocka_unit_test(direct_bf16_layer_comes_before_onednn),
                                       cmocka_unit_test(winograd_bf16_layer_agrees_with_direct)};
    const struct CMUnitTest forms[] = {cmocka_unit_test(kernels_of_the_form_run_a_residual_block),
                                       cmocka_unit_test(tiles_layers_agree_with_fp32),
                                       cmocka_unit_test(ops_in_bf16_and_fp16_agree_with_fp32)};
    const half_loops *form;

    if (argc == 1)
        return cmocka_run_group_tests(tests, NULL, NULL);
    form = half_loops_find(argv[1]);
    if (!form) {
        printf("skipped: this CPU has no AVX-512 with bf16\n");
        return 77;
    }
    half_backends = form->backends;
    return cmocka_run_group_tests(forms, NULL, NULL);
}
