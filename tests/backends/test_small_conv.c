/*
 * test_small_conv.c - loops of small convolutions, with every instruction set of this machine,
 * against plain loops; every number of samples up to more than two full tiles.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "backends/backends_test.h"
#include "bits.h"
#include "core/mem.h"
#include "core/rng.h"
#include "kernels/small_conv/small_conv.h"

#define PIXELS       3
#define BLOCKS       3
#define MOST_SAMPLES 19

static const small_conv_loops *const *find_all(void)
{
    static const small_conv_loops *const all[] = {KERNELS_LIST(small_conv_loops, NULL)};

    return all + kernels_too_new();
}

static float *make(uint32_t item, int64_t n)
{
    const co_rng rng = {.seed = 11, .stream = CO_RNG_TEST, .item = item};
    float *x = co_calloc_aligned((size_t)n, sizeof(float));

    assert_non_null(x);
    co_rng_normal(x, &rng, 0, (size_t)n);
    return x;
}

static void near(double got, double want, const char *what)
{
    if (!(fabs(got - want) <= 2e-5 * (1 + fabs(want))))
        fail_msg("%s: %.9g instead of %.9g", what, got, want);
}

static small_conv_image image(const small_conv_loops *loops)
{
    const int64_t block = PIXELS * loops->lanes;

    return (small_conv_image){.blocks = BLOCKS, .block = block, .sample = BLOCKS * block};
}

/* Index of a channel of a sample's pixel. */
static int64_t place(const small_conv_image *is, int lanes, int64_t sample, int64_t channel,
                     int64_t at)
{
    return sample * is->sample + channel / lanes * is->block + at + channel % lanes;
}

/* y of the pixel at `to` from pixels 2 and 0 by taps 1 and 0; `blocks` of its blocks, from the
   first. */
static void check_multiply(const small_conv_loops *loops, int64_t samples, int64_t blocks,
                           bool biased)
{
    const int lanes = loops->lanes;
    const small_conv_image is = image(loops);
    const int64_t channels = BLOCKS * lanes, panel = 2 * channels * lanes, to = lanes;
    const small_conv_pair pair[] = {{2 * lanes, (int32_t)(channels * lanes)}, {0, 0}};
    const small_conv_sum sum = {pair, 2, samples};
    float *x = make(1, samples * is.sample), *y = make(2, samples * is.sample);
    float *before = make(2, samples * is.sample);
    float *w = make(3, blocks * panel), *bias = make(4, channels);

    loops->multiply(y + to, &is, x, &is, w, panel, biased ? bias : NULL, blocks, &sum);
    for (int64_t i = 0; i < samples * is.sample; i++) {
        const int64_t s = i / is.sample, block = i % is.sample / is.block, l = i % lanes;
        double want = biased ? (double)bias[block * lanes + l] : 0;

        if (block >= blocks || i % is.block / lanes != 1) {
            assert_true(y[i] == before[i]);
            continue;
        }
        for (int p = 0; p < 2; p++)
            for (int64_t c = 0; c < channels; c++)
                want += (double)x[place(&is, lanes, s, c, pair[p].a)] *
                        (double)w[block * panel + pair[p].b + c * lanes + l];
        near((double)y[i], want, "product");
    }
    co_free(x), co_free(y), co_free(before), co_free(w), co_free(bias);
}

static void check_gradient(const small_conv_loops *loops, int64_t samples, int64_t blocks)
{
    const int lanes = loops->lanes;
    const small_conv_image is = image(loops);
    const int64_t channels = BLOCKS * lanes, panel = channels * lanes;
    const small_conv_pair pair[] = {{2 * lanes, lanes}, {0, 2 * lanes}};
    const small_conv_sum sum = {pair, 2, samples};
    float *x = make(1, samples * is.sample), *dy = make(2, samples * is.sample);
    float *dw = make(3, blocks * panel);

    loops->gradient(dw, panel, x, &is, dy, &is, blocks, &sum);
    for (int64_t i = 0; i < blocks * panel; i++) {
        const int64_t block = i / panel, c = i % panel / lanes, o = block * lanes + i % lanes;
        double want = 0;

        for (int p = 0; p < 2; p++)
            for (int64_t s = 0; s < samples; s++)
                want += (double)x[place(&is, lanes, s, c, pair[p].a)] *
                        (double)dy[place(&is, lanes, s, o, pair[p].b)];
        near((double)dw[i], want, "gradient");
    }
    co_free(x), co_free(dy), co_free(dw);
}

