/*
 * test_vector.c - ext/vector.h on the host: each instruction set of this machine against plain
 * loops, bit by bit, for all lengths around the vector width, at any alignment, with infinities and
 * NaNs.
 */
#include <float.h>
#include <math.h>

#include "bits.h"
#include "core/half.h"
#include "tensor/levels.h"

#define MOST  1100
#define ROOM  (MOST + 64)
#define TERMS 3

static const size_t lengths[] = {0,  1,  2,  3,  7,  8,   9,   15,  16,  17,   31,   32,
                                 33, 47, 63, 64, 65, 127, 511, 512, 513, 1024, 1031, MOST};
#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

/* Results and expected results, and arrays read; [0, at) and [at + n, ROOM) must not change. */
static float got[ROOM], want[ROOM], a[ROOM], b[ROOM];
static uint16_t half_got[ROOM], half_want[ROOM], half[TERMS * ROOM];

/* One call: implementation, offset, length. */
typedef struct spot {
    const co_vector_ops *vector;
    size_t at, n;
} spot;

static bool same_bits(float x, float y)
{
    return bits_are_same(&x, &y, sizeof(x)) || (isnan(x) && isnan(y));
}

static void expect_same(const spot *s, const char *what)
{
    for (size_t i = 0; i < ROOM; i++)
        if (!same_bits(got[i], want[i]))
            fail_msg("%s, %s: element %zu of %zu from %zu on: %a, not %a", s->vector->name, what, i,
                     s->n, s->at, (double)got[i], (double)want[i]);
}

static void expect_halves(const spot *s, const char *what)
{
    for (size_t i = 0; i < ROOM; i++)
        if (half_got[i] != half_want[i])
            fail_msg("%s, %s: element %zu of %zu from %zu on: %04x, not %04x", s->vector->name,
                     what, i, s->n, s->at, half_got[i], half_want[i]);
}

static void put_odd_ones(float *x, size_t step)
{
    static const float odd[] = {0.0F,     -0.0F,    INFINITY, -INFINITY, NAN,
                                1e-42F,   -1e-45F,  FLT_MAX,  -FLT_MAX,  FLT_MIN,
                                65504.0F, 65519.9F, 70000.0F, 3.4e38F};

    for (size_t i = 3, k = 0; i < ROOM; i += step, k++)
        x[i] = odd[k % (sizeof(odd) / sizeof(odd[0]))];
}

static void fill(bool finite)
{
    levels_fill(got, ROOM, 1);
    levels_fill(a, ROOM, 2);
    levels_fill(b, ROOM, 3);
    if (!finite) {
        put_odd_ones(got, 13);
        put_odd_ones(a, 17);
        put_odd_ones(b, 11);
    }
    memcpy(want, got, sizeof(want));
}

static void check_moves(const spot *s)
{
    float other[ROOM];

    fill(false);
    memcpy(want + s->at, a + s->at, s->n * sizeof(float));
    s->vector->copy(NULL, got + s->at, a + s->at, s->n);
    expect_same(s, "copy");
    memcpy(other, b, sizeof(other));
    memcpy(want + s->at, b + s->at, s->n * sizeof(float));
    s->vector->swap(NULL, got + s->at, other + s->at, s->n);
    expect_same(s, "swap");
    memcpy(got, other, sizeof(got));
    memcpy(want, b, sizeof(want));
    memcpy(want + s->at, a + s->at, s->n * sizeof(float));
    expect_same(s, "swap, the other");
    memset(want + s->at, 0, s->n * sizeof(float));
    s->vector->zero(NULL, got + s->at, s->n);
    expect_same(s, "zero");
}

