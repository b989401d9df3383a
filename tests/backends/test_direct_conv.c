/*
 * test_direct_conv.c - the loops of direct convolution, each instruction set that this machine has,
 * against plain arithmetic: every size of a tile, both kinds of images, and nothing written beside.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "backends/backends_test.h"
#include "kernels/direct_conv/direct_conv.h"

#define MOST_PIXELS 17 /* more than one tile */
#define STEPS       11 /* more than the loops take at once, and a rest */

static const direct_conv_loops *const *find_all(void)
{
    static const direct_conv_loops *const all[] = {
        KERNELS_LIST(direct_conv_loops, &direct_conv_loops_basic, NULL)};

    return all + kernels_too_new();
}

static void near(double got, double want, const char *what)
{
    if (!(fabs(got - want) <= 2e-5 * (1 + fabs(want))))
        fail_msg("%s: %.9g instead of %.9g", what, got, want);
}

/* What a product reads and writes: rows with gaps, two blocks, and steps all over an image. */
typedef struct setup {
    int64_t at[STEPS], width, size; /* floats of a pixel, and of x */
    direct_conv_sum sum;
    direct_conv_area area;
    int64_t panel, y_size;
} setup;

static setup make_setup(const direct_conv_loops *loops, int64_t rows, int64_t pixels, bool blocks)
{
    const int64_t width = blocks ? loops->lanes : 1, stride = 1 + (rows + pixels) % 4;
    const int64_t x_row = (stride * pixels + 2) * width;
    const int64_t y_row = (2 * pixels + 1) * loops->lanes;
    setup s = {.width = width,
               .size = (rows + 4) * x_row + STEPS * width,
               .sum = {.steps = STEPS, .blocks = blocks},
               .area = {.rows = rows,
                        .pixels = pixels,
                        .y_row = y_row,
                        .y_pixel = 2 * loops->lanes,
                        .y_block = rows * y_row,
                        .x_row = x_row,
                        .x_pixel = stride * width},
               .panel = STEPS * width * loops->lanes,
               .y_size = 2 * rows * y_row};

    for (int64_t i = 0; i < STEPS; i++)
        s.at[i] = i * 7 % 3 * x_row + i * 5 % STEPS * width;
    return s;
}

static double product(const setup *s, const float *x, const float *w, int lanes, int64_t r,
                      int64_t p, int64_t l)
{
    double sum = 0;

    for (int64_t i = 0; i < STEPS * s->width; i++)
        sum += (double)
                   x[s->at[i / s->width] + r * s->area.x_row + p * s->area.x_pixel + i % s->width] *
               (double)w[i * lanes + l];
    return sum;
}

static void check_multiply(const direct_conv_loops *loops, int64_t rows, int64_t pixels,
                           int columns, bool blocks, bool biased)
{
    const int lanes = loops->lanes;
    setup s = make_setup(loops, rows, pixels, blocks);
    float *x = make_numbers(1, s.size), *w = make_numbers(2, 2 * s.panel);
    float *bias = make_numbers(3, 2 * lanes), *y = make_numbers(4, s.y_size);
    float *before = make_numbers(4, s.y_size);

    s.sum.at = s.at;
    loops->multiply(y, x, w, s.panel, biased ? bias : NULL, columns, &s.area, &s.sum);
    for (int64_t i = 0; i < s.y_size; i++) {
        const int64_t block = i / s.area.y_block, r = i % s.area.y_block / s.area.y_row;
        const int64_t p = i % s.area.y_row / lanes, l = i % lanes;

        if (block >= columns || p % 2 || p / 2 >= pixels)
            assert_true(y[i] == before[i]);
        else
            near((double)y[i],
                 product(&s, x, w + block * s.panel, lanes, r, p / 2, l) +
                     (biased ? (double)bias[block * lanes + l] : 0),
                 "product");
    }
    co_free(x), co_free(w), co_free(bias), co_free(y), co_free(before);
}

static void direct_conv_any_tile_equals_sum_of_products(void **state)
{
    (void)state;
    for (const direct_conv_loops *const *loops = find_all(); *loops; loops++)
        for (int64_t pixels = 1; pixels <= MOST_PIXELS; pixels++)
            for (int64_t rows = 1; rows <= 3; rows++)
                for (int kind = 0; kind < 4; kind++)
                    check_multiply(*loops, rows, pixels, 1 + kind / 2, kind % 2 != 0, rows == 2);
}

