/* test_half.c - floats of 16 bits: every pattern, every rounding boundary, every instruction
   set. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/half.h"

#define ALL     65536
#define SOURCES (8 * ALL)

static uint32_t bits_of(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float value_of(uint32_t bits)
{
    float value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* The value of a pattern by the definition of the formats. */
static double meaning(uint16_t half, co_dtype dtype)
{
    const int fraction_bits = dtype == CO_F16 ? 10 : 7, bias = dtype == CO_F16 ? 15 : 127;
    const int special = 2 * bias + 1;
    const int exponent = (half & 0x7fff) >> fraction_bits;
    const int fraction = half & ((1 << fraction_bits) - 1);
    const double sign = half & 0x8000 ? -1 : 1;

    if (exponent == special)
        return fraction ? (double)NAN : sign * (double)INFINITY;
    if (exponent == 0)
        return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
}

static void half_every_pattern_has_value_of_format(void **state)
{
    const co_dtype dtypes[] = {CO_BF16, CO_F16};

    (void)state;
    for (int d = 0; d < 2; d++)
        for (uint32_t i = 0; i < ALL; i++) {
            const uint16_t half = (uint16_t)i;
            const double expected = meaning(half, dtypes[d]);
            uint16_t again;
            float wide;

            co_half_widen(&wide, &half, 1, dtypes[d]);
            co_half_round(&again, &wide, 1, dtypes[d]);
            if (isnan(expected)) {
                assert_true(isnan(wide));
                assert_true(isnan(meaning(again, dtypes[d])));
                assert_int_equal(again >> 15, half >> 15);
            } else {
                assert_true((double)wide == expected);
                assert_int_equal(again, half);
            }
        }
}

/* Just below, at and just above the middle of two neighbours. Ties go to even. */
static void half_rounding_is_to_nearest_even(void **state)
{
    const co_dtype dtypes[] = {CO_BF16, CO_F16};

    (void)state;
    for (int d = 0; d < 2; d++)
        for (uint32_t i = 0; i < ALL; i++) {
            const uint16_t low = (uint16_t)i, high = (uint16_t)(i + 1);
            const double a = meaning(low, dtypes[d]), b = meaning(high, dtypes[d]);
            float middle, in[3];
            uint16_t out[3];

            if ((low & 0x7fff) == 0x7fff || !isfinite(a) || !isfinite(b))
                continue;
            middle = (float)((a + b) / 2); /* exact: one bit more than the format has */
            in[0] = value_of(bits_of(middle) - 1);
            in[1] = middle;
            in[2] = value_of(bits_of(middle) + 1);
            co_half_round(out, in, 3, dtypes[d]);
            assert_int_equal(out[0], low);
            assert_int_equal(out[1], low % 2 ? high : low);
            assert_int_equal(out[2], high);
        }
}

