/*
 * wino_avx512.c - the loops of wino.h for AVX-512.
 *
 * The points are 0, +-5/8, +-3/2 and infinity: with all fractions, these leave a third of the
 * rounding error that 0, +-1, +-2 do. Must not know calls, tensors or plans.
 */
#include <immintrin.h>

#include "backends/onednn/transpose512.h"
#include "backends/onednn/wino.h"

#define ROWS 14 /* of a product's tile: 28 sums and a line of weights in 32 registers */
#define STEP 8  /* input channels of a correlation's tile */

/* Squares of the points and their products. */
#define A  0.625f
#define B  1.5f
#define AA (A * A)
#define BB (B * B)
/* Products of the differences of a point to all others. */
#define N_0 (AA * BB)
#define N_A (2 * AA * (AA - BB))
#define N_B (2 * BB * (BB - AA))

LANES_INLINE vec wino_load(const float *from)
{
    return *(const vec *)from;
}

LANES_INLINE void wino_store(float *to, vec value)
{
    *(vec *)to = value;
}

/* --- transforms of one line: `by` vectors from one element to the next --- */

/* y = B' x */
LANES_INLINE void wino_b(vec *y, int to, const vec *x, int64_t by)
{
    const vec x1 = x[by], x2 = x[2 * by], x3 = x[3 * by], x4 = x[4 * by];
    const vec even_a = x4 - BB * x2, odd_a = x3 - BB * x1;
    const vec even_b = x4 - AA * x2, odd_b = x3 - AA * x1;

    y[0] = x[0] * N_0 + (x4 - (AA + BB) * x2);
    y[to] = even_a + A * odd_a;
    y[2 * to] = even_a - A * odd_a;
    y[3 * to] = even_b + B * odd_b;
    y[4 * to] = even_b - B * odd_b;
    y[5 * to] = x1 * N_0 + (x[5 * by] - (AA + BB) * x3);
}

/* y = A' x */
LANES_INLINE void wino_a(vec *y, const vec *x, int by)
{
    const vec sum_a = x[by] + x[2 * by], diff_a = x[by] - x[2 * by];
    const vec sum_b = x[3 * by] + x[4 * by], diff_b = x[3 * by] - x[4 * by];

    y[0] = x[0] + sum_a + sum_b;
    y[by] = A * diff_a + B * diff_b;
    y[2 * by] = AA * sum_a + BB * sum_b;
    y[3 * by] = A * AA * diff_a + (B * BB * diff_b + x[5 * by]);
}

/* y = A x, four elements `from` apart */
LANES_INLINE void wino_a_back(vec *y, int by, const vec *x, int64_t from)
{
    const vec x0 = x[0], x1 = x[from], x2 = x[2 * from], x3 = x[3 * from];
    const vec even_a = x0 + AA * x2, odd_a = x1 + AA * x3;
    const vec even_b = x0 + BB * x2, odd_b = x1 + BB * x3;

    y[0] = x0;
    y[by] = even_a + A * odd_a;
    y[2 * by] = even_a - A * odd_a;
    y[3 * by] = even_b + B * odd_b;
    y[4 * by] = even_b - B * odd_b;
    y[5 * by] = x3;
}

/* y = G x, three elements `from` apart */
LANES_INLINE void wino_g(vec *y, int by, const vec *x, int from)
{
    const vec x0 = x[0], x1 = x[from], x2 = x[2 * from];
    const vec even_a = (x0 + AA * x2) * (1 / N_A), odd_a = x1 * (A / N_A);
    const vec even_b = (x0 + BB * x2) * (1 / N_B), odd_b = x1 * (B / N_B);

    y[0] = x0 * (1 / N_0);
    y[by] = even_a + odd_a;
    y[2 * by] = even_a - odd_a;
    y[3 * by] = even_b + odd_b;
    y[4 * by] = even_b - odd_b;
    y[5 * by] = x2;
}

