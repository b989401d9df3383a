/*
 * test_lanes.c - the cpu backend's loops with a sample per lane, with every instruction set of this
 * machine, against the sums they compute.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "backends/backends_test.h"
#include "core/mem.h"
#include "core/rng.h"
#include "kernels/sample_lanes/sample_lanes.h"

static void near(double got, double want, const lanes_loops *lanes)
{
    if (!(fabs(got - want) <= 1e-5 * fabs(want) + 1e-5))
        fail_msg("%s: %.8g, not %.8g", lanes->name, got, want);
}

static void pack_and_back(const lanes_loops *lanes)
{
    const int64_t n = 2 * lanes->lanes - 1, count = 13;
    float *x = make_numbers(1, n * count), *packed = make_numbers(2, 2 * lanes->lanes * count);
    float *back = make_numbers(3, n * count);

    lanes->pack(packed, x, n, count);
    for (int64_t s = 0; s < 2 * lanes->lanes; s++)
        for (int64_t e = 0; e < count; e++) {
            float got = packed[(s / lanes->lanes * count + e) * lanes->lanes + s % lanes->lanes];

            assert_true(got == (s < n ? x[s * count + e] : 0));
        }
    lanes->unpack(back, packed, n, count);
    assert_memory_equal(back, x, (size_t)(n * count) * sizeof(float));
    co_free(x);
    co_free(packed);
    co_free(back);
}

/* x[c][row][column] of lane l, or 0 outside the image */
static double pixel(const float *x, const lanes_window *s, int64_t c, int64_t row, int64_t column,
                    int64_t l, int64_t lanes)
{
    const int64_t width = s->w + 2 * s->pad_w;

    if (row < 0 || row >= s->h)
        return 0;
    return (double)x[((c * s->h + row) * width + column + s->pad_w) * lanes + l];
}

static float *make_planes(const lanes_window *s, int64_t lanes)
{
    const int64_t width = s->w + 2 * s->pad_w;
    float *x = make_numbers(4, s->c * s->h * width * lanes);

    for (int64_t i = 0; i < s->c * s->h * width * lanes; i++) {
        int64_t column = i / lanes % width - s->pad_w;

        if (column < 0 || column >= s->w)
            x[i] = 0;
    }
    return x;
}

static void check_correlate(const lanes_loops *lanes, const lanes_window *s, const float *x)
{
    const int64_t taps = s->c * s->kh * s->kw, n = lanes->lanes;
    float *w = make_numbers(5, s->o * taps), *bias = make_numbers(6, s->o),
          *y = make_numbers(7, s->o * s->oh * s->ow * n);

    lanes->correlate(y, x, w, bias, s);
    for (int64_t i = 0; i < s->o * s->oh * s->ow * n; i++) {
        const int64_t l = i % n, v = i / n % s->ow, u = i / n / s->ow % s->oh;
        const int64_t o = i / n / s->ow / s->oh;
        double sum = (double)bias[o];

        for (int64_t t = 0; t < taps; t++) {
            const int64_t j = t % s->kw, k = t / s->kw % s->kh, c = t / s->kw / s->kh;

            sum += (double)w[o * taps + t] *
                   pixel(x, s, c, u - s->pad_h + k * s->step_h, v - s->pad_w + j * s->step_w, l, n);
        }
        near((double)y[i], sum, lanes);
    }
    co_free(w);
    co_free(bias);
    co_free(y);
}

static void check_correlate_weight(const lanes_loops *lanes, const lanes_window *s, const float *x)
{
    const int64_t taps = s->c * s->kh * s->kw, n = lanes->lanes, plane = s->oh * s->ow;
    float *dy = make_numbers(8, s->o * plane * n), *sum = make_numbers(9, s->o * taps * n);
    float *bias_sum = co_calloc_aligned((size_t)(s->o * n), sizeof(float));
    float *reduced = make_numbers(9, s->o * taps * n);

    assert_non_null(bias_sum);
    memset(sum, 0, (size_t)(s->o * taps * n) * sizeof(float));
    lanes->correlate_weight(sum, bias_sum, dy, x, s, 0, s->o);
    lanes->reduce(reduced, sum, s->o * taps, false);
    lanes->reduce(reduced, sum, s->o * taps, true);
    for (int64_t i = 0; i < s->o * taps; i++) {
        const int64_t j = i % s->kw, k = i / s->kw % s->kh, c = i % taps / s->kw / s->kh;
        const int64_t o = i / taps;
        double want = 0;

        for (int64_t e = 0; e < plane * n; e++)
            want += (double)dy[o * plane * n + e] *
                    pixel(x, s, c, e / n / s->ow - s->pad_h + k * s->step_h,
                          e / n % s->ow - s->pad_w + j * s->step_w, e % n, n);
        near((double)reduced[i], 2 * want, lanes);
    }
    for (int64_t e = 0; e < s->o * n; e++) {
        double want = 0;

        for (int64_t p = 0; p < plane; p++)
            want += (double)dy[(e / n * plane + p) * n + e % n];
        near((double)bias_sum[e], want, lanes);
    }
    co_free(dy);
    co_free(sum);
    co_free(bias_sum);
    co_free(reduced);
}

