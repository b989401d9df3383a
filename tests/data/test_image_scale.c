/* test_image_scale.c - resampling and lookup equal their definitions, with every instruction
   set. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "draws.h"
#include "image/internal.h"
#include "image/lookup_table.h"

static double triangle(double x)
{
    return fabs(x) < 1 ? 1 - fabs(x) : 0;
}

/* Result i of one line by Pillow's definition: `in` with distance `step`. */
static uint8_t sample_line(const uint8_t *in, size_t step, int size, double start, double length,
                           int n, int i)
{
    const double scale = length / n, support = scale > 1 ? scale : 1;
    const double center = start + (i + 0.5) * scale;
    int first = (int)(center - support + 0.5), end = (int)(center + support + 0.5);
    double sum = 0;
    int64_t total = 1 << 21;

    first = first < 0 ? 0 : first;
    end = end > size ? size : end;
    for (int k = first; k < end; k++)
        sum += triangle((k - center + 0.5) * (1 / support));
    for (int k = first; k < end; k++)
        total += (int)(0.5 + triangle((k - center + 0.5) * (1 / support)) / sum * (1 << 22)) *
                 in[(size_t)k * step];
    total >>= 22;
    return (uint8_t)(total > 255 ? 255 : total);
}

/* One plane, horizontally first. */
static void sample_plane(uint8_t *out, const uint8_t *in, int width, int height,
                         const co_image_want *want)
{
    const int w = (int)want->width, h = (int)want->height;
    uint8_t *across = malloc((size_t)height * (size_t)w);

    assert_non_null(across);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < w; x++)
            across[y * w + x] =
                sample_line(in + y * width, 1, width, want->box.x, want->box.width, w, x);
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            out[y * w + x] =
                sample_line(across + x, (size_t)w, height, want->box.y, want->box.height, h, y);
    free(across);
}

/* Pass row y of the part with nonzero weights, as pixels or as consecutive planes. */
static void give_row(co_image_scaler *s, uint8_t *row, const uint8_t *in, size_t width,
                     size_t height, size_t y, bool planes)
{
    const size_t n = s->column.end - s->column.low, channels = s->lanes == 1 ? 1 : 3;
    const size_t room = width + CO_IMAGE_ROW_PAD;
    const uint8_t *const plane[3] = {row, row + room, row + 2 * room};

    for (size_t x = 0; x < n; x++)
        for (size_t c = 0; c < channels; c++)
            row[planes ? c * room + x : x * s->lanes + c] =
                in[(c * height + y) * width + x + s->column.low];
    if (planes)
        co_image_scaler_planes(s, plane);
    else
        co_image_scaler_row(s, row);
}

static void check_sampling(const co_image_loops *loops, const uint8_t *in, int width, int height,
                           int channels, const co_image_want *want, bool planes)
{
    const size_t size = (size_t)(want->width * want->height);
    uint8_t *expected = calloc(size, 1);
    void *got = malloc(size * (size_t)channels * sizeof(float));
    uint8_t *row = calloc((size_t)width * 4 + 3 * CO_IMAGE_ROW_PAD, 1);
    co_image_scaler scaler = {.loops = loops};
    const size_t lanes = channels == 1 ? 1 : 4;

    assert_true(got && expected && row);
    assert_int_equal(
        co_image_scaler_begin(&scaler, got, want, &want->box, (size_t)width, (size_t)height, lanes),
        CO_OK);
    for (size_t y = scaler.row.low; y < scaler.row.end; y++)
        give_row(&scaler, row, in, (size_t)width, (size_t)height, y, planes);
    for (int c = 0; c < channels; c++) {
        sample_plane(expected, in + c * height * width, width, height, want);
        for (size_t i = 0; i < size; i++) {
            const size_t w = (size_t)want->width, x = i % w;
            const uint8_t e = expected[want->mirror ? i - x + w - 1 - x : i];
            const float value = want->table ? ((float *)got)[(size_t)c * size + i]
                                            : ((uint8_t *)got)[(size_t)c * size + i];

            if (value != (want->table ? want->table[c].value[e] : e))
                fail_msg("%s, %d channels, box %gx%g at (%g, %g) to %dx%d%s%s%s: element %zu of "
                         "channel %d is %g, expected that of %u",
                         loops->name, channels, want->box.width, want->box.height, want->box.x,
                         want->box.y, (int)want->width, (int)want->height,
                         want->mirror ? ", mirrored" : "", want->table ? ", floats" : "",
                         planes ? ", planes" : "", i, c, (double)value, e);
        }
    }
    co_image_scaler_close(&scaler);
    free(got);
    free(expected);
    free(row);
}