static void check_add_up(const small_conv_loops *loops, int64_t samples)
{
    const small_conv_image is = image(loops);
    float *dy = make(1, samples * is.sample), *sum = make(2, loops->lanes);

    for (int add = 0; add < 2; add++) {
        loops->add_up(sum, dy, &is, PIXELS, samples, add);
        for (int l = 0; l < loops->lanes; l++) {
            double want = 0;

            for (int64_t i = l; i < samples * is.sample; i += loops->lanes)
                want += i % is.sample < is.block ? (double)dy[i] : 0;
            near((double)sum[l], want * (1 + add), "sum");
        }
    }
    co_free(dy), co_free(sum);
}

static void small_conv_any_size_equals_sum_of_products(void **state)
{
    (void)state;
    for (const small_conv_loops *const *loops = find_all(); *loops; loops++)
        for (int64_t samples = 1; samples <= MOST_SAMPLES; samples++) {
            for (int64_t blocks = 1; blocks <= 2; blocks++) {
                check_multiply(*loops, samples, blocks, samples % 2 != 0);
                check_gradient(*loops, samples, blocks);
            }
            check_add_up(*loops, samples);
        }
}

#define SAME_CHANNELS 48
#define SAME_SAMPLES  11

/* (samples, channels, pixels) to blocks, or back. */
static void block(float *blocked, float *plain, int lanes, bool back)
{
    const int64_t plane = PIXELS * lanes;

    for (int64_t i = 0; i < SAME_SAMPLES * SAME_CHANNELS * PIXELS; i++) {
        const int64_t s = i / (SAME_CHANNELS * PIXELS), c = i / PIXELS % SAME_CHANNELS;
        float *at = &blocked[(s * (SAME_CHANNELS / lanes) + c / lanes) * plane +
                             i % PIXELS * lanes + c % lanes];

        if (back)
            plain[i] = *at;
        else
            *at = plain[i];
    }
}

/* A pixel computed from two others, and the gradient of that weight; SAME_CHANNELS in and out. All
   row-major; y (samples, channels, pixels), w and dw (channel of x, channel of y). */
static void run_plain(const small_conv_loops *loops, float *y, float *dw, float *x, const float *w)
{
    const int lanes = loops->lanes;
    const int64_t blocks = SAME_CHANNELS / lanes, panel = SAME_CHANNELS * lanes;
    const int64_t n = SAME_SAMPLES * SAME_CHANNELS * PIXELS;
    const small_conv_image is = {blocks, PIXELS * lanes, blocks * PIXELS * lanes};
    const small_conv_pair pixels[] = {{2 * lanes, 0}, {0, 0}},
                          both[] = {{2 * lanes, lanes}, {0, lanes}};
    const small_conv_sum made = {pixels, 2, SAME_SAMPLES}, grown = {both, 2, SAME_SAMPLES};
    float *xs = make(1, n), *ys = make(1, n), *ws = make(1, blocks * panel);

    block(xs, x, lanes, false);
    block(ys, x, lanes, false);
    for (int64_t i = 0; i < SAME_CHANNELS * SAME_CHANNELS; i++) {
        const int64_t c = i / SAME_CHANNELS, o = i % SAME_CHANNELS;

        ws[o / lanes * panel + c * lanes + o % lanes] = w[i];
    }
    for (int64_t b = 0; b < blocks; b += 2)
        loops->multiply(ys + b * is.block + lanes, &is, xs, &is, ws + b * panel, panel, NULL,
                        b + 2 <= blocks ? 2 : 1, &made);
    block(ys, y, lanes, true);
    for (int64_t b = 0; b < blocks; b += 2)
        loops->gradient(ws + b * panel, panel, xs, &is, ys + b * is.block, &is,
                        b + 2 <= blocks ? 2 : 1, &grown);
    for (int64_t i = 0; i < SAME_CHANNELS * SAME_CHANNELS; i++) {
        const int64_t c = i / SAME_CHANNELS, o = i % SAME_CHANNELS;

        dw[i] = ws[o / lanes * panel + c * lanes + o % lanes];
    }
    co_free(xs), co_free(ys), co_free(ws);
}