/* Every tile size: 1 to 11 channels, 1 to 9 columns, 1 to 7 taps. */
static void correlate_sizes(const lanes_loops *lanes)
{
    for (int64_t o = 1; o <= 11; o++)
        for (int64_t ow = 1; ow <= 9; ow++) {
            lanes_window s = {.c = 2, .o = o, .oh = 3, .ow = ow, .kh = 2, .step_h = 1};
            float *x;

            s.kw = 1 + (o + ow) % 7;
            s.step_w = 1 + ow % 2;
            s.pad_h = o % 2;
            s.pad_w = ow % 3 < (s.kw - 1) * s.step_w ? ow % 3 : 0;
            s.h = s.oh - 2 * s.pad_h + s.kh - 1;
            s.w = ow - 2 * s.pad_w + (s.kw - 1) * s.step_w;
            if (s.w < 1)
                continue;
            x = make_planes(&s, lanes->lanes);
            check_correlate(lanes, &s, x);
            check_correlate_weight(lanes, &s, x);
            co_free(x);
        }
}

static void elements(const lanes_loops *lanes)
{
    const int64_t n = 5, all = n * lanes->lanes;
    float *x = make_numbers(14, all), *z = make_numbers(15, all), *y = make_numbers(16, all),
          *d = make_numbers(17, all);
    int32_t *drop = co_calloc_aligned((size_t)lanes->lanes, sizeof(*drop));

    assert_non_null(drop);
    drop[1] = 1;
    x[0] = NAN;
    x[2] = 0;
    lanes->relu(y, x, n);
    lanes->relu_gradient(d, y, z, n);
    assert_true(isnan(y[0]) && y[2] == 0 && d[0] == z[0] && d[2] == 0);
    for (int64_t i = 3; i < all; i++) {
        assert_true(y[i] == (x[i] > 0 ? x[i] : 0));
        assert_true(d[i] == (x[i] > 0 ? z[i] : 0));
    }
    x[1] = INFINITY;
    lanes->drop(y, x, drop, 2, 1, n);
    for (int64_t i = 1; i < all; i++)
        assert_true(y[i] == (i % lanes->lanes == 1 ? 0 : 2 * x[i]));
    x[0] = x[1] = 0.5f;
    lanes->add(y, x, z, n);
    lanes->combine(d, x, 3, z, -2, 0.25f, n);
    for (int64_t i = 0; i < all; i++) {
        assert_true(y[i] == x[i] + z[i]);
        near((double)d[i], 3 * (double)x[i] - 2 * (double)z[i] + 0.25, lanes);
    }
    co_free(x);
    co_free(z);
    co_free(y);
    co_free(d);
    co_free(drop);
}

static void sums(const lanes_loops *lanes)
{
    const int64_t n = 7;
    float *x = make_numbers(18, n * lanes->lanes), *z = make_numbers(19, n * lanes->lanes);
    _Alignas(64) float sum[LANES_MOST] = {0}, squares[LANES_MOST] = {0};
    _Alignas(64) float products[LANES_MOST] = {0};

    lanes->sum(sum, x, n);
    lanes->sum_squares(squares, x, 0.5f, n);
    lanes->sum_products(products, x, 0.5f, z, n);
    for (int64_t l = 0; l < lanes->lanes; l++) {
        double a = 0, b = 0, c = 0;

        for (int64_t i = l; i < n * lanes->lanes; i += lanes->lanes) {
            a += (double)x[i];
            b += ((double)x[i] - 0.5) * ((double)x[i] - 0.5);
            c += ((double)x[i] - 0.5) * (double)z[i];
        }
        near((double)sum[l], a, lanes);
        near((double)squares[l], b, lanes);
        near((double)products[l], c, lanes);
    }
    co_free(x);
    co_free(z);
}

/* x of sample l in (h, w, c) with padding */
static double seen(const float *split, const lanes_sparse *s, int64_t l, int64_t at)
{
    return (double)split[l * s->sample + at];
}

