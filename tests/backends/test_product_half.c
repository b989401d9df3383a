/*
 * test_product_half.c - products of matrices of BF16 in blocks, by tiles in plain C, by AMX, by
 * pairs and by floats of AVX-512, against plain loops: sizes below and above each block, both
 * orders of both factors, bias, sums, results rounded or not; and the same bits with any number of
 * threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "backends/backends_test.h"
#include "backends/cpu/product_half.h"
#include "core/isa.h"
#include "gemm_half_plain.h"

#define MOST_THREADS 3

typedef struct product_case {
    int64_t m, n, k;
} product_case;

/* The last two: sums in several groups, and columns in several blocks. */
static const product_case cases[] = {{1, 1, 1},    {3, 5, 2},     {32, 32, 32},   {33, 47, 65},
                                     {97, 65, 40}, {140, 31, 70}, {35, 70, 2100}, {33, 1250, 530}};

static float widen(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* To nearest, ties to even. */
static uint16_t round_half(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* Numbers of BF16; as floats they are others, which rounding makes of them. */
static void *make_side(uint32_t item, int64_t n, bool floats)
{
    float *numbers = make_numbers(item, n);
    uint16_t *halves;

    if (floats)
        return numbers;
    halves = co_calloc((size_t)n, sizeof(*halves));
    assert_non_null(halves);
    for (int64_t i = 0; i < n; i++)
        halves[i] = round_half(numbers[i]);
    co_free(numbers);
    return halves;
}

static double element(const product_half_side *side, int64_t line, int64_t l)
{
    const int64_t at = side->columns ? l * side->step + line : line * side->step + l;
    const uint16_t half =
        side->floats ? round_half(((const float *)side->at)[at]) : ((const uint16_t *)side->at)[at];

    return (double)widen(half);
}

static void run(const product_half *p)
{
    const size_t own_step = (product_half_own_bytes(p) + 63) / 64 * 64;
    char *room = co_calloc_aligned(product_half_room_bytes(p), 1);
    char *own = co_calloc_aligned(own_step * MOST_THREADS, 1);

    assert_non_null(room);
    assert_non_null(own);
    product_half_run(p, room, own, own_step);
    co_free(room);
    co_free(own);
}

static void near(double got, double want, double size, int64_t k, bool half)
{
    const double allowed = 2e-7 * (double)(k + 8) + (half ? 0x1p-8 * size : 0);

    if (!(fabs(got - want) <= allowed))
        fail_msg("%.9g instead of %.9g", got, want);
}

static void check_value(const product_half *p, const float *before, int64_t i, int64_t j)
{
    const int64_t at = i * p->b.n + j;
    double want = p->add ? (double)before[at] : 0;

    for (int64_t l = 0; l < p->k; l++)
        want += element(&p->a, i, l) * element(&p->b, j, l);
    want += p->bias ? (double)p->bias[j] : 0;
    near(p->half ? (double)widen(((uint16_t *)p->c)[at]) : (double)((float *)p->c)[at], want,
         fabs(want), p->k, p->half);
}

/* Of the larger cases every seventh. */
static void check_values(const product_half *p, const float *before, const float *sums_before)
{
    const int64_t all = p->a.n * p->b.n, step = all > 10000 ? 7 : 1;

    for (int64_t i = 0; i < all; i += step)
        check_value(p, before, i / p->b.n, i % p->b.n);
    for (int64_t i = 0; p->sums && i < p->a.n; i++) {
        double sum = p->add_sums ? (double)sums_before[i] : 0;

        for (int64_t l = 0; l < p->k; l++)
            sum += element(&p->a, i, l);
        near((double)p->sums[i], sum, 0, p->k, false);
    }
}

/* Bits of `what`: 1: a's lines are columns, 2: b's are, 4: b is of floats, 8: c is rounded, 16: add
   or no bias. */
static void check(const gemm_half_loops *loops, const product_case *size, unsigned what)
{
    const bool half = what & 8, add = (what & 16) && !half;
    const size_t bytes = (size_t)(size->m * size->n) * (half ? sizeof(uint16_t) : sizeof(float));
    float *bias = make_numbers(3, size->n), *before = make_numbers(4, size->m * size->n);
    float *sums_before = make_numbers(5, size->m), *first = make_numbers(6, size->m * size->n);
    const int64_t m = size->m, n = size->n, k = size->k;
    product_half p = {.loops = loops,
                      .a = {make_side(1, m * k, false), m, what & 1 ? m : k, what & 1, false},
                      .b = {make_side(2, n * k, what & 4), n, what & 2 ? n : k, what & 2, what & 4},
                      .k = k,
                      .half = half,
                      .add = add,
                      .bias = what & 16 ? NULL : bias,
                      .add_sums = add};

    for (p.threads = 1; p.threads <= MOST_THREADS; p.threads += MOST_THREADS - 1) {
        p.c = make_numbers(4, m * n);
        p.sums = what & 1 ? make_numbers(5, m) : NULL;
        run(&p);
        if (p.threads == 1) {
            check_values(&p, before, sums_before);
            memcpy(first, p.c, bytes);
        }
        assert_memory_equal(first, p.c, bytes);
        co_free(p.c);
        co_free(p.sums);
    }
    co_free((void *)p.a.at);
    co_free((void *)p.b.at);
    co_free(bias);
    co_free(before);
    co_free(sums_before);
    co_free(first);
}

/* Rows of b are of floats. Large cases are with bias alone. */
static void check_all(const gemm_half_loops *loops)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (unsigned what = 0; what < 32; what++)
            if (what & 6 && (cases[i].k < 500 || !(what & 16)))
                check(loops, &cases[i], what);
}

static void product_half_in_plain_c_equals_sums(void **state)
{
    (void)state;
    check_all(&gemm_half_loops_plain);
}

static void product_half_by_amx_equals_sums(void **state)
{
    (void)state;
    if (!co_isa_has(CO_ISA_AMX)) {
        print_message("skipped: this CPU has no AMX\n");
        skip();
    }
#ifdef CO_KERNELS_X86
    check_all(&gemm_half_loops_amx);
#endif
}

static void product_half_by_avx512_equals_sums(void **state)
{
    (void)state;
    if (!co_isa_has(CO_ISA_AVX512_BF16)) {
        print_message("skipped: this CPU has no AVX-512 with bf16\n");
        skip();
    }
#ifdef CO_KERNELS_X86
    check_all(&gemm_half_loops_bf16);
    check_all(&gemm_half_loops_widened);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(product_half_in_plain_c_equals_sums),
        cmocka_unit_test(product_half_by_amx_equals_sums),
        cmocka_unit_test(product_half_by_avx512_equals_sums),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