static void small_conv_levels_give_same_bits(void **state)
{
    const int64_t n = SAME_SAMPLES * SAME_CHANNELS * PIXELS, m = SAME_CHANNELS * SAME_CHANNELS;
    float *x = make(1, n), *w = make(2, m), *y[2] = {make(3, n), make(4, n)};
    float *dw[2] = {make(5, m), make(6, m)};
    const small_conv_loops *const *loops = find_all();

    (void)state;
    for (int i = 0; loops[0] && loops[i]; i++) {
        run_plain(loops[i], y[i > 0], dw[i > 0], x, w);
        assert_true(i == 0 || bits_are_same(y[0], y[1], (size_t)n * sizeof(float)));
        assert_true(i == 0 || bits_are_same(dw[0], dw[1], (size_t)m * sizeof(float)));
    }
    for (int i = 0; i < 2; i++)
        co_free(y[i]), co_free(dw[i]);
    co_free(x), co_free(w);
}

/* A weight to (taps, in, lanes), from there to (taps, out, lanes), and back to its own layout. */
static void check_weight(const small_conv_loops *loops, int64_t kernel, int64_t used)
{
    const int lanes = loops->lanes;
    const int64_t out = 2 * lanes, in = 3 * lanes, panel = used * in * lanes;
    int64_t tap[16], number[16];
    const small_conv_weight shape = {
        .out = out, .in = in, .kernel = kernel, .taps = used, .tap = tap, .number = number};
    float *w = make(1, out * in * kernel), *packed = make(2, out * in * used);
    float *turned = make(3, out * in * used), *back = make(4, out * in * kernel);

    for (int64_t t = 0; t < kernel; t++) {
        number[t] = t < kernel - used ? -1 : t - (kernel - used);
        if (number[t] >= 0)
            tap[number[t]] = t;
    }
    for (int64_t k = 0; k < 2; k++)
        loops->pack(packed + k * panel, w, &shape, k);
    for (int64_t k = 0; k < 3; k++)
        loops->turn(turned + k * used * out * lanes, packed, &shape, k);
    for (int64_t i = 0; i < out * in * used; i++) {
        const int64_t o = i / (in * used), c = i / used % in, t = i % used;
        const float want = w[(o * in + c) * kernel + tap[t]];

        assert_true(packed[o / lanes * panel + (t * in + c) * lanes + o % lanes] == want);
        assert_true(turned[(c / lanes * used * out + t * out + o) * lanes + c % lanes] == want);
    }
    for (int add = 0; add < 2; add++) {
        for (int64_t k = 0; k < 2; k++)
            loops->unpack(back, packed + k * panel, &shape, k, add);
        for (int64_t i = 0; i < out * in * kernel; i++) {
            const float want = number[i % kernel] < 0 ? 0 : w[i] * (float)(1 + add);

            assert_true(back[i] == want);
        }
    }
    co_free(w), co_free(packed), co_free(turned), co_free(back);
}

static void small_conv_packed_weight_unpacks(void **state)
{
    (void)state;
    for (const small_conv_loops *const *loops = find_all(); *loops; loops++)
        for (int64_t used = 1; used <= 9; used++) {
            check_weight(*loops, 9, used);
            check_weight(*loops, used, used);
            check_weight(*loops, 15, used);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_conv_any_size_equals_sum_of_products),
        cmocka_unit_test(small_conv_levels_give_same_bits),
        cmocka_unit_test(small_conv_packed_weight_unpacks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
