/*
 * direct_conv_tiles.h - the loops of direct_conv.h for tensors of BF16 in blocks of 32 channels,
 * with the products of kernels/tiles.h. Included by a file that defines DIRECT_CONV_TABLE and
 * DIRECT_CONV_NAME, and TILES_PLAIN for plain C.
 *
 * Forward and to the inputs, a tile's rows are pixels, which are neighbours in an image: rows of
 * the image follow each other with their padding, and what is computed there is dropped. To the
 * weights they are output channels, of which dy has lines of pixels; see `lines`.
 */
#include "kernels/tiles.h"

#define LANES             16
#define DIRECT_CONV_BLOCK TILES_NUMBERS
#define DIRECT_CONV_WORDS (DIRECT_CONV_BLOCK / 2)

/* Of weights, too: halves of the columns are apart, so that a tile is read in one piece. */
#define DIRECT_CONV_PAIR_COLUMNS TILES_FLOATS

#include "kernels/direct_conv/direct_conv_images.h"
/* after it */
#include "kernels/direct_conv/direct_conv_half.h"
#include "kernels/direct_conv/direct_conv_turned.h"

#define DIRECT_CONV_SQUARE (DIRECT_CONV_BLOCK * DIRECT_CONV_BLOCK)
/* Bytes from a row of a block of floats or pairs to the next. */
#define DIRECT_CONV_STRIDE (DIRECT_CONV_BLOCK * (int)sizeof(float))

/* --- products --- */

/* How the pixels of an area are put into tiles of `count` rows: each of its rows begins a tile, or
   only the first does and rows follow each other, gaps included. */
typedef struct direct_conv_cut {
    int64_t length, pitch; /* pixels of a run; of a row, with its gap */
    int64_t each, tiles;   /* of a run; of all */
    int count;
    bool rows; /* each row is a run */
} direct_conv_cut;

/* A tile: its first pixel, and what that is in words from x. */
typedef struct direct_conv_spot {
    int64_t row, column, at;
} direct_conv_spot;

static direct_conv_cut direct_conv_cut_runs(int64_t length, int64_t runs)
{
    const int64_t each = (length + TILES_ROWS - 1) / TILES_ROWS;

    return (direct_conv_cut){.length = length,
                             .each = each,
                             .tiles = runs * each,
                             .count = (int)((length + each - 1) / each)};
}

/* Loading the weights' tiles takes as long as products with that many pixels. */
#define DIRECT_CONV_LOAD 16

static direct_conv_cut direct_conv_cut_area(const direct_conv_area *area)
{
    const int64_t pitch = area->rows > 1 ? area->x_row / area->x_pixel : area->pixels;
    direct_conv_cut rows = direct_conv_cut_runs(area->pixels, area->rows);
    direct_conv_cut run = direct_conv_cut_runs((area->rows - 1) * pitch + area->pixels, 1);

    rows.rows = true;
    run.pitch = pitch;
    if (area->rows > 1 && area->x_row % area->x_pixel)
        return rows;
    return rows.tiles * (rows.count + DIRECT_CONV_LOAD) <=
                   run.tiles * (run.count + DIRECT_CONV_LOAD)
               ? rows
               : run;
}

/* The last tile of a run may compute some pixels again, with the same result, so that nothing is
   read after them. */
static direct_conv_spot direct_conv_find_tile(const direct_conv_cut *cut,
                                              const direct_conv_area *area, int64_t i)
{
    const int64_t run = i / cut->each, last = cut->length - cut->count;
    const int64_t first = direct_conv_least(i % cut->each * cut->count, last);

    if (cut->rows)
        return (direct_conv_spot){run, first, run * area->x_row + first * area->x_pixel};
    return (direct_conv_spot){first / cut->pitch, first % cut->pitch, first * area->x_pixel};
}

/* Sums of two tiles that are still to be rounded and put into y, which is done row by row between
   the products of the next ones: so it takes no time of its own. */
typedef struct direct_conv_late {
    _Alignas(TILES_BYTES) float sums[2 * TILES_ROWS * DIRECT_CONV_BLOCK];
    uint16_t *y;
    const int64_t *at; /* of each row, from y; less than 0: in a gap */
    int rows;
    bool past;
} direct_conv_late;