/* Over two samples, whose numbers follow each other. */
static void check_correlate(const direct_conv_loops *loops, int64_t rows, int64_t pixels,
                            int columns, bool blocks, bool add)
{
    const int lanes = loops->lanes;
    setup s = make_setup(loops, rows, pixels, blocks);
    const int64_t dy_block = rows * pixels * lanes;
    const direct_conv_walk walk = {.samples = 2,
                                   .rows = rows,
                                   .pixels = pixels,
                                   .x_sample = s.size,
                                   .x_row = s.area.x_row,
                                   .x_pixel = s.area.x_pixel,
                                   .dy_sample = 2 * dy_block,
                                   .dy_row = pixels * lanes,
                                   .dy_block = dy_block};
    float *x = make_numbers(1, 2 * s.size), *dy = make_numbers(2, 4 * dy_block);
    float *dw = make_numbers(3, 2 * s.panel), *before = make_numbers(3, 2 * s.panel);

    s.sum.at = s.at;
    loops->correlate(dw, s.panel, x, dy, columns, &walk, &s.sum, add);
    for (int64_t i = 0; i < 2 * s.panel; i++) {
        const int64_t block = i / s.panel, c = i % s.panel / lanes, l = i % lanes;
        double want = add ? (double)before[i] : 0;

        for (int64_t e = 0; e < 2 * rows * pixels; e++) {
            const int64_t n = e / (rows * pixels), r = e / pixels % rows, p = e % pixels;

            want +=
                (double)x[n * s.size + s.at[c / s.width] + r * s.area.x_row + p * s.area.x_pixel +
                          c % s.width] *
                (double)dy[n * walk.dy_sample + block * dy_block + (r * pixels + p) * lanes + l];
        }
        if (block >= columns)
            assert_true(dw[i] == before[i]);
        else
            near((double)dw[i], want, "gradient");
    }
    co_free(x), co_free(dy), co_free(dw), co_free(before);
}

static void direct_conv_gradient_equals_sum_of_products(void **state)
{
    (void)state;
    for (const direct_conv_loops *const *loops = find_all(); *loops; loops++)
        for (int64_t pixels = 1; pixels <= 5; pixels++)
            for (int kind = 0; kind < 8; kind++)
                check_correlate(*loops, 1 + pixels % 3, pixels, 1 + kind / 4, kind % 2 != 0,
                                kind / 2 % 2 != 0);
}

static void direct_conv_sum_adds_every_pixel(void **state)
{
    (void)state;
    for (const direct_conv_loops *const *loops = find_all(); *loops; loops++)
        for (int64_t pixels = 1; pixels <= 9; pixels++) {
            const int lanes = (*loops)->lanes;
            float *dy = make_numbers(1, pixels * lanes), *sum = make_numbers(2, lanes);
            float *before = make_numbers(2, lanes);

            (*loops)->add_up(sum, dy, pixels);
            for (int64_t l = 0; l < lanes; l++) {
                double want = (double)before[l];

                for (int64_t p = 0; p < pixels; p++)
                    want += (double)dy[p * lanes + l];
                near((double)sum[l], want, "sum");
            }
            co_free(dy), co_free(sum), co_free(before);
        }
}

static void check_spread(const direct_conv_loops *loops, bool blocks, int64_t top, int64_t left)
{
    static const int64_t step[2] = {1, 1};
    const int64_t width = blocks ? loops->lanes : 1, h = 5, w = 19, rows = 6, columns = 21;
    const direct_conv_spread how = {.h = h,
                                    .w = w,
                                    .rows = rows,
                                    .columns = columns,
                                    .top = top,
                                    .left = left,
                                    .step = step,
                                    .blocks = blocks};
    float *from = make_numbers(1, h * w * width), *to = make_numbers(2, rows * columns * width);

    loops->spread(to, from, &how);
    for (int64_t i = 0; i < rows * columns * width; i++) {
        const int64_t r = top + i / width / columns;
        const int64_t c = left + i / width % columns;
        const bool inside = r >= 0 && r < h && c >= 0 && c < w;

        assert_true(to[i] == (inside ? from[(r * w + c) * width + i % width] : 0));
    }
    co_free(from), co_free(to);
}

