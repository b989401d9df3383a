/*
 * test_product.c - products of matrices in blocks, against plain loops: sizes below and above each
 * block, both orders of both factors, bias, sums; and the same bits with any number of threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "backends/backends_test.h"
#include "backends/cpu/product.h"

#define MOST_THREADS 3

typedef struct product_case {
    int64_t m, n, k;
} product_case;

static const product_case cases[] = {
    {1, 1, 1}, {3, 5, 2}, {14, 32, 16}, {15, 33, 17}, {97, 65, 40}, {200, 31, 515}, {7, 1061, 33},
};

static float element(const product_side *side, int64_t line, int64_t l)
{
    return side->columns ? side->at[l * side->step + line] : side->at[line * side->step + l];
}

static product_side make_side(uint32_t item, int64_t n, int64_t k, bool columns)
{
    return (product_side){make_numbers(item, n * k), n, columns ? n : k, columns};
}

static void run(const product *p)
{
    const size_t own_step = product_own_bytes(p->loops, p->k);
    char *room = co_calloc_aligned(product_room_bytes(p->loops, p->b.n, p->k), 1);
    char *own = co_calloc_aligned(own_step * MOST_THREADS, 1);

    assert_non_null(room);
    assert_non_null(own);
    product_run(p, room, own, own_step);
    co_free(room);
    co_free(own);
}

static void near(double got, double want, int64_t k)
{
    if (!(fabs(got - want) <= 2e-7 * (double)(k + 8)))
        fail_msg("%.9g instead of %.9g", got, want);
}

static void check_values(const product *p, const float *before, const float *sums_before)
{
    for (int64_t i = 0; i < p->a.n; i++) {
        double sum = sums_before && p->add_sums ? (double)sums_before[i] : 0;

        for (int64_t l = 0; l < p->k; l++)
            sum += (double)element(&p->a, i, l);
        if (p->sums)
            near((double)p->sums[i], sum, p->k);
        for (int64_t j = 0; j < p->b.n; j++) {
            double want = p->add ? (double)before[i * p->b.n + j] : 0;

            for (int64_t l = 0; l < p->k; l++)
                want += (double)element(&p->a, i, l) * (double)element(&p->b, j, l);
            near((double)p->c[i * p->b.n + j], want + (p->bias ? (double)p->bias[j] : 0), p->k);
        }
    }
}

/* Bits of `what`: 1: a's lines are columns, 2: b's are, 4: add, else bias. */
static void check(const gemm_loops *loops, const product_case *size, unsigned what)
{
    const bool add = what & 4;
    float *bias = make_numbers(3, size->n), *before = make_numbers(4, size->m * size->n);
    float *sums_before = make_numbers(5, size->m), *first = make_numbers(6, size->m * size->n);
    product p = {.loops = loops,
                 .a = make_side(1, size->m, size->k, what & 1),
                 .b = make_side(2, size->n, size->k, what & 2),
                 .k = size->k,
                 .add = add,
                 .bias = add ? NULL : bias,
                 .add_sums = add};

    for (p.threads = 1; p.threads <= MOST_THREADS; p.threads++) {
        p.c = make_numbers(4, size->m * size->n);
        p.sums = make_numbers(5, size->m);
        run(&p);
        if (p.threads == 1) {
            check_values(&p, before, sums_before);
            memcpy(first, p.c, (size_t)(size->m * size->n) * sizeof(float));
        }
        assert_memory_equal(first, p.c, (size_t)(size->m * size->n) * sizeof(float));
        co_free(p.c);
        co_free(p.sums);
    }
    co_free((float *)p.a.at);
    co_free((float *)p.b.at);
    co_free(bias);
    co_free(before);
    co_free(sums_before);
    co_free(first);
}

static void product_any_size_and_order_equals_sums(void **state)
{
    static const gemm_loops *const all[] = {KERNELS_LIST(gemm_loops, NULL)};

    (void)state;
    for (const gemm_loops *const *loops = all + kernels_too_new(); *loops; loops++)
        for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
            for (unsigned what = 0; what < 8; what++)
                check(*loops, &cases[i], what);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(product_any_size_and_order_equals_sums),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