static void half_out_of_range_is_infinite_or_zero(void **state)
{
    const struct {
        float in;
        co_dtype dtype;
        uint16_t out;
    } cases[] = {
        {65504, CO_F16, 0x7bff},
        {65519.996f, CO_F16, 0x7bff},
        {65520, CO_F16, 0x7c00},
        {-1e30f, CO_F16, 0xfc00},
        {INFINITY, CO_F16, 0x7c00},
        {0x1p-24f, CO_F16, 1},
        {0x1p-25f, CO_F16, 0},
        {0x1.000002p-25f, CO_F16, 1},
        {-0x1p-25f, CO_F16, 0x8000},
        {0x1p-140f, CO_F16, 0},
        {0x1.fep127f, CO_BF16, 0x7f7f},
        {0x1.ffp127f, CO_BF16, 0x7f80},
        {-0x1.fffffep127f, CO_BF16, 0xff80},
        {-0.0f, CO_BF16, 0x8000},
        {0x1p-133f, CO_BF16, 1},
        {0x1p-134f, CO_BF16, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint16_t out;

        co_half_round(&out, &cases[i].in, 1, cases[i].dtype);
        assert_int_equal(out, cases[i].out);
    }
}

/* Random patterns include subnormals, infinities and NaNs with payloads. */
static void half_loops_of_every_level_give_same_bits(void **state)
{
    float *in = malloc(SOURCES * sizeof(*in)), *wide[2];
    uint16_t *out[2], *patterns = malloc(ALL * sizeof(*patterns));
    uint32_t word = 12345;
    size_t n;
    const co_half_loops *const *sets = co_half_loops_of_cpu(&n);

    (void)state;
    assert_true(n >= 1 && sets[n - 1] == &co_half_plain);
    for (int k = 0; k < 2; k++) {
        out[k] = malloc(SOURCES * sizeof(*out[k]));
        wide[k] = malloc(ALL * sizeof(*wide[k]));
        assert_true(out[k] && wide[k]);
    }
    assert_true(in && patterns);
    for (size_t i = 0; i < SOURCES; i++) {
        word = word * 1664525u + 1013904223u;
        in[i] = value_of((word >> 16 | word << 16) & (i % 16 ? UINT32_MAX : 0x80ffffff));
    }
    for (uint32_t i = 0; i < ALL; i++)
        patterns[i] = (uint16_t)i;
    for (size_t s = 0; s + 1 < n; s++)
        for (int half = 0; half < 2; half++) {
            /* An unaligned start and an odd count, so that no instruction set sees whole vectors
               only. */
            sets[s]->round[half](out[0], in + 1, SOURCES - 4);
            co_half_plain.round[half](out[1], in + 1, SOURCES - 4);
            assert_memory_equal(out[0], out[1], (SOURCES - 4) * sizeof(*out[0]));
            sets[s]->widen[half](wide[0], patterns + 1, ALL - 4);
            co_half_plain.widen[half](wide[1], patterns + 1, ALL - 4);
            assert_memory_equal(wide[0], wide[1], (ALL - 4) * sizeof(*wide[0]));
        }
    for (int k = 0; k < 2; k++) {
        free(out[k]);
        free(wide[k]);
    }
    free(in);
    free(patterns);
}

/* ---- stochastic rounding ---- */

#define DRAWS 1000

static const co_rng place = {.seed = 77, .stream = CO_RNG_ROUND, .step = 5, .item = 2};
static const co_rng late_place = {
    .seed = 77, .stream = CO_RNG_ROUND, .step = UINT64_C(3) << 32 | 5, .item = 2};

/* The random bits that the header assigns to an element, from the generator itself. */
static uint32_t bits_for(const co_rng *rng, uint64_t element)
{
    const uint64_t lane = element % 16, word = element / 16 % 4, half = element / 64 % 2;
    uint32_t block[4];

    co_rng_block(block, rng, (uint32_t)(element / 128 * 16 + lane));
    return half ? block[word] >> 16 : block[word] & 0xffff;
}

/* Rounds away from zero where the discarded part, in steps of the format, plus the random bits, as
   a fraction of 2^16, reach 1. */
static double rounded_by(double x, uint32_t bits, co_dtype dtype)
{
    const int fraction_bits = dtype == CO_F16 ? 10 : 7, least = dtype == CO_F16 ? -14 : -126;
    const double largest = dtype == CO_F16 ? 65504 : 0x1.fep127;
    int exponent;
    double step, steps;

    frexp(x, &exponent);
    step = ldexp(1, (exponent - 1 < least ? least : exponent - 1) - fraction_bits);
    steps = floor(fabs(x) / step + bits / 65536.0);
    return copysign(steps * step > largest ? (double)INFINITY : steps * step, x);
}

static void check_bits_of_place(const co_rng *rng)
{
    static const float sources[] = {1.2345678f, -0.0123f, 3e-6f,       -7e-8f, 1e-30f, 65519,
                                    -65535,     1e-39f,   0x1.ffp127f, 12345,  0.1f,   -2.0000002f};
    const co_dtype dtypes[] = {CO_BF16, CO_F16};

    for (int d = 0; d < 2; d++)
        for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
            float x[DRAWS];

            for (size_t e = 0; e < DRAWS; e++)
                x[e] = sources[i];
            co_half_stochastic(x, DRAWS, dtypes[d], rng, 3);
            for (size_t e = 0; e < DRAWS; e++) {
                const double want = rounded_by((double)sources[i], bits_for(rng, 3 + e), dtypes[d]);

                if ((double)x[e] != want)
                    fail_msg("%g, element %zu: %g, not %g", (double)sources[i], e, (double)x[e],
                             want);
            }
        }
}

static void half_stochastic_random_bits_follow_position(void **state)
{
    (void)state;
    check_bits_of_place(&place);
    check_bits_of_place(&late_place);
}

/* The mean over all random numbers is the number itself. A false alarm (5 standard deviations) has
   odds of 1 in 2 million. */