/* Stores past the caches are seen by others after a fence. */
static void direct_conv_settle(const direct_conv_area *area)
{
#ifdef __AVX512BF16__
    if (area->past)
        _mm_sfence();
#else
    (void)area;
#endif
}

SIMD_INLINE void direct_conv_put_row(const direct_conv_late *late, int row)
{
    const float *sums = late->sums + row * DIRECT_CONV_BLOCK;
    const int64_t at = late->at[row];

    if (at < 0)
        return;
#ifdef __AVX512BF16__
    if (late->past) {
        _mm512_stream_si512(
            (void *)(late->y + at),
            (__m512i)_mm512_cvtne2ps_pbh((__m512)simd_load(sums + LANES), (__m512)simd_load(sums)));
        return;
    }
#endif
    half16_store_two(late->y + at, simd_load(sums), simd_load(sums + LANES));
}

static void direct_conv_put_late(const direct_conv_late *late)
{
    for (int row = 0; row < late->rows; row++)
        direct_conv_put_row(late, row);
}

/* Of the tiles at x and `second` and a block of results; what is late before, and these after. */
static void direct_conv_sum_up(tiles *t, direct_conv_late *late, int count, const float *x,
                               const float *second, int64_t x_pixel, const float *w,
                               const float *bias, const direct_conv_sum *sum)
{
    const int64_t stride = x_pixel * (int64_t)sizeof(float);
    const int rows = late->rows;
    const int each = sum->steps > 0 ? (int)((rows + sum->steps - 1) / sum->steps) : 0;
    float *sums = late->sums, *others = sums + count * DIRECT_CONV_BLOCK;
    int row = 0;

    tiles_start(t, bias);
    for (int64_t s = 0; s < sum->steps; s++, w += DIRECT_CONV_SQUARE / 2) {
        TILES_PASS(t, 6, w, TILES_BYTES);
        TILES_LOAD(t, 4, x + sum->at[s], stride);
        TILES_MULTIPLY(t, 0, 4, 6);
        TILES_LOAD(t, 5, second + sum->at[s], stride);
        TILES_MULTIPLY(t, 2, 5, 6);
        TILES_PASS(t, 7, w + DIRECT_CONV_SQUARE / 4, TILES_BYTES);
        TILES_MULTIPLY(t, 1, 4, 7);
        TILES_MULTIPLY(t, 3, 5, 7);
        for (int end = row + each < rows ? row + each : rows; row < end; row++)
            direct_conv_put_row(late, row);
    }
    for (; row < rows; row++) /* without steps */
        direct_conv_put_row(late, row);
    TILES_STORE(t, 0, sums, DIRECT_CONV_STRIDE);
    TILES_STORE(t, 1, sums + TILES_FLOATS, DIRECT_CONV_STRIDE);
    TILES_STORE(t, 2, others, DIRECT_CONV_STRIDE);
    TILES_STORE(t, 3, others + TILES_FLOATS, DIRECT_CONV_STRIDE);
}

/* Where a tile's rows go in y; less than 0 in gaps. */
static void direct_conv_find_rows(int64_t *at, const direct_conv_spot *spot,
                                  const direct_conv_cut *cut, const direct_conv_area *area)
{
    int64_t row = spot->row * area->y_row, column = spot->column;

    for (int i = 0; i < cut->count; i++) {
        at[i] = column < area->pixels ? row + column * area->y_pixel : -1;
        if (++column == cut->pitch) {
            column = 0;
            row += area->y_row;
        }
    }
}

/* Two tiles of pixels and all blocks of results at once, while the pixels are in the first cache.
 */