/* y = G' x, to three elements `to` apart */
LANES_INLINE void wino_g_back(vec *y, int to, const vec *x, int by)
{
    const vec sum_a = x[by] + x[2 * by], diff_a = x[by] - x[2 * by];
    const vec sum_b = x[3 * by] + x[4 * by], diff_b = x[3 * by] - x[4 * by];

    y[0] = x[0] * (1 / N_0) + (sum_a * (1 / N_A) + sum_b * (1 / N_B));
    y[to] = diff_a * (A / N_A) + diff_b * (B / N_B);
    y[2 * to] = sum_a * (AA / N_A) + (sum_b * (BB / N_B) + x[5 * by]);
}

/* --- images --- */

/* Whether all of a patch or tile of `size` lies on the image. */
LANES_INLINE bool wino_is_inside(const wino_grid *grid, int64_t top, int64_t left, int size)
{
    return top >= 0 && left >= 0 && top + size <= grid->h && left + size <= grid->w;
}

/* The part of an image that a patch or tile lies on; zeros elsewhere, where nothing is read. */
LANES_INLINE void wino_read(vec *out, const float *x, const wino_grid *grid, int64_t top,
                            int64_t left, const int size)
{
    const float *from = x + (top * grid->w + left) * LANES;
    __mmask16 column[WINO_PATCH];

    for (int j = 0; j < size; j++)
        column[j] = left + j >= 0 && left + j < grid->w ? 0xffff : 0;
    for (int i = 0; i < size; i++, from += grid->w * LANES) {
        const __mmask16 row = top + i >= 0 && top + i < grid->h ? 0xffff : 0;

        LANES_UNROLL for (int j = 0; j < size; j++) out[i * size + j] =
            (vec)_mm512_maskz_load_ps(row & column[j], from + j * LANES);
    }
}

/* The lines that the patch after the next one sees and those before it have not. */
LANES_INLINE void wino_fetch(const float *x, const wino_grid *grid, int64_t top, int64_t left)
{
    const float *from = x + ((top + 2) * grid->w + left + WINO_PATCH + WINO_TILE) * LANES;

    for (int i = 0; i < WINO_TILE; i++, from += grid->w * LANES)
        LANES_UNROLL for (int j = 0; j < WINO_TILE; j++) __builtin_prefetch(from + j * LANES);
}

/* A tile's place. */
typedef struct wino_place {
    int64_t image, top, left;
} wino_place;

LANES_INLINE wino_place wino_find(const wino_grid *grid, int64_t tile)
{
    const int64_t row = tile / grid->columns;

    return (wino_place){row / grid->rows, grid->top + row % grid->rows * WINO_TILE,
                        grid->left + tile % grid->columns * WINO_TILE};
}

static void wino_spread_patch(float *v, int64_t apart, const float *x, const wino_grid *grid,
                              int64_t first, int64_t end)
{
    for (int64_t t = first; t < end; t++, v += LANES) {
        const wino_place at = wino_find(grid, t);
        const float *image = x + at.image * grid->image;
        vec in[WINO_POINTS], half[WINO_POINTS], line[WINO_PATCH];

        wino_fetch(image, grid, at.top, at.left);
        if (wino_is_inside(grid, at.top, at.left, WINO_PATCH)) {
            const float *from = image + (at.top * grid->w + at.left) * LANES;

            for (int j = 0; j < WINO_PATCH; j++)
                wino_b(half + j, WINO_PATCH, (const vec *)(from + j * LANES), grid->w);
        } else {
            wino_read(in, image, grid, at.top, at.left, WINO_PATCH);
            for (int j = 0; j < WINO_PATCH; j++)
                wino_b(half + j, WINO_PATCH, in + j, WINO_PATCH);
        }
        for (int i = 0; i < WINO_PATCH; i++) {
            wino_b(line, 1, half + i * WINO_PATCH, 1);
            LANES_UNROLL for (int j = 0; j < WINO_PATCH; j++)
                wino_store(v + (i * WINO_PATCH + j) * apart, line[j]);
        }
    }
}

