/* test_rng.c - the generator is Philox4x32-10, and numbers drawn depend on their position only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/rng.h"

/* Counter, key and result from the authors' known-answer tests (Random123, kat_vectors). */
static void rng_blocks_equal_published_answers(void **state)
{
    static const struct {
        uint32_t block;
        co_rng rng; /* seed, stream, step, item */
        uint32_t want[4];
    } answers[] = {
        {0, {0, 0, 0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {0xffffffff,
         {UINT64_MAX, 0xffffffff, 0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {0x243f6a88,
         {0x299f31d0a4093822, 0x03707344, 0x13198a2e, 0x85a308d3},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        uint32_t out[4];

        co_rng_block(out, &answers[i].rng, answers[i].block);
        assert_memory_equal(out, answers[i].want, sizeof(out));
    }
}

static const co_rng place = {.seed = 1234, .stream = CO_RNG_TEST, .step = 7, .item = 3};

static void rng_words_are_the_blocks_in_order(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 40; i++) {
        uint32_t block[4];

        co_rng_block(block, &place, i / 4);
        assert_int_equal(co_rng_word(&place, i), block[i % 4]);
    }
}

/* Steps that differ only above the lower 32 bits. */
static void rng_steps_above_32_bits_differ(void **state)
{
    const uint64_t upper[] = {0, 1, 2, UINT32_MAX};
    uint32_t out[4][4];

    (void)state;
    for (int i = 0; i < 4; i++) {
        co_rng there = place;

        there.step |= upper[i] << 32;
        co_rng_block(out[i], &there, 0);
        for (int k = 0; k < i; k++)
            for (int w = 0; w < 4; w++)
                assert_int_not_equal(out[i][w], out[k][w]);
    }
}

/* Part of a sequence is the same whether drawn alone or with the rest. */
static void rng_part_of_sequence_equals_whole(void **state)
{
    float uniform[64], normal[64], part[64];

    (void)state;
    co_rng_uniform(uniform, &place, 0, 64);
    co_rng_normal(normal, &place, 0, 64);
    for (uint64_t first = 0; first < 64; first++)
        for (uint64_t n = 0; first + n <= 64; n += 3) {
            co_rng_uniform(part, &place, first, n);
            assert_memory_equal(part, uniform + first, n * sizeof(float));
            co_rng_normal(part, &place, first, n);
            assert_memory_equal(part, normal + first, n * sizeof(float));
        }
    for (uint64_t i = 0; i < 64; i++)
        assert_true(uniform[i] == co_rng_to_unit(co_rng_word(&place, i)));
}

static void rng_unit_value_is_below_one(void **state)
{
    (void)state;
    assert_true(co_rng_to_unit(0) == 0.0f);
    assert_true(co_rng_to_unit(UINT32_MAX) < 1.0f);
    assert_true(co_rng_to_unit(0x80000000) == 0.5f);
}

#define SAMPLES 100000

/* Mean, variance and fourth moment within 5 standard errors of their expectations. */
static void assert_moments(const float *v, double mean, double variance, double fourth)
{
    double m = 0, s = 0, f = 0;

    for (int i = 0; i < SAMPLES; i++)
        m += v[i];
    m /= SAMPLES;
    for (int i = 0; i < SAMPLES; i++) {
        double d = v[i] - mean;

        s += d * d;
        f += d * d * d * d;
    }
    s /= SAMPLES;
    f /= SAMPLES;
    assert_true(fabs(m - mean) < 5 * sqrt(variance / SAMPLES));
    assert_true(fabs(s - variance) < 5 * sqrt((fourth - variance * variance) / SAMPLES));
    assert_true(fabs(f / fourth - 1) < 0.05);
}

static void rng_uniform_and_normal_have_their_moments(void **state)
{
    static float v[SAMPLES];

    (void)state;
    co_rng_uniform(v, &place, 0, SAMPLES);
    assert_moments(v, 0.5, 1.0 / 12, 1.0 / 80);
    co_rng_normal(v, &place, 0, SAMPLES);
    assert_moments(v, 0, 1, 3);
    for (int i = 0; i < SAMPLES; i++)
        assert_true(isfinite(v[i]));
}

static void rng_other_position_gives_other_word(void **state)
{
    co_rng other[4] = {place, place, place, place};

    (void)state;
    other[0].seed ^= (uint64_t)1 << 40;
    other[1].stream |= 1 << 8;
    other[2].step++;
    other[3].item++;
    for (int i = 0; i < 4; i++)
        assert_int_not_equal(co_rng_word(&place, 0), co_rng_word(&other[i], 0));
}

static void rng_shuffle_is_a_permutation(void **state)
{
    static uint32_t perm[1000], again[1000];
    bool seen[1000];

    (void)state;
    for (uint32_t n = 0; n <= 1000; n = n * 2 + 1) {
        memset(seen, 0, sizeof(seen));
        co_rng_shuffle(perm, n, &place);
        co_rng_shuffle(again, n, &place);
        assert_memory_equal(perm, again, n * sizeof(perm[0]));
        for (uint32_t i = 0; i < n; i++) {
            assert_true(perm[i] < n && !seen[perm[i]]);
            seen[perm[i]] = true;
        }
    }
}

/* Each of the 24 orders of 4 is equally likely (chi-square, 23 degrees: p < 1e-4 at 57). */
static void rng_shuffle_orders_are_equally_likely(void **state)
{
    int count[256] = {0}, orders = 0;
    double chi = 0;

    (void)state;
    for (uint32_t i = 0; i < 24000; i++) {
        const co_rng rng = {.seed = 5, .stream = CO_RNG_SHUFFLE, .step = i};
        uint32_t perm[4];

        co_rng_shuffle(perm, 4, &rng);
        count[perm[0] << 6 | perm[1] << 4 | perm[2] << 2 | perm[3]]++;
    }
    for (int i = 0; i < 256; i++)
        if (count[i]) {
            orders++;
            chi += (count[i] - 1000.0) * (count[i] - 1000.0) / 1000;
        }
    assert_int_equal(orders, 24);
    assert_true(chi < 57);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rng_blocks_equal_published_answers),
        cmocka_unit_test(rng_words_are_the_blocks_in_order),
        cmocka_unit_test(rng_steps_above_32_bits_differ),
        cmocka_unit_test(rng_part_of_sequence_equals_whole),
        cmocka_unit_test(rng_unit_value_is_below_one),
        cmocka_unit_test(rng_uniform_and_normal_have_their_moments),
        cmocka_unit_test(rng_other_position_gives_other_word),
        cmocka_unit_test(rng_shuffle_is_a_permutation),
        cmocka_unit_test(rng_shuffle_orders_are_equally_likely),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