static void direct_conv_multiply(void *y, const float *x, const float *w, int64_t panel,
                                 const float *bias, int columns, const direct_conv_area *area,
                                 const direct_conv_sum *sum)
{
    const direct_conv_cut cut = direct_conv_cut_area(area);
    direct_conv_late late;
    int64_t at[2][2 * TILES_ROWS]; /* of the tiles that are late, and the next */
    tiles t;

    late.rows = 0;
    late.past = area->past;
    tiles_begin(&t, cut.count);
    for (int64_t i = 0; i < cut.tiles; i += 2) {
        const bool both = i + 1 < cut.tiles;
        const direct_conv_spot first = direct_conv_find_tile(&cut, area, i);
        const direct_conv_spot second = direct_conv_find_tile(&cut, area, i + both);
        int64_t *rows = at[i / 2 % 2];

        direct_conv_find_rows(rows, &first, &cut, area);
        direct_conv_find_rows(rows + cut.count, &second, &cut, area);
        for (int q = 0; q < columns; q++) {
            direct_conv_sum_up(&t, &late, cut.count, x + first.at, x + second.at, area->x_pixel,
                               w + q * panel, bias ? bias + q * DIRECT_CONV_BLOCK : NULL, sum);
            late.y = (uint16_t *)y + q * area->y_block;
            late.at = rows;
            late.rows = (1 + both) * cut.count;
        }
    }
    direct_conv_put_late(&late);
    direct_conv_settle(area);
    tiles_end(&t);
}

/* --- gradients of weights --- */

/* dw (32 out, 32 in) of one step. */
static void direct_conv_correlation(tiles *t, float *dw, const float *x, const float *dy,
                                    const direct_conv_walk *walk, bool add)
{
    float *second = dw + TILES_ROWS * DIRECT_CONV_BLOCK;

    if (add) {
        TILES_LOAD(t, 0, dw, DIRECT_CONV_STRIDE);
        TILES_LOAD(t, 1, dw + TILES_FLOATS, DIRECT_CONV_STRIDE);
        TILES_LOAD(t, 2, second, DIRECT_CONV_STRIDE);
        TILES_LOAD(t, 3, second + TILES_FLOATS, DIRECT_CONV_STRIDE);
    } else {
        tiles_start(t, NULL);
    }
    for (int64_t n = 0; n < walk->samples; n++, x += walk->x_sample, dy += walk->dy_sample)
        for (int64_t p = 0; p < walk->pixels; p += DIRECT_CONV_AFTER) {
            const float *lines = dy + p * DIRECT_CONV_BLOCK, *pairs = x + p * DIRECT_CONV_BLOCK;

            TILES_PASS(t, 6, pairs, DIRECT_CONV_STRIDE);
            TILES_PASS(t, 4, lines, TILES_BYTES);
            TILES_MULTIPLY(t, 0, 4, 6);
            TILES_PASS(t, 5, lines + TILES_ROWS * DIRECT_CONV_AFTER, TILES_BYTES);
            TILES_MULTIPLY(t, 2, 5, 6);
            TILES_PASS(t, 7, pairs + TILES_FLOATS, DIRECT_CONV_STRIDE);
            TILES_MULTIPLY(t, 1, 4, 7);
            TILES_MULTIPLY(t, 3, 5, 7);
        }
    TILES_STORE(t, 0, dw, DIRECT_CONV_STRIDE);
    TILES_STORE(t, 1, dw + TILES_FLOATS, DIRECT_CONV_STRIDE);
    TILES_STORE(t, 2, second, DIRECT_CONV_STRIDE);
    TILES_STORE(t, 3, second + TILES_FLOATS, DIRECT_CONV_STRIDE);
}

#define DIRECT_CONV_ROWS 3 /* of a kernel, whose steps are summed up together */

/* dw of steps that read rows of one copy, most of whose lines are in the first-level cache then:
   32 outputs and, one after the other, both halves of the inputs. The order of sums is that of
   direct_conv_correlation. */