static void wino_spread_tile(float *v, int64_t apart, float *sum, const float *dy,
                             const wino_grid *grid, int64_t first, int64_t end)
{
    vec all = {0};

    for (int64_t t = first; t < end; t++, v += LANES) {
        const wino_place at = wino_find(grid, t);
        vec in[WINO_TILE * WINO_TILE], half[WINO_PATCH * WINO_TILE], line[WINO_PATCH];

        wino_read(in, dy + at.image * grid->image, grid, at.top, at.left, WINO_TILE);
        for (int j = 0; j < WINO_TILE; j++) {
            all += (in[j] + in[j + 4]) + (in[j + 8] + in[j + 12]);
            wino_a_back(half + j, WINO_TILE, in + j, WINO_TILE);
        }
        for (int i = 0; i < WINO_PATCH; i++) {
            wino_a_back(line, 1, half + i * WINO_TILE, 1);
            LANES_UNROLL for (int j = 0; j < WINO_PATCH; j++)
                wino_store(v + (i * WINO_PATCH + j) * apart, line[j]);
        }
    }
    if (sum)
        _mm512_storeu_ps(sum, (__m512)all + _mm512_loadu_ps(sum));
}

static void wino_gather_tile(float *y, const wino_grid *grid, const float *m, int64_t apart,
                             const float *bias, int64_t first, int64_t end)
{
    const vec base = bias ? (vec)_mm512_loadu_ps(bias) : (vec){0};

    for (int64_t t = first; t < end; t++, m += LANES) {
        const wino_place at = wino_find(grid, t);
        const int64_t rows = grid->h - at.top, columns = grid->w - at.left;
        float *to = y + at.image * grid->image + (at.top * grid->w + at.left) * LANES;
        vec half[WINO_TILE * WINO_PATCH], line[WINO_TILE];

        for (int j = 0; j < WINO_PATCH; j++) {
            vec in[WINO_PATCH], out[WINO_TILE];

            LANES_UNROLL for (int i = 0; i < WINO_PATCH; i++) in[i] =
                wino_load(m + (i * WINO_PATCH + j) * apart);
            wino_a(out, in, 1);
            LANES_UNROLL for (int i = 0; i < WINO_TILE; i++) half[i * WINO_PATCH + j] = out[i];
        }
        for (int i = 0; i < WINO_TILE && i < rows; i++, to += grid->w * LANES) {
            wino_a(line, half + i * WINO_PATCH, 1);
            if (columns >= WINO_TILE)
                LANES_UNROLL for (int j = 0; j < WINO_TILE; j++)
                    wino_store(to + j * LANES, line[j] + base);
            else
                for (int j = 0; j < columns; j++)
                    wino_store(to + j * LANES, line[j] + base);
        }
    }
}

/* --- weights --- */

/* Nine taps, the last first if `turned`, to 36 points. */
LANES_INLINE void wino_spread_taps(float *u, int64_t apart, const vec *tap)
{
    vec half[WINO_PATCH * 3], line[WINO_PATCH];

    LANES_UNROLL for (int j = 0; j < 3; j++) wino_g(half + j, 3, tap + j, 3);
    LANES_UNROLL for (int i = 0; i < WINO_PATCH; i++)
    {
        wino_g(line, 1, half + i * 3, 1);
        LANES_UNROLL for (int j = 0; j < WINO_PATCH; j++)
            wino_store(u + (i * WINO_PATCH + j) * apart, line[j]);
    }
}

static void wino_spread_weight(float *u, int64_t apart, float *work, const float *w, int64_t in)
{
    const int64_t row = in * WINO_TAPS;

    for (int64_t e = 0; e < row; e += LANES) {
        vec v[LANES];

        LANES_UNROLL for (int l = 0; l < LANES; l++) v[l] = (vec)_mm512_loadu_ps(w + l * row + e);
        lanes_transpose(v);
        LANES_UNROLL for (int l = 0; l < LANES; l++) wino_store(work + (e + l) * LANES, v[l]);
    }
    for (int64_t i = 0; i < in; i++)
        wino_spread_taps(u + i * LANES, apart, (const vec *)(work + i * WINO_TAPS * LANES));
}