static void check_sums(const spot *s)
{
    const size_t begin = s->at, end = s->at + s->n;
    const double none = 0, part = 0.1;

    fill(false);
    for (size_t i = begin; i < end; i++)
        want[i] += a[i];
    s->vector->add(NULL, got + begin, a + begin, s->n);
    expect_same(s, "add");
    for (size_t i = begin; i < end; i++)
        want[i] = 0.7F * a[i] + -1.3F * b[i];
    s->vector->axpby(NULL, got + begin, 0.7F, a + begin, -1.3F, b + begin, s->n);
    expect_same(s, "axpby");
    for (size_t i = begin; i < end; i++)
        want[i] = 0.9F * want[i] + b[i];
    s->vector->axpby(NULL, got + begin, 0.9F, got + begin, 1, b + begin, s->n);
    expect_same(s, "axpby onto x");
    for (size_t i = begin; i < end; i++)
        want[i] = a[i] - 0.1F * want[i];
    s->vector->axpby(NULL, got + begin, 1, a + begin, -0.1F, got + begin, s->n);
    expect_same(s, "axpby onto y");
    for (size_t i = begin; i < end; i++)
        want[i] += 0.3F * (a[i] - b[i]);
    s->vector->add_difference(NULL, got + begin, 0.3F, a + begin, b + begin, s->n);
    expect_same(s, "add_difference");
    for (size_t i = begin; i < end; i++)
        want[i] += 0.01F * (a[i] - want[i]);
    s->vector->add_difference(NULL, got + begin, 0.01F, a + begin, got + begin, s->n);
    expect_same(s, "add_difference onto z");
    for (size_t i = begin; i < end; i++)
        want[i] += (float)0.1 * (a[i] - want[i]);
    s->vector->average(NULL, got + begin, &part, a + begin, s->n);
    expect_same(s, "average");
    s->vector->average(NULL, got + begin, &none, b + begin, s->n);
    expect_same(s, "average that stays where it is");
}

static void check_products(const spot *s)
{
    const size_t begin = s->at, end = s->at + s->n;
    const int32_t no = 0, yes = 1;

    fill(false);
    for (size_t i = begin; i < end; i++)
        want[i] = (float)(1 / 3.0 * (double)a[i]);
    s->vector->scale(NULL, got + begin, 1 / 3.0, a + begin, s->n);
    expect_same(s, "scale");
    for (size_t i = begin; i < end; i++)
        want[i] = 7 * want[i];
    s->vector->scale(NULL, got + begin, 7, got + begin, s->n);
    expect_same(s, "scale in place, by what a float holds");
    for (size_t i = begin; i < end; i++)
        want[i] /= 3;
    s->vector->divide(NULL, got + begin, 3, s->n);
    expect_same(s, "divide");
    for (size_t i = begin; i < end; i++)
        want[i] = isfinite(want[i]) ? want[i] : 0;
    s->vector->drop_nonfinite(NULL, got + begin, s->n);
    expect_same(s, "drop_nonfinite");
    for (size_t i = 0; i < 4; i++) {
        const float most[] = {7, 0, INFINITY, NAN};

        s->vector->copy_unless(NULL, &most[i], got + begin, i > 0 ? got + begin : NULL, s->n);
        expect_same(s, "copy_unless of what it is");
    }
    s->vector->copy_if(NULL, &no, got + begin, b + begin, s->n);
    expect_same(s, "copy_if of 0");
    memcpy(want + begin, b + begin, s->n * sizeof(*want));
    s->vector->copy_if(NULL, &yes, got + begin, b + begin, s->n);
    expect_same(s, "copy_if");
    for (size_t i = begin; i < end; i++)
        want[i] = a[i];
    s->vector->copy_unless(NULL, &(float){NAN}, got + begin, a + begin, s->n);
    expect_same(s, "copy_unless it is a number");
    memset(want + begin, 0, s->n * sizeof(*want));
    s->vector->copy_unless(NULL, &(float){INFINITY}, got + begin, NULL, s->n);
    expect_same(s, "copy_unless it is finite");
}

static double squares_of_block(const float *x, size_t n, float scale, float limit)
{
    double lane[8] = {0}, sum = 0;

    for (size_t i = 0; i < n; i++) {
        float used = x[i] * scale;

        used = used < -limit ? -limit : used;
        used = used > limit ? limit : used;
        lane[i < n / 8 * 8 ? i % 8 : 0] += (double)used * (double)used;
    }
    for (size_t k = 0; k < 8; k++)
        sum += lane[k];
    return sum;
}

static double squares(const float *x, size_t n, float scale, float limit)
{
    double sum = 0;

    for (size_t at = 0; at < n; at += CO_VECTOR_SQUARES)
        sum += squares_of_block(x + at, n - at < CO_VECTOR_SQUARES ? n - at : CO_VECTOR_SQUARES,
                                scale, limit);
    return sum;
}