static void direct_conv_correlate_rows(tiles *t, float *const dw[DIRECT_CONV_ROWS],
                                       const float *const x[DIRECT_CONV_ROWS], const float *dy,
                                       const direct_conv_walk *walk, bool add)
{
    const int64_t second = TILES_ROWS * DIRECT_CONV_BLOCK;

    for (int64_t h = 0; h < DIRECT_CONV_BLOCK; h += TILES_FLOATS) {
        if (add) {
            TILES_LOAD(t, 0, dw[0] + h, DIRECT_CONV_STRIDE);
            TILES_LOAD(t, 1, dw[0] + second + h, DIRECT_CONV_STRIDE);
            TILES_LOAD(t, 2, dw[1] + h, DIRECT_CONV_STRIDE);
            TILES_LOAD(t, 3, dw[1] + second + h, DIRECT_CONV_STRIDE);
            TILES_LOAD(t, 4, dw[2] + h, DIRECT_CONV_STRIDE);
            TILES_LOAD(t, 5, dw[2] + second + h, DIRECT_CONV_STRIDE);
        } else {
            tiles_start(t, NULL);
            TILES_ZERO(t, 4);
            TILES_ZERO(t, 5);
        }
        for (int64_t n = 0; n < walk->samples; n++)
            for (int64_t p = 0; p < walk->pixels; p += DIRECT_CONV_AFTER) {
                const int64_t at = n * walk->x_sample + p * DIRECT_CONV_BLOCK + h;
                const float *lines = dy + n * walk->dy_sample + p * DIRECT_CONV_BLOCK;

                TILES_LOAD(t, 7, lines, TILES_BYTES);
                TILES_LOAD(t, 6, x[0] + at, DIRECT_CONV_STRIDE);
                TILES_MULTIPLY(t, 0, 7, 6);
                TILES_LOAD(t, 6, x[1] + at, DIRECT_CONV_STRIDE);
                TILES_MULTIPLY(t, 2, 7, 6);
                TILES_LOAD(t, 6, x[2] + at, DIRECT_CONV_STRIDE);
                TILES_MULTIPLY(t, 4, 7, 6);
                TILES_LOAD(t, 7, lines + TILES_ROWS * DIRECT_CONV_AFTER, TILES_BYTES);
                TILES_MULTIPLY(t, 5, 7, 6);
                TILES_LOAD(t, 6, x[1] + at, DIRECT_CONV_STRIDE);
                TILES_MULTIPLY(t, 3, 7, 6);
                TILES_LOAD(t, 6, x[0] + at, DIRECT_CONV_STRIDE);
                TILES_MULTIPLY(t, 1, 7, 6);
            }
        TILES_STORE(t, 0, dw[0] + h, DIRECT_CONV_STRIDE);
        TILES_STORE(t, 1, dw[0] + second + h, DIRECT_CONV_STRIDE);
        TILES_STORE(t, 2, dw[1] + h, DIRECT_CONV_STRIDE);
        TILES_STORE(t, 3, dw[1] + second + h, DIRECT_CONV_STRIDE);
        TILES_STORE(t, 4, dw[2] + h, DIRECT_CONV_STRIDE);
        TILES_STORE(t, 5, dw[2] + second + h, DIRECT_CONV_STRIDE);
    }
}

/* All steps of a block of inputs and one of outputs. */
static void direct_conv_correlate_block(tiles *t, float *dw, const float *x, const float *dy,
                                        const direct_conv_walk *walk, const direct_conv_sum *sum,
                                        bool add)
{
    const int64_t columns = walk->columns;

    if (columns == 0 || sum->steps != DIRECT_CONV_ROWS * columns) {
        for (int64_t s = 0; s < sum->steps; s++)
            direct_conv_correlation(t, dw + s * DIRECT_CONV_SQUARE, x + sum->at[s], dy, walk, add);
        return;
    }
    for (int64_t c = 0; c < columns; c++) {
        const int64_t step[DIRECT_CONV_ROWS] = {c, c + columns, c + 2 * columns};
        float *const to[DIRECT_CONV_ROWS] = {dw + step[0] * DIRECT_CONV_SQUARE,
                                             dw + step[1] * DIRECT_CONV_SQUARE,
                                             dw + step[2] * DIRECT_CONV_SQUARE};
        const float *const from[DIRECT_CONV_ROWS] = {x + sum->at[step[0]], x + sum->at[step[1]],
                                                     x + sum->at[step[2]]};

        direct_conv_correlate_rows(t, to, from, dy, walk, add);
    }
}

