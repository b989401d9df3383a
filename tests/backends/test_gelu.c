/*
 * test_gelu.c - the loops of GELU of every level of instructions against the definition in double
 * precision, from where it is 0 to where it is its input.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "backends/backends_test.h"
#include "core/half.h"
#include "kernels/gelu/gelu.h"

#define COUNT     4099 /* no whole number of vectors */
#define ROOT_2_PI 0.79788456080286536

static const gelu_loops *const *find_all(void)
{
    static const gelu_loops *const all[] = {KERNELS_LIST(gelu_loops, &gelu_loops_basic, NULL)};

    return all + kernels_too_new();
}

/* Dense near 0, then up to 8e13. */
static float number(int i)
{
    const int step = i - COUNT / 2;
    const double x = step / 64.0;

    return (float)(fabs(x) < 16 ? x : copysign(exp(fabs(x)), x));
}

/* A value and its slope. */
static void define(double *y, double *slope, double x, bool by_tanh)
{
    const double below = by_tanh ? 1 / (1 + exp(-2 * ROOT_2_PI * (x + 0.044715 * x * x * x)))
                                 : 0.5 * erfc(-x * M_SQRT1_2);
    const double density = by_tanh
                               ? 2 * below * (1 - below) * ROOT_2_PI * (1 + 3 * 0.044715 * x * x)
                               : 0.5 * ROOT_2_PI * exp(-x * x / 2);

    *y = fabs(x) > 1e3 ? (x > 0 ? x : 0) : x * below;
    *slope = fabs(x) > 1e3 ? x > 0 : below + x * density;
}

static void check(float got, double want, float x, const char *what)
{
    if (!(fabs((double)got - want) <= 1e-6 * (1 + fabs(want))))
        fail_msg("%s of %.9g: %.9g instead of %.9g", what, (double)x, (double)got, want);
}

static void check_level(const gelu_loops *loops, bool by_tanh)
{
    static float x[COUNT], y[COUNT], dx[COUNT], dy[COUNT];

    for (int i = 0; i < COUNT; i++) {
        x[i] = number(i);
        dy[i] = i % 2 ? 1 : -2;
    }
    (by_tanh ? loops->tanh : loops->exact)(y, x, COUNT);
    (by_tanh ? loops->tanh_gradient : loops->exact_gradient)(dx, x, dy, COUNT);
    for (int i = 0; i < COUNT; i++) {
        double want, slope;

        define(&want, &slope, (double)x[i], by_tanh);
        check(y[i], want, x[i], "gelu");
        check(dx[i], slope * (double)dy[i], x[i], "gradient");
    }
}

static void gelu_of_any_number_equals_definition(void **state)
{
    (void)state;
    for (const gelu_loops *const *loops = find_all(); *loops; loops++) {
        check_level(*loops, false);
        check_level(*loops, true);
    }
}

#ifdef CO_KERNELS_X86
#define NUMBERS (1 << 16) /* of bf16 */

#define HALF_ULP (0.51 / 128)
#define LEAST    1e-34 /* less may be taken for 0 */

static void check_half(float got, double want, double slack, float x, const char *what)
{
    if (!(fabs((double)got - want) <= HALF_ULP * fabs(want) + slack + LEAST))
        fail_msg("%s of %.9g in bf16: %.9g instead of %.9g", what, (double)x, (double)got, want);
}

/* Slopes are a difference near -0.75; by the error function tails are within 1.5e-7 of 1. */
static void check_every(const float *x, const float *y, const float *dx, bool by_tanh)
{
    for (int i = 0; i < NUMBERS; i++) {
        const double tail = by_tanh ? 0 : 3e-7 * (1 + (double)fabsf(x[i]));
        double want, slope;

        if (!isfinite(x[i]))
            continue;
        define(&want, &slope, (double)x[i], by_tanh);
        check_half(y[i], want, tail, x[i], "gelu");
        check_half(dx[i], slope, 1e-3 * fabs(slope) + (fabsf(x[i]) < 1.5f ? 1e-4 : tail), x[i],
                   "gradient");
    }
}

static void check_bf16(bool by_tanh)
{
    static uint16_t x[NUMBERS], y[NUMBERS], dx[NUMBERS], dy[NUMBERS];
    static float wide[3][NUMBERS];

    for (int i = 0; i < NUMBERS; i++) {
        x[i] = (uint16_t)i;
        dy[i] = 0x3f80; /* 1 */
    }
    (by_tanh ? gelu_loops_bf16.tanh : gelu_loops_bf16.exact)(y, x, NUMBERS);
    (by_tanh ? gelu_loops_bf16.tanh_gradient : gelu_loops_bf16.exact_gradient)(dx, x, dy, NUMBERS);
    co_half_widen(wide[0], x, NUMBERS, CO_BF16);
    co_half_widen(wide[1], y, NUMBERS, CO_BF16);
    co_half_widen(wide[2], dx, NUMBERS, CO_BF16);
    check_every(wide[0], wide[1], wide[2], by_tanh);
}

static void gelu_of_every_bf16_number_equals_definition(void **state)
{
    (void)state;
    if (!co_isa_has(CO_ISA_AVX512_BF16))
        skip();
    check_bf16(false);
    check_bf16(true);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gelu_of_any_number_equals_definition),
#ifdef CO_KERNELS_X86
        cmocka_unit_test(gelu_of_every_bf16_number_equals_definition),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