static void half_stochastic_mean_is_the_value(void **state)
{
    static const float sources[] = {1.2345678f, -0.0123f, 1.0001f, -1.9999f, 1e-39f};
    const double n = 1000.0 * DRAWS;
    co_rng rng = place;

    (void)state;
    for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
        const double x = (double)sources[i];
        double low, high, up, sum = 0;

        low = rounded_by(x, 0, CO_BF16);
        high = rounded_by(x, 65535, CO_BF16);
        up = (x - low) / (high - low);
        for (rng.step = 0; rng.step < 1000; rng.step++) {
            float out[DRAWS];

            for (size_t e = 0; e < DRAWS; e++)
                out[e] = sources[i];
            co_half_stochastic(out, DRAWS, CO_BF16, &rng, 0);
            for (size_t e = 0; e < DRAWS; e++)
                sum += (double)out[e] == high;
        }
        assert_true(fabs(sum - up * n) < 5 * sqrt(n * up * (1 - up)));
    }
}

static void half_stochastic_keeps_representable_values(void **state)
{
    const co_dtype dtypes[] = {CO_BF16, CO_F16};
    uint16_t half[128];
    float wide[128], out[128];

    (void)state;
    for (int d = 0; d < 2; d++)
        for (uint32_t first = 0; first < ALL; first += 128) {
            for (uint32_t i = 0; i < 128; i++)
                half[i] = (uint16_t)(first + i);
            co_half_widen(wide, half, 128, dtypes[d]);
            memcpy(out, wide, sizeof(out));
            co_half_stochastic(out, 128, dtypes[d], &place, first);
            for (uint32_t i = 0; i < 128; i++)
                assert_true(isnan(wide[i]) ? isnan(out[i]) : bits_of(out[i]) == bits_of(wide[i]));
        }
}

static void fill(float *x, size_t n)
{
    uint32_t word = 999;

    for (size_t i = 0; i < n; i++) {
        word = word * 1664525u + 1013904223u;
        x[i] = value_of(word >> 16 | word << 16);
    }
}

/* So that results do not depend on which rank updates which weights, or on the machine. */
static void half_stochastic_any_split_and_level_same_bits(void **state)
{
    enum { N = 1027 };
    float in[N], whole[N], parts[N];
    size_t n;
    const co_half_loops *const *sets = co_half_loops_of_cpu(&n);

    (void)state;
    fill(in, N);
    for (int half = 0; half < 2; half++) {
        memcpy(whole, in, sizeof(in));
        co_half_plain.stochastic[half](whole, N, &place, 1000);
        for (size_t s = 0; s < n; s++)
            for (size_t size = 1; size < N; size = size * 3 + 1) {
                memcpy(parts, in, sizeof(in));
                for (size_t i = 0; i < N; i += size)
                    sets[s]->stochastic[half](parts + i, N - i < size ? N - i : size, &place,
                                              1000 + i);
                assert_memory_equal(parts, whole, sizeof(whole));
            }
    }
}

static void half_stochastic_other_position_gives_other_bits(void **state)
{
    const co_rng others[] = {{78, CO_RNG_ROUND, 5, 2},
                             {77 + (UINT64_C(1) << 32), CO_RNG_ROUND, 5, 2},
                             {77, CO_RNG_TEST, 5, 2},
                             {77, CO_RNG_ROUND, 6, 2},
                             {77, CO_RNG_ROUND, 5, 3}};
    float in[256], out[2][256];

    (void)state;
    for (size_t e = 0; e < 256; e++)
        in[e] = 1.00390625f; /* in the middle */
    memcpy(out[0], in, sizeof(in));
    co_half_stochastic(out[0], 256, CO_BF16, &place, 0);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        memcpy(out[1], in, sizeof(in));
        co_half_stochastic(out[1], 256, CO_BF16, &others[i], 0);
        assert_memory_not_equal(out[0], out[1], sizeof(in));
    }
    memcpy(out[1], in, sizeof(in));
    co_half_stochastic(out[1], 256, CO_BF16, &place, 256);
    assert_memory_not_equal(out[0], out[1], sizeof(in));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(half_every_pattern_has_value_of_format),
        cmocka_unit_test(half_rounding_is_to_nearest_even),
        cmocka_unit_test(half_out_of_range_is_infinite_or_zero),
        cmocka_unit_test(half_loops_of_every_level_give_same_bits),
        cmocka_unit_test(half_stochastic_random_bits_follow_position),
        cmocka_unit_test(half_stochastic_mean_is_the_value),
        cmocka_unit_test(half_stochastic_keeps_representable_values),
        cmocka_unit_test(half_stochastic_any_split_and_level_same_bits),
        cmocka_unit_test(half_stochastic_other_position_gives_other_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