static void check_squares(const spot *s, const float *x, float scale, float limit)
{
    const double wanted = squares(x, s->n, scale, limit);
    const co_grad_rule rule = {.scale = scale, .limit = limit};
    float most = -1, largest;
    double sum = -1;

    s->vector->max_abs(NULL, &largest, x, s->n);
    s->vector->sum_squares(NULL, &sum, s->n % 2 ? &most : NULL, x, s->n,
                           scale == 1 && isinf(limit) ? NULL : &rule);
    if (s->n % 2 && !same_bits(most, largest))
        fail_msg("%s: the squares of %zu from %zu on come with %a, not %a", s->vector->name, s->n,
                 s->at, (double)most, (double)largest);
    if (!bits_are_same(&sum, &wanted, sizeof(sum)) && !(isnan(sum) && isnan(wanted)))
        fail_msg("%s: the squares of %zu from %zu on: %a, not %a", s->vector->name, s->n, s->at,
                 sum, wanted);
}

static void check_max(const spot *s, const float *x)
{
    float most = -1, wanted = 0;

    for (size_t i = 0; i < s->n; i++)
        wanted = fabsf(x[i]) <= wanted || isnan(wanted) ? wanted : fabsf(x[i]);
    s->vector->max_abs(NULL, &most, x, s->n);
    if (!same_bits(most, wanted))
        fail_msg("%s: the largest of %zu from %zu on: %a, not %a", s->vector->name, s->n, s->at,
                 (double)most, (double)wanted);
}

static void check_results(const spot *s)
{
    fill(true);
    check_squares(s, a + s->at, 1, INFINITY);
    check_squares(s, a + s->at, 0.3F, 0.2F);
    check_max(s, a + s->at);
    a[s->at + s->n / 2] = -FLT_MAX;
    check_max(s, a + s->at);
    a[s->at + s->n / 3] = -INFINITY;
    check_max(s, a + s->at);
    check_squares(s, a + s->at, 0.3F, 0.2F);
    check_squares(s, a + s->at, 1, INFINITY);
    a[s->at + s->n / 4] = NAN;
    check_max(s, a + s->at);
    check_squares(s, a + s->at, 0.3F, 0.2F);
    memset(a, 0, sizeof(a));
    check_max(s, a + s->at);
}

/* `narrow` element by element, by its definition. */
static void narrow_plainly(uint16_t *out, const float *x, float *kept, bool more, size_t n,
                           co_dtype dtype)
{
    const uint16_t largest = dtype == CO_F16 ? 0x7bff : 0x7f7f;
    float most;

    co_half_widen(&most, &largest, 1, dtype);
    for (size_t i = 0; i < n; i++) {
        const float from = x[i];
        float sent = from, lost;

        if (isfinite(from) && fabsf(from) > most)
            sent = copysignf(most, from);
        co_half_round(&out[i], &sent, 1, dtype);
        co_half_widen(&sent, &out[i], 1, dtype);
        lost = from - sent;
        if (kept)
            kept[i] = !isfinite(lost) ? 0 : more ? kept[i] + lost : lost;
    }
}

static void check_narrow(const spot *s, co_dtype dtype)
{
    const size_t at = s->at, n = s->n;

    fill(false);
    memset(half_want, 7, sizeof(half_want));
    memset(half_got, 7, sizeof(half_got));
    narrow_plainly(half_want + at, a + at, NULL, false, n, dtype);
    s->vector->narrow(NULL, half_got + at, a + at, NULL, false, n, dtype);
    expect_halves(s, "narrow");
    narrow_plainly(half_want + at, b + at, want + at, true, n, dtype);
    s->vector->narrow(NULL, half_got + at, b + at, got + at, true, n, dtype);
    expect_halves(s, "narrow, more of it");
    expect_same(s, "narrow, what is kept with what was there");
    narrow_plainly(half_want + at, want + at, want + at, false, n, dtype);
    s->vector->narrow(NULL, half_got + at, got + at, got + at, false, n, dtype);
    expect_halves(s, "narrow in place");
    expect_same(s, "narrow, what is kept in place");
}

static void check_widen(const spot *s, co_dtype dtype)
{
    const size_t at = s->at, n = s->n;

    fill(false);
    for (size_t t = 0; t < TERMS; t++)
        co_half_round(half + t * ROOM, t == 0 ? a : t == 1 ? b : got, ROOM, dtype);
    for (int terms = 1; terms <= TERMS; terms++) {
        for (size_t i = at; i < at + n; i++)
            for (size_t t = 0; t < (size_t)terms; t++) {
                float term;

                co_half_widen(&term, &half[t * ROOM + i], 1, dtype);
                want[i] = t == 0 ? term : want[i] + term;
            }
        s->vector->widen_sum(NULL, got + at, half + at, ROOM, terms, n, dtype);
        expect_same(s, "widen_sum");
    }
}