static void direct_conv_correlate(float *dw, int64_t panel, const float *x, const float *dy,
                                  int columns, const direct_conv_walk *walk,
                                  const direct_conv_sum *sum, bool add)
{
    tiles t;

    tiles_begin(&t, TILES_ROWS);
    for (int q = 0; q < columns; q++)
        direct_conv_correlate_block(&t, dw + q * panel, x, dy + q * walk->dy_block, walk, sum, add);
    tiles_end(&t);
}

static void direct_conv_add_up(float *sum, const void *from, int64_t pixels)
{
    const uint16_t *dy = from;
    vec low = simd_load_any(sum), high = simd_load_any(sum + LANES);

    for (int64_t p = 0; p < pixels; p++, dy += DIRECT_CONV_BLOCK) {
        low += half16_load(dy);
        high += half16_load(dy + LANES);
    }
    simd_store_any(sum, low);
    simd_store_any(sum + LANES, high);
}

/* --- back to the store --- */

/* LANES inputs of one output, of up to LANES taps from `first` on; `to` is the first input's, in a
   row that goes on for `room` numbers. Zeros after the taps of an input are in the place of the
   next one's, which come afterwards, or are added there. */
static void direct_conv_unpack_taps(float *to, const float *square, int64_t inputs, int64_t taps,
                                    int64_t first, int64_t room, bool add)
{
    const int64_t n = direct_conv_least(taps - first, LANES);
    vec v[LANES] = {{0}};

    for (int64_t t = 0; t < n; t++)
        v[t] = simd_load(square + (first + t) * DIRECT_CONV_SQUARE);
    simd_transpose(v);
    for (int64_t l = 0; l < inputs; l++) {
        const int64_t at = l * taps + first;
        float some[LANES];

        if (at + LANES <= room && (add || taps <= LANES)) {
            if (add)
                v[l] += simd_load_any(to + at);
            simd_store_any(to + at, v[l]);
            continue;
        }
        simd_store_any(some, v[l]);
        for (int64_t t = 0; t < n; t++)
            to[at + t] = add ? to[at + t] + some[t] : some[t];
    }
}

/* The inputs of one output. */
static void direct_conv_unpack_row(float *row, const float *from, const direct_conv_weight *shape,
                                   bool add)
{
    for (int64_t c = 0; c < shape->in; c += LANES) {
        const float *square =
            from + c / DIRECT_CONV_BLOCK * shape->taps * DIRECT_CONV_SQUARE + c % DIRECT_CONV_BLOCK;
        const int64_t inputs = direct_conv_least(shape->in - c, LANES);
        const int64_t room = (shape->in - c) * shape->taps;

        if (shape->taps == 1 && inputs == LANES) {
            vec v = simd_load(square);

            if (add)
                v += simd_load_any(row + c);
            simd_store_any(row + c, v);
            continue;
        }
        for (int64_t t = 0; t < shape->taps; t += LANES)
            direct_conv_unpack_taps(row + c * shape->taps, square, inputs, shape->taps, t, room,
                                    add);
    }
}

static void direct_conv_unpack(float *weight, const float *from, const direct_conv_weight *shape,
                               int64_t k, bool add)
{
    const int64_t first = k * DIRECT_CONV_BLOCK, row = shape->in * shape->taps;

    for (int64_t o = 0; o < direct_conv_least(shape->out - first, DIRECT_CONV_BLOCK); o++)
        direct_conv_unpack_row(weight + (first + o) * row, from + o * DIRECT_CONV_BLOCK, shape,
                               add);
}

const direct_conv_loops DIRECT_CONV_TABLE = {
    .name = DIRECT_CONV_NAME,
    .lanes = DIRECT_CONV_BLOCK,
    .words = DIRECT_CONV_WORDS,
    .cell = sizeof(uint16_t),
    .together = 64,
    .multiply = direct_conv_multiply,
    .correlate = direct_conv_correlate,
    .add_up = direct_conv_add_up,
    .spread = direct_conv_spread_plane,
    .halve = direct_conv_halve,
    .pair = direct_conv_pair,
    .lines = direct_conv_lines,
    .pack = direct_conv_pack,
    .turn = direct_conv_turn,
    .unpack = direct_conv_unpack,
};