static void resample_loops_of_every_level_equal_definition(void **state)
{
    enum { WIDTH = 67, HEIGHT = 53 };
    static uint8_t in[3 * HEIGHT * WIDTH];
    const co_image_loops *loops[CO_IMAGE_MAX_LOOPS];
    const size_t n_loops = co_image_loops_list(loops);
    static co_lookup_table table[3];

    (void)state;
    for (int i = 0; i < 3 * CO_LOOKUP_LEVELS; i++)
        table[i / CO_LOOKUP_LEVELS].value[i % CO_LOOKUP_LEVELS] = (float)i / 7.0f;
    for (int c = 0; c < 3; c++)
        co_lookup_split(&table[c]);
    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(i % 5 == 0 ? 255 : draw_word());
    for (int k = 0; k < 300; k++) {
        /* whole numbers, sometimes multiples of 1/64, which are exact in single precision */
        const double w = k % 3 ? 1 + draw_below(WIDTH) : (32 + draw_below(64 * WIDTH - 31)) / 64.0;
        const double h =
            k % 3 ? 1 + draw_below(HEIGHT) : (32 + draw_below(64 * HEIGHT - 31)) / 64.0;
        double x = (WIDTH - w) * (double)draw_unit(), y = (HEIGHT - h) * (double)draw_unit();
        const co_image_want want = {
            {k % 3 ? floor(x) : floor(x * 64) / 64, k % 3 ? floor(y) : floor(y * 64) / 64, w, h},
            3,
            1 + draw_below(70),
            1 + draw_below(70),
            false,
            NULL,
            false,
            false};

        for (size_t l = 0; l < n_loops; l++) {
            co_image_want all = want;

            all.mirror = k % 4 < 2;
            all.table = k % 5 < 3 ? table : NULL;
            all.stream = k % 2;
            check_sampling(loops[l], in, WIDTH, HEIGHT, 3, &all, k % 7 < 3);
            all.channels = 1;
            check_sampling(loops[l], in, WIDTH, HEIGHT, 1, &all, k % 7 < 3);
        }
    }
}

static void check_lookup(void (*lookup)(float *, const uint8_t *, size_t, const co_lookup_table *),
                         const co_lookup_table *table, size_t n, size_t askew)
{
    static _Alignas(64) float block[1001 + 16];
    static uint8_t in[1001];
    float *out = block + askew;

    for (size_t i = 0; i < sizeof(in); i++)
        in[i] = (uint8_t)(i * 89 + i / 256);
    for (size_t i = 0; i <= n; i++)
        out[i] = 7;
    lookup(out, in, n, table);
    co_lookup_fence();
    for (size_t i = 0; i < n; i++)
        assert_float_equal(out[i], table->value[in[i]], 0);
    assert_float_equal(out[n], 7, 0);
}

static void lookup_loops_of_every_level_equal_table(void **state)
{
    const co_lookup_loops *loops[CO_LOOKUP_MAX_LOOPS];
    const size_t n_loops = co_lookup_loops_list(loops);
    static co_lookup_table known, any;

    (void)state;
    co_lookup_make(&known, 0.485f, 0.229f);
    for (int i = 0; i < CO_LOOKUP_LEVELS; i++) {
        assert_float_equal(known.value[i], ((float)i / 255.0f - 0.485f) / 0.229f, 0);
        any.value[i] = (float)(i * 37 % 256) / 7.0f;
    }
    co_lookup_split(&any);
    assert_true(known.formula.holds && !any.formula.holds);
    for (size_t n = 0; n <= 1000; n += n < 200 ? 1 : 100)
        for (size_t askew = 0; askew < 16; askew += 5) {
            check_lookup(co_lookup, &any, n, askew);
            check_lookup(co_lookup_stream, &any, n, askew);
            for (size_t l = 0; l < n_loops; l++) {
                check_lookup(loops[l]->look, &known, n, askew);
                check_lookup(loops[l]->stream, &known, n, askew);
            }
        }
}

/* Multiplying by an inverse is not division, but gives the same result for nearly all tables. */
static void lookup_computed_values_equal_table(void **state)
{
    const co_lookup_loops *loops[CO_LOOKUP_MAX_LOOPS];
    const size_t n_loops = co_lookup_loops_list(loops);
    static co_lookup_table table;
    int held = 0;

    (void)state;
    for (int k = 0; k < 1000; k++) {
        co_lookup_make(&table, draw_unit(), 0.05f + draw_unit());
        held += table.formula.holds;
        for (size_t l = 0; l < n_loops; l++)
            if (table.formula.holds || !loops[l]->by_formula)
                check_lookup(loops[l]->look, &table, 1000, 0);
    }
    assert_true(held > 990);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resample_loops_of_every_level_equal_definition),
        cmocka_unit_test(lookup_loops_of_every_level_equal_table),
        cmocka_unit_test(lookup_computed_values_equal_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
