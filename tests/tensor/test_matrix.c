/*
 * test_matrix.c - matrix products of ext/vector.h: close to double sums, and the same bits with
 * every instruction set.
 */
#include <math.h>

#include "tensor/levels.h"

#define ROWS 37
#define COLS 53
#define RANK 6

/* M (ROWS, COLS), P (RANK, ROWS), Q (RANK, COLS), all one element after an aligned address. */
typedef struct numbers {
    float m[ROWS * COLS + 1], p[RANK * ROWS + 1], q[RANK * COLS + 1];
} numbers;

static void fill(numbers *x)
{
    levels_fill(x->m, ROWS * COLS + 1, 1);
    levels_fill(x->p, RANK * ROWS + 1, 2);
    levels_fill(x->q, RANK * COLS + 1, 3);
}

static co_vector_matrix shape_of(size_t rank)
{
    return (co_vector_matrix){.rows = ROWS, .cols = COLS, .rank = rank};
}

static void expect_near(float got, double want)
{
    assert_true(fabs((double)got - want) <= 1e-4 * (1 + fabs(want)));
}

static void check_products(const co_vector_ops *vector, size_t rank)
{
    const co_vector_matrix shape = shape_of(rank);
    numbers x, y;

    fill(&x);
    fill(&y);
    vector->matrix_times(NULL, y.p + 1, x.m + 1, x.q + 1, &shape);
    vector->matrix_transposed_times(NULL, y.q + 1, x.m + 1, x.p + 1, &shape);
    vector->matrix_add_outer(NULL, y.m + 1, -1, x.p + 1, x.q + 1, &shape);
    for (size_t k = 0; k < rank; k++) {
        for (size_t i = 0; i < ROWS; i++) {
            double sum = 0;

            for (size_t j = 0; j < COLS; j++)
                sum += (double)x.m[1 + i * COLS + j] * (double)x.q[1 + k * COLS + j];
            expect_near(y.p[1 + k * ROWS + i], sum);
        }
        for (size_t j = 0; j < COLS; j++) {
            double sum = 0;

            for (size_t i = 0; i < ROWS; i++)
                sum += (double)x.m[1 + i * COLS + j] * (double)x.p[1 + k * ROWS + i];
            expect_near(y.q[1 + k * COLS + j], sum);
        }
    }
    for (size_t i = 0; i < ROWS; i++)
        for (size_t j = 0; j < COLS; j++) {
            double sum = (double)x.m[1 + i * COLS + j];

            for (size_t k = 0; k < rank; k++)
                sum -= (double)x.p[1 + k * ROWS + i] * (double)x.q[1 + k * COLS + j];
            expect_near(y.m[1 + i * COLS + j], sum);
        }
}

static void matrix_products_equal_plain_sums(void **state)
{
    const co_vector_ops *vector[CO_ISA_LEVELS];
    const size_t levels = levels_list(vector);

    (void)state;
    for (size_t l = 0; l < levels; l++)
        for (size_t rank = 1; rank <= RANK; rank++)
            check_products(vector[l], rank);
}

static void work(numbers *x, const co_vector_ops *vector, const co_vector_matrix *shape)
{
    fill(x);
    vector->matrix_times(NULL, x->p + 1, x->m + 1, x->q + 1, shape);
    vector->matrix_orthonormalize(NULL, x->p + 1, shape);
    vector->matrix_transposed_times(NULL, x->q + 1, x->m + 1, x->p + 1, shape);
    vector->matrix_add_outer(NULL, x->m + 1, -1, x->p + 1, x->q + 1, shape);
}

static void matrix_levels_have_same_bits(void **state)
{
    const co_vector_ops *vector[CO_ISA_LEVELS];
    const size_t levels = levels_list(vector);

    (void)state;
    for (size_t rank = 1; rank <= RANK; rank++) {
        const co_vector_matrix shape = shape_of(rank);
        numbers first, x;

        work(&first, vector[0], &shape);
        for (size_t l = 1; l < levels; l++) {
            work(&x, vector[l], &shape);
            assert_memory_equal(&x, &first, sizeof(x));
        }
    }
}

static double dot(const float *a, const float *b)
{
    double sum = 0;

    for (size_t i = 0; i < ROWS; i++)
        sum += (double)a[i] * (double)b[i];
    return sum;
}

/* The third vector is the sum of the two before it. */
static void matrix_orthonormalize_spanned_vector_is_zero(void **state)
{
    const co_vector_matrix shape = shape_of(4);
    numbers x;

    (void)state;
    fill(&x);
    for (size_t i = 0; i < ROWS; i++)
        x.p[2 * ROWS + i] = x.p[i] + x.p[ROWS + i];
    co_vector_host()->matrix_orthonormalize(NULL, x.p, &shape);
    for (size_t a = 0; a < 4; a++)
        for (size_t b = 0; b < 4; b++)
            expect_near((float)dot(x.p + a * ROWS, x.p + b * ROWS), a == b && a != 2);
}

static void matrix_orthonormalize_infinity_makes_all_nan(void **state)
{
    const co_vector_matrix shape = shape_of(2);
    numbers x;

    (void)state;
    fill(&x);
    x.p[ROWS + 3] = INFINITY;
    co_vector_host()->matrix_orthonormalize(NULL, x.p, &shape);
    for (size_t i = 0; i < 2 * ROWS; i++)
        assert_true(isnan(x.p[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matrix_products_equal_plain_sums),
        cmocka_unit_test(matrix_levels_have_same_bits),
        cmocka_unit_test(matrix_orthonormalize_spanned_vector_is_zero),
        cmocka_unit_test(matrix_orthonormalize_infinity_makes_all_nan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