static void wino_spread_turned(float *u, int64_t apart, const float *w, int64_t in, int64_t out)
{
    const __mmask16 taps = (1u << WINO_TAPS) - 1;

    for (int64_t o = 0; o < out; o++, w += in * WINO_TAPS) {
        vec v[LANES], turned[WINO_TAPS];

        LANES_UNROLL for (int l = 0; l < LANES; l++) v[l] =
            (vec)_mm512_maskz_loadu_ps(taps, w + l * WINO_TAPS);
        lanes_transpose(v);
        LANES_UNROLL for (int k = 0; k < WINO_TAPS; k++) turned[k] = v[WINO_TAPS - 1 - k];
        wino_spread_taps(u + o * LANES, apart, turned);
    }
}

static void wino_gather_weight(float *dw, const float *u, int64_t apart, float *work, int64_t in,
                               bool add)
{
    const int64_t row = in * WINO_TAPS;

    for (int64_t i = 0; i < in; i++) {
        vec half[3 * WINO_PATCH], *tap = (vec *)(work + i * WINO_TAPS * LANES);

        for (int j = 0; j < WINO_PATCH; j++) {
            vec point[WINO_PATCH];

            LANES_UNROLL for (int k = 0; k < WINO_PATCH; k++) point[k] =
                wino_load(u + (k * WINO_PATCH + j) * apart + i * LANES);
            wino_g_back(half + j, WINO_PATCH, point, 1);
        }
        LANES_UNROLL for (int k = 0; k < 3; k++)
            wino_g_back(tap + k * 3, 1, half + k * WINO_PATCH, 1);
    }
    for (int64_t e = 0; e < row; e += LANES) {
        vec v[LANES];

        LANES_UNROLL for (int l = 0; l < LANES; l++) v[l] = wino_load(work + (e + l) * LANES);
        lanes_transpose(v);
        LANES_UNROLL for (int l = 0; l < LANES; l++)
        {
            float *to = dw + l * row + e;

            if (add)
                v[l] += (vec)_mm512_loadu_ps(to);
            _mm512_storeu_ps(to, (__m512)v[l]);
        }
    }
}

/* --- products --- */

/* m (columns, tiles, 16), `rows` tiles of it: 16 input channels of all tiles lie together, `line`
   floats apart; a column's weights `column` floats. */
LANES_INLINE void wino_product(float *m, const float *v, int64_t line, const float *u,
                               int64_t column, int64_t in_blocks, const int rows, const int columns)
{
    vec sum[ROWS][2];

    LANES_UNROLL for (int p = 0; p < rows; p++) LANES_UNROLL for (int q = 0; q < columns; q++)
        sum[p][q] = (vec){0};
    for (int64_t b = 0; b < in_blocks; b++, v += line, u += LANES * LANES) {
        LANES_UNROLL for (int p = 0; p < rows; p++) __builtin_prefetch(v + line + p * LANES);
#pragma GCC unroll 4
        for (int i = 0; i < LANES; i++) {
            vec weight[2];

            LANES_UNROLL for (int q = 0; q < columns; q++)
            {
                weight[q] = wino_load(u + q * column + i * LANES);
            }
            LANES_UNROLL for (int p = 0; p < rows; p++)
            {
                const vec each = (vec){0} + v[p * LANES + i];

                LANES_UNROLL for (int q = 0; q < columns; q++) sum[p][q] += each * weight[q];
            }
        }
    }
    LANES_UNROLL for (int p = 0; p < rows; p++) LANES_UNROLL for (int q = 0; q < columns; q++)
        wino_store(m + q * line + p * LANES, sum[p][q]);
}

#define WINO_CASE(n)                                                                               \
    case n:                                                                                        \
        if (columns == 2)                                                                          \
            wino_product(m, v, line, u, column, in_blocks, n, 2);                                  \
        else                                                                                       \
            wino_product(m, v, line, u, column, in_blocks, n, 1);                                  \
        break;