static void check_spots(const lanes_loops *lanes, const lanes_sparse *s, int64_t kw,
                        const float *split, const float *dy)
{
    const int64_t n = lanes->lanes, size = s->kh * s->part;
    const lanes_spots spots = {co_calloc_aligned((size_t)(n * s->room), sizeof(float)),
                               co_calloc_aligned((size_t)(n * s->room), sizeof(int32_t)),
                               co_calloc_aligned((size_t)(n * s->o), sizeof(int32_t))};
    float *bias_sum = co_calloc_aligned((size_t)(n * s->o), sizeof(*bias_sum));
    float *sum = co_calloc_aligned((size_t)(s->o * size), sizeof(*sum));
    double *want = co_calloc((size_t)(s->o * size), sizeof(*want));

    assert_true(spots.value && spots.at && spots.end && bias_sum && sum && want);
    lanes->list(&spots, bias_sum, dy, NULL, s);
    lanes->sparse_weight(sum, split, &spots, n, s);
    for (int64_t e = 0; e < s->spots * n; e++) {
        const int64_t l = e % n, v = e / n % s->ow, u = e / n / s->ow % s->oh;
        const int64_t o = e / n / s->ow / s->oh;

        for (int64_t i = 0; i < s->kh; i++)
            for (int64_t j = 0; j < kw * s->c; j++) {
                const int64_t k = (o * s->kh + i) * s->part + j;
                const int64_t at = (u * s->stride_h + i) * s->row + v * s->stride_w * s->c + j;

                want[k] += (double)dy[e] * seen(split, s, l, at);
            }
    }
    for (int64_t k = 0; k < s->o * size; k++)
        if (k % s->part < kw * s->c)
            near((double)sum[k], want[k], lanes);
    co_free(spots.value);
    co_free(spots.at);
    co_free(spots.end);
    co_free(bias_sum);
    co_free(sum);
    co_free(want);
}

/* What is split comes back where it was, and nothing else of the image is touched. */
static void check_join(const lanes_loops *lanes, const lanes_sparse *s, const float *split,
                       const float *x)
{
    const int64_t n = lanes->lanes, rows = s->plane / s->across, all = s->c * s->plane * n;
    float *back = make_numbers(21, all), *before = make_numbers(21, all);

    lanes->join(back, split, s);
    for (int64_t i = 0; i < all; i++) {
        const int64_t row = i / n / s->across % rows, column = i / n % s->across;

        assert_true(back[i] == (row < s->h && column < s->w ? x : before)[i]);
    }
    co_free(back);
    co_free(before);
}

/* Every number of rows and of vectors per channel weight up to 7, of whole images and of their
   first rows and columns. */
static void spots(const lanes_loops *lanes)
{
    for (int64_t kh = 1; kh <= 7; kh++)
        for (int64_t vectors = 1; vectors <= 7; vectors++) {
            const int64_t n = lanes->lanes, kw = kh % 2 + 1, c = vectors * n / kw - kh % 3;
            lanes_sparse s = {.c = c, .h = kh + 3, .w = kw + 2, .o = 3, .kh = kh, .pad_h = kh % 2};
            float *x, *split, *dy;

            s.pad_w = kh % 3 / 2;
            s.stride_h = s.stride_w = 1 + vectors % 2;
            s.oh = (s.h + 2 * s.pad_h - kh) / s.stride_h + 1;
            s.ow = (s.w + 2 * s.pad_w - kw) / s.stride_w + 1;
            s.fold = 1;
            s.across = s.w + vectors % 3;
            s.plane = (s.h + kh % 2) * s.across;
            s.row = s.step = (s.w + 2 * s.pad_w) * c;
            s.sample = (s.h + 2 * s.pad_h) * s.row + n;
            s.part = (kw * c + n - 1) / n * n;
            s.spots = s.o * s.oh * s.ow;
            s.room = s.spots + n;
            x = make_numbers(20, s.c * s.plane * n);
            dy = make_numbers(23, s.spots * n);
            split = co_calloc_aligned((size_t)(s.sample * n), sizeof(*split));
            assert_non_null(split);
            for (int64_t e = 0; e < s.spots * n; e++)
                dy[e] = e % 3 && e % 5 ? 0 : dy[e];
            assert_int_equal(lanes->count(dy, NULL, s.spots), (s.spots * n + 2) / 3 +
                                                                  (s.spots * n + 4) / 5 -
                                                                  (s.spots * n + 14) / 15);
            lanes->split(split, x, &s);
            check_join(lanes, &s, split, x);
            check_spots(lanes, &s, kw, split, dy);
            co_free(x);
            co_free(dy);
            co_free(split);
        }
}

