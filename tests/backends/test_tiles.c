/*
 * test_tiles.c - operations on tiles: in plain C against sums in double precision, on every CPU; by
 * AMX against plain C, where the CPU has it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "backends/backends_test.h"

#define TILES_PLAIN
#define TILES_RUN tiles_run_plain
#include "tiles_run.h"

#define MOST_STRIDE 48 /* numbers: more than a row has */
#define MOST_A      (2 * TILES_ROWS * MOST_STRIDE)
#define ALL_B       (TILES_ROWS * 2 * TILES_NUMBERS)
#define MOST_SUMS   (2 * TILES_ROWS * 2 * TILES_FLOATS)

/* Operands, and what one form makes of them. */
typedef struct setup {
    uint16_t a[MOST_A], b[ALL_B];
    float begin[MOST_SUMS], sums[MOST_SUMS + 1];
} setup;

static float widen(uint16_t half)
{
    const uint32_t bits = (uint32_t)half << 16;
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Numbers of BF16 in (-1, 1); with `whole` from -8 to 8, whose sums are exact in any order. */
static void fill(uint16_t *to, uint32_t item, int64_t n, bool whole)
{
    float *from = make_numbers(item, n);

    for (int64_t i = 0; i < n; i++) {
        const float value = whole ? roundf(8 * from[i]) : from[i];
        uint32_t bits;

        memcpy(&bits, &value, sizeof(bits));
        to[i] = (uint16_t)(bits >> 16);
    }
    co_free(from);
}

static setup *make_setup(bool whole)
{
    setup *s = co_calloc(1, sizeof(*s));
    float *begin = make_numbers(3, MOST_SUMS);

    assert_non_null(s);
    fill(s->a, 1, MOST_A, whole);
    fill(s->b, 2, ALL_B, whole);
    for (int64_t i = 0; i < MOST_SUMS; i++)
        s->begin[i] = whole ? roundf(100 * begin[i]) : begin[i];
    co_free(begin);
    return s;
}

/* The result at row r and column n, and the sum of the absolute values. */
static double sum_up(double *size, const setup *s, bool add, int64_t r, int64_t n, int64_t stride)
{
    double sum = add ? (double)s->begin[r * 2 * TILES_FLOATS + n] : 0;

    *size = fabs(sum);
    for (int64_t k = 0; k < TILES_NUMBERS; k++) {
        const double each = (double)widen(s->a[r * stride + k]) *
                            (double)widen(s->b[(k / 2) * 2 * TILES_NUMBERS + 2 * n + k % 2]);

        sum += each;
        *size += fabs(each);
    }
    return sum;
}

static void check(tiles_run_fn run, int rows, int64_t stride, bool add, bool whole)
{
    const int64_t n = 2 * (int64_t)rows * 2 * TILES_FLOATS;
    setup *s = make_setup(whole);

    s->sums[n] = 7;
    run(s->sums, add ? s->begin : NULL, s->a, s->b, rows, 2 * stride);
    for (int64_t i = 0; i < n; i++) {
        double size;
        const double want = sum_up(&size, s, add, i / TILES_NUMBERS, i % TILES_NUMBERS, stride);

        if (!(fabs((double)s->sums[i] - want) <= (whole ? 0 : 4e-6 * size)))
            fail_msg("%d rows, number %d: %.9g instead of %.9g", rows, (int)i, (double)s->sums[i],
                     want);
    }
    assert_true(s->sums[n] == 7);
    co_free(s);
}

static void check_all(tiles_run_fn run)
{
    for (int rows = 1; rows <= TILES_ROWS; rows++)
        for (int way = 0; way < 8; way++)
            check(run, rows, way & 1 ? MOST_STRIDE : TILES_NUMBERS, way & 2, way & 4);
}

static void tiles_in_plain_c_sum_products(void **state)
{
    (void)state;
    check_all(tiles_run_plain);
}

static void tiles_by_amx_sum_products(void **state)
{
    (void)state;
    if (!tiles_run_find_amx()) {
        print_message("skipped: this CPU has no AMX\n");
        skip();
    }
    check_all(tiles_run_find_amx());
}

/* The order of sums is part of what plain C stands for. */
static void tiles_by_amx_have_the_bits_of_plain_c(void **state)
{
    const tiles_run_fn amx = tiles_run_find_amx();
    setup *s;
    float want[MOST_SUMS];

    (void)state;
    if (!amx) {
        print_message("skipped: this CPU has no AMX\n");
        skip();
        return;
    }
    s = make_setup(false);
    if (!s)
        return;
    tiles_run_plain(want, s->begin, s->a, s->b, TILES_ROWS, TILES_BYTES);
    amx(s->sums, s->begin, s->a, s->b, TILES_ROWS, TILES_BYTES);
    assert_memory_equal(s->sums, want, sizeof(want));
    co_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tiles_in_plain_c_sum_products),
                                       cmocka_unit_test(tiles_by_amx_sum_products),
                                       cmocka_unit_test(tiles_by_amx_have_the_bits_of_plain_c)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
