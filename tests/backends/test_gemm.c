/*
 * test_gemm.c - matrix products of linear layers, with every instruction set of this machine,
 * against plain loops: every tile size and vector remainder, and no writes outside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "backends/backends_test.h"
#include "kernels/gemm/gemm.h"

#define MOST_ROWS 15
#define MOST_K    35

static const gemm_loops *const *find_all(void)
{
    static const gemm_loops *const all[] = {KERNELS_LIST(gemm_loops, NULL)};

    return all + kernels_too_new();
}

static gemm_rows make_rows(uint32_t item, int64_t n, int64_t columns)
{
    return (gemm_rows){make_numbers(item, n * (columns + 1)), n, columns + 1};
}

static float at(const gemm_rows *rows, int64_t row, int64_t column)
{
    return rows->at[row * rows->step + column];
}

static void near(double got, double want, const char *what)
{
    if (!(fabs(got - want) <= 2e-5 * (1 + fabs(want))))
        fail_msg("%s: %.9g instead of %.9g", what, got, want);
}

/* mode 0: with bias, 1: without, 2: added to the previous contents. */
static void check_multiply(const gemm_loops *loops, int64_t n, int64_t o, int64_t k, int mode)
{
    gemm_rows x = make_rows(1, n, k), w = make_rows(2, o, k), y = make_rows(3, n, o);
    gemm_rows before = make_rows(3, n, o);
    float *bias = make_numbers(4, o);

    loops->multiply(&y, &x, &w, mode == 0 ? bias : NULL, k, mode == 2);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t j = 0; j < o; j++) {
            double want = mode == 0 ? (double)bias[j] : mode == 2 ? (double)at(&before, i, j) : 0;

            for (int64_t l = 0; l < k; l++)
                want += (double)at(&x, i, l) * (double)at(&w, j, l);
            near((double)at(&y, i, j), want, loops->name);
        }
        assert_true(at(&y, i, o) == at(&before, i, o));
    }
    co_free(x.at);
    co_free(w.at);
    co_free(y.at);
    co_free(before.at);
    co_free(bias);
}

static void gemm_multiply_any_size_equals_product(void **state)
{
    (void)state;
    for (const gemm_loops *const *l = find_all(); *l; l++)
        for (int64_t n = 1; n <= MOST_ROWS; n++)
            for (int64_t o = 1; o <= 9; o++)
                for (int64_t k = 1; k <= MOST_K; k++)
                    check_multiply(*l, n, o, k, (int)((n + o + k) % 3));
}

static void check_add_up(const gemm_loops *loops, int64_t rows, int64_t columns, int64_t l,
                         bool add)
{
    gemm_rows from = make_rows(5, l, columns), to = make_rows(6, rows, columns);
    gemm_rows before = make_rows(6, rows, columns);
    float *panel = make_numbers(7, l * loops->width), *number = make_numbers(8, l * rows);

    loops->pack(panel, loops->width, &from, columns);
    loops->add_up(&to, columns, number, panel, l, add);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            double want = add ? (double)at(&before, i, j) : 0;

            for (int64_t s = 0; s < l; s++)
                want += (double)number[s * rows + i] * (double)at(&from, s, j);
            near((double)at(&to, i, j), want, loops->name);
        }
        assert_true(at(&to, i, columns) == at(&before, i, columns));
    }
    co_free(from.at);
    co_free(to.at);
    co_free(before.at);
    co_free(panel);
    co_free(number);
}

static void gemm_add_up_any_size_equals_sum_of_rows(void **state)
{
    (void)state;
    for (const gemm_loops *const *l = find_all(); *l; l++)
        for (int64_t rows = 1; rows <= (*l)->rows; rows++)
            for (int64_t columns = 1; columns <= (*l)->width; columns++)
                for (int64_t depth = 1; depth <= 9; depth += 4)
                    check_add_up(*l, rows, columns, depth, (rows + columns) % 2 == 0);
}

static void check_turn(const gemm_loops *loops, int64_t rows, int64_t width, int64_t k)
{
    const gemm_rows from = make_rows(9, rows, k);
    float *to = make_numbers(10, k * width + loops->width);

    loops->turn(to, width, &from, k);
    for (int64_t l = 0; l < k; l++)
        for (int64_t i = 0; i < width; i++)
            assert_true(to[l * width + i] == (i < rows ? at(&from, i, l) : 0));
    co_free(from.at);
    co_free(to);
}

static void gemm_turn_any_size_equals_transpose(void **state)
{
    (void)state;
    for (const gemm_loops *const *l = find_all(); *l; l++)
        for (int64_t width = 1; width <= (*l)->width; width++)
            for (int64_t k = 1; k <= MOST_K; k += 2) {
                check_turn(*l, width, width, k);
                check_turn(*l, (width + 1) / 2, width, k);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gemm_turn_any_size_equals_transpose),
        cmocka_unit_test(gemm_multiply_any_size_equals_product),
        cmocka_unit_test(gemm_add_up_any_size_equals_sum_of_rows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