/* Elements of few and of many nonzeros, in order, with windows whose maximum is at a place. */
static void lists(const lanes_loops *lanes, int64_t every, bool pooled)
{
    const int64_t n = lanes->lanes, spots = 3 * 5 * 7;
    const lanes_sparse s = {.o = 3,
                            .oh = 5,
                            .ow = 7,
                            .c = 2,
                            .row = 40,
                            .stride_h = 2,
                            .stride_w = 2,
                            .spots = spots,
                            .room = spots + n,
                            .pooled = pooled,
                            .window_w = 2,
                            .place_h = 40,
                            .place_w = 2};
    const lanes_spots to = {co_calloc_aligned((size_t)(n * s.room), sizeof(float)),
                            co_calloc_aligned((size_t)(n * s.room), sizeof(int32_t)),
                            co_calloc_aligned((size_t)(n * s.o), sizeof(int32_t))};
    float *dy = make_numbers(24, spots * n);
    uint8_t *place = co_calloc_aligned((size_t)(spots * n), 1);
    _Alignas(64) float sum[3 * LANES_MOST] = {0};

    assert_true(to.value && to.at && to.end && place);
    for (int64_t e = 0; e < spots * n; e++) {
        dy[e] = e * 7 % every ? 0 : dy[e];
        place[e] = (uint8_t)(e % 11 == 0 ? LANES_NOWHERE : e % 4);
    }
    lanes->list(&to, sum, dy, pooled ? place : NULL, &s);
    for (int64_t l = 0; l < n; l++)
        for (int64_t e = 0, k = l * s.room; e < spots; e++) {
            const int64_t i = e * n + l, u = e / s.ow % s.oh, v = e % s.ow;
            const int64_t at = u * 2 * s.row + v * 2 * s.c +
                               (pooled ? place[i] / 2 * s.place_h + place[i] % 2 * s.place_w : 0);

            if (dy[i] != 0 && !(pooled && place[i] == LANES_NOWHERE)) {
                assert_true(to.value[k] == dy[i]);
                assert_int_equal(to.at[k++], at);
            }
            if (u == s.oh - 1 && v == s.ow - 1)
                assert_int_equal(to.end[l * s.o + e / s.oh / s.ow], k - l * s.room);
        }
    co_free(to.value);
    co_free(to.at);
    co_free(to.end);
    co_free(dy);
    co_free(place);
}

/* Marks follow the item's one sequence of random numbers, and come back from what is kept. */
static void marks(const lanes_loops *lanes)
{
    const int64_t n = 9;
    const co_rng rng = {0x123456789abcdef, CO_RNG_TEST | 5 << 8, UINT64_C(9) << 32 | 77, 0};
    const size_t all = (size_t)(n * lanes->lanes);
    int32_t *mark = co_calloc_aligned(all, sizeof(*mark));
    int32_t *again = co_calloc_aligned(all, sizeof(*again));
    uint8_t kept[9 * LANES_MOST];
    uint32_t item[LANES_MOST];

    assert_true(mark && again);
    for (uint32_t l = 0; l < LANES_MOST; l++)
        item[l] = l * 0x10000001u;
    lanes->mark(mark, kept, &rng, item, 1u << 23, n);
    lanes->mark_again(again, kept, n);
    assert_memory_equal(again, mark, all * sizeof(*mark));
    for (int64_t l = 0; l < lanes->lanes; l++) {
        const co_rng one = {rng.seed, rng.stream, rng.step, item[l]};
        float u[9];

        co_rng_uniform(u, &one, 0, (uint64_t)n);
        for (int64_t e = 0; e < n; e++)
            assert_int_equal(mark[e * lanes->lanes + l], u[e] < 0.5f ? -1 : 0);
    }
    co_free(mark);
    co_free(again);
}

static void lanes_loops_of_every_level_equal_definition(void **state)
{
    (void)state;
    for (const lanes_loops *const *l = lanes_find_all(); *l; l++) {
        assert_true((*l)->lanes <= LANES_MOST);
        pack_and_back(*l);
        correlate_sizes(*l);
        elements(*l);
        sums(*l);
        spots(*l);
        for (int64_t every = 1; every <= 64; every *= 4) {
            lists(*l, every, false);
            lists(*l, every, true);
        }
        marks(*l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lanes_loops_of_every_level_equal_definition),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