static void check_rounding(const spot *s, co_dtype dtype)
{
    const co_rng rng = {.seed = 3, .stream = CO_RNG_ROUND, .step = 9, .item = 1};
    const co_rng other = {.seed = 3, .stream = CO_RNG_ROUND, .step = 8, .item = 1};
    const size_t at = s->at, n = s->n;
    float kept[ROOM];

    fill(false);
    memcpy(kept, got, sizeof(kept));
    co_half_nearest(want + at, want + at, n, dtype);
    s->vector->round_nearest(NULL, got + at, n, dtype);
    expect_same(s, "round_nearest");
    memcpy(got, kept, sizeof(got));
    memcpy(want, kept, sizeof(want));
    co_half_stochastic(want + at, n, dtype, &rng, 1000 + at);
    s->vector->round_stochastic(NULL, got + at, n, dtype, &rng, NULL, 1000 + at);
    expect_same(s, "round_stochastic");
    memcpy(got, kept, sizeof(got));
    s->vector->round_stochastic(NULL, got + at, n, dtype, &other, &rng.step, 1000 + at);
    expect_same(s, "round_stochastic with a step");
}

static void check_halves(const spot *s)
{
    static const co_dtype dtypes[] = {CO_BF16, CO_F16};

    for (size_t d = 0; d < 2; d++) {
        check_narrow(s, dtypes[d]);
        check_widen(s, dtypes[d]);
        check_rounding(s, dtypes[d]);
    }
}

static void check_positions(const spot *s)
{
    const size_t at = s->at, k = (s->n + 2) / 3;
    uint32_t index[ROOM];

    fill(false);
    for (size_t i = 0; i < k; i++) {
        index[i] = (uint32_t)(3 * i);
        want[at + i] = a[at + 3 * i];
    }
    s->vector->gather(NULL, got + at, a + at, index, k);
    expect_same(s, "gather");
    for (size_t i = 0; i < k; i++)
        want[at + 3 * i] = b[at + i];
    s->vector->scatter(NULL, got + at, index, b + at, k);
    expect_same(s, "scatter");
    for (size_t i = 0; i < k; i++)
        want[at + 3 * i] += a[at + i];
    s->vector->scatter_add(NULL, got + at, index, a + at, k);
    expect_same(s, "scatter_add");
    for (size_t i = 0; i < k; i++)
        want[at + 3 * i] = 0;
    s->vector->scatter(NULL, got + at, index, NULL, k);
    expect_same(s, "scatter of zeros");
}

static void each_spot(void (*check)(const spot *s))
{
    const co_vector_ops *vector[CO_ISA_LEVELS];
    const size_t levels = levels_list(vector);

    for (size_t v = 0; v < levels; v++)
        for (size_t l = 0; l < N_LENGTHS; l++)
            for (size_t at = 0; at < 5; at++)
                check(&(spot){vector[v], at * 3, lengths[l]});
}

static void vector_moves_equal_plain_loops(void **state)
{
    (void)state;
    each_spot(check_moves);
}

static void vector_sums_equal_plain_loops(void **state)
{
    (void)state;
    each_spot(check_sums);
}

static void vector_products_equal_plain_loops(void **state)
{
    (void)state;
    each_spot(check_products);
}

static void vector_results_equal_plain_loops(void **state)
{
    (void)state;
    each_spot(check_results);
}

static void vector_halves_equal_plain_loops(void **state)
{
    (void)state;
    each_spot(check_halves);
}

static void vector_positions_equal_plain_loops(void **state)
{
    (void)state;
    each_spot(check_positions);
}

/* The first is plain C, the last is the process's. */
static void vector_levels_are_in_order(void **state)
{
    const co_vector_ops *vector[CO_ISA_LEVELS];
    const size_t levels = levels_list(vector);

    (void)state;
    assert_string_equal(vector[0]->name, "plain C");
    assert_ptr_equal(vector[levels - 1], co_vector_host());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vector_levels_are_in_order),
        cmocka_unit_test(vector_moves_equal_plain_loops),
        cmocka_unit_test(vector_sums_equal_plain_loops),
        cmocka_unit_test(vector_products_equal_plain_loops),
        cmocka_unit_test(vector_results_equal_plain_loops),
        cmocka_unit_test(vector_halves_equal_plain_loops),
        cmocka_unit_test(vector_positions_equal_plain_loops),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