/* The tile's size is a constant in each branch. */
static void wino_multiply_tile(float *m, const float *v, int64_t line, const float *u,
                               int64_t column, int64_t in_blocks, int rows, int columns)
{
    switch (rows) {
        WINO_CASE(1)
        WINO_CASE(2)
        WINO_CASE(3)
        WINO_CASE(4)
        WINO_CASE(5)
        WINO_CASE(6)
        WINO_CASE(7)
        WINO_CASE(8)
        WINO_CASE(9)
        WINO_CASE(10)
        WINO_CASE(11)
        WINO_CASE(12)
        WINO_CASE(13)
        WINO_CASE(14)
    default:
        break;
    }
}

static void wino_multiply(float *m, const float *v, const float *u, int64_t tiles,
                          int64_t in_blocks, int64_t out_blocks)
{
    const int64_t line = tiles * LANES, column = in_blocks * LANES * LANES;
    const int64_t parts = (tiles + ROWS - 1) / ROWS;

    for (int64_t o = 0; o < out_blocks; o += 2)
        for (int64_t i = 0; i < parts; i++) {
            const int64_t first = tiles * i / parts, end = tiles * (i + 1) / parts;

            wino_multiply_tile(m + o * line + first * LANES, v + first * LANES, line,
                               u + o * column, column, in_blocks, (int)(end - first),
                               o + 1 < out_blocks ? 2 : 1);
        }
}

/* du (columns, rows, 16) over all tiles. */
LANES_INLINE void wino_correlation(float *du, int64_t column, const float *v, const float *dy,
                                   int64_t tiles, bool add, const int rows, const int columns)
{
    const int64_t line = tiles * LANES;
    vec sum[LANES][2];

    LANES_UNROLL for (int i = 0; i < rows; i++) LANES_UNROLL for (int q = 0; q < columns; q++)
        sum[i][q] = (vec){0};
#pragma GCC unroll 4
    for (int64_t t = 0; t < tiles; t++, v += LANES, dy += LANES) {
        vec out[2];

        LANES_UNROLL for (int q = 0; q < columns; q++) out[q] = wino_load(dy + q * line);
        LANES_UNROLL for (int i = 0; i < rows; i++)
        {
            const vec each = (vec){0} + v[i];

            LANES_UNROLL for (int q = 0; q < columns; q++) sum[i][q] += each * out[q];
        }
    }
    LANES_UNROLL for (int i = 0; i < rows; i++) LANES_UNROLL for (int q = 0; q < columns; q++)
    {
        float *to = du + q * column + i * LANES;

        if (add)
            sum[i][q] += wino_load(to);
        wino_store(to, sum[i][q]);
    }
}

static void wino_correlate(float *du, const float *v, const float *dy, int64_t tiles,
                           int64_t in_blocks, int64_t out_blocks, bool add)
{
    const int64_t line = tiles * LANES, column = in_blocks * LANES * LANES;

    for (int64_t o = 0; o < out_blocks; o += 2)
        for (int64_t b = 0; b < in_blocks; b++) {
            float *to = du + o * column + b * LANES * LANES;
            const float *x = v + b * line, *y = dy + o * line;

            for (int i = 0; o + 1 < out_blocks && i < LANES; i += STEP)
                wino_correlation(to + i * LANES, column, x + i, y, tiles, add, STEP, 2);
            if (o + 1 == out_blocks)
                wino_correlation(to, column, x, y, tiles, add, LANES, 1);
        }
}

const wino_loops wino_loops_avx512 = {
    .spread_patch = wino_spread_patch,
    .spread_tile = wino_spread_tile,
    .gather_tile = wino_gather_tile,
    .spread_weight = wino_spread_weight,
    .spread_turned = wino_spread_turned,
    .gather_weight = wino_gather_weight,
    .multiply = wino_multiply,
    .correlate = wino_correlate,
};