static void direct_conv_copy_has_padding(void **state)
{
    (void)state;
    for (const direct_conv_loops *const *loops = find_all(); *loops; loops++)
        for (int64_t top = -7; top <= 6; top++)
            for (int64_t left = -22; left <= 20; left++) {
                check_spread(*loops, false, top, left);
                check_spread(*loops, true, top, left);
            }
}

/* The place of an element in packed blocks. */
static int64_t place(const direct_conv_weight *shape, int lanes, int64_t c, int64_t t)
{
    if (!shape->blocks)
        return (c * shape->taps + t) * lanes;
    return ((c / lanes * shape->taps + t) * lanes + c % lanes) * lanes;
}

static void check_weight(const direct_conv_loops *loops, const direct_conv_weight *shape)
{
    const int lanes = loops->lanes;
    const int64_t blocks = (shape->out + lanes - 1) / lanes;
    const int64_t in = shape->blocks ? (shape->in + lanes - 1) / lanes * lanes : shape->in;
    const int64_t panel = in * shape->taps * lanes, all = shape->out * shape->in * shape->taps;
    float *w = make_numbers(1, all), *packed = make_numbers(2, blocks * panel);
    float *back = make_numbers(3, all), *before = make_numbers(3, all);
    double sum = 0;

    for (int64_t k = 0; k < blocks; k++)
        loops->pack(packed + k * panel, w, shape, k);
    for (int64_t i = 0; i < all; i++) {
        const int64_t o = i / (shape->in * shape->taps), c = i / shape->taps % shape->in;

        assert_true(
            packed[o / lanes * panel + place(shape, lanes, c, i % shape->taps) + o % lanes] ==
            w[i]);
        sum += fabs((double)w[i]);
    }
    for (int64_t i = 0; i < blocks * panel; i++)
        sum -= fabs((double)packed[i]);
    assert_true(fabs(sum) < 1e-9 * (double)(blocks * panel)); /* padding is 0 */
    for (int add = 0; add < 2; add++) {
        for (int64_t i = 0; add && i < all; i++)
            back[i] = before[i];
        for (int64_t k = 0; k < blocks; k++)
            loops->unpack(back, packed + k * panel, shape, k, add);
        for (int64_t i = 0; i < all; i++)
            assert_true(back[i] == (add ? before[i] + w[i] : w[i]));
    }
    co_free(w), co_free(packed), co_free(back), co_free(before);
}

static void direct_conv_packed_weight_unpacks(void **state)
{
    static const int64_t out[] = {1, 8, 16, 19, 32}, in[] = {1, 3, 8, 16, 17, 32};

    (void)state;
    for (const direct_conv_loops *const *loops = find_all(); *loops; loops++)
        for (size_t i = 0; i < sizeof(out) / sizeof(out[0]) * 6; i++)
            for (int64_t taps = 1; taps <= 9; taps += 4) {
                const direct_conv_weight few = {out[i / 6], in[i % 6], taps, false};
                const direct_conv_weight many = {out[i / 6], in[i % 6], taps, true};

                check_weight(*loops, &few);
                check_weight(*loops, &many);
            }
}

static void direct_conv_turned_square_is_transposed(void **state)
{
    (void)state;
    for (const direct_conv_loops *const *loops = find_all(); *loops; loops++) {
        const int lanes = (*loops)->lanes;
        float *from = make_numbers(1, lanes * lanes), *to = make_numbers(2, lanes * lanes);

        (*loops)->turn(to, from);
        for (int i = 0; i < lanes * lanes; i++)
            assert_true(to[i] == from[i % lanes * lanes + i / lanes]);
        co_free(from), co_free(to);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(direct_conv_any_tile_equals_sum_of_products),
        cmocka_unit_test(direct_conv_gradient_equals_sum_of_products),
        cmocka_unit_test(direct_conv_sum_adds_every_pixel),
        cmocka_unit_test(direct_conv_copy_has_padding),
        cmocka_unit_test(direct_conv_packed_weight_unpacks),
        cmocka_unit_test(direct_conv_turned_square_is_transposed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
