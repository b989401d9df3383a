/*
 * wino_images.h - Winograd's transforms (wino.h) of images and weights. Included once for each type
 * of tensors, by a file that defines
 *
 *   cell                              float, or the bits of a BF16
 *   WINO_FLOATS                       whether cells are floats
 *   WINO_TABLE, WINO_NAME             the table of loops and its name in profiles
 *   vec wino_take(bits, const cell *) of a line those numbers whose bit is set, 0 for others
 *   void wino_put(cell *, vec)
 *   vec wino_weight(vec)              floats, rounded as the tensors are
 *
 * Must not know calls, tensors or plans.
 */
#include "backends/onednn/wino_lines.h"

/* --- images --- */

/* Whether all of a patch or tile of `size` lies on the image. */
LANES_INLINE bool wino_is_inside(const wino_grid *grid, int64_t top, int64_t left, int size)
{
    return top >= 0 && left >= 0 && top + size <= grid->h && left + size <= grid->w;
}

/* The part of an image that a patch or tile lies on; zeros elsewhere, where nothing is read. */
LANES_INLINE void wino_read(vec *out, const cell *x, const wino_grid *grid, int64_t top,
                            int64_t left, const int size)
{
    const cell *from = x + (top * grid->w + left) * LANES;
    __mmask16 column[WINO_PATCH];

    for (int j = 0; j < size; j++)
        column[j] = left + j >= 0 && left + j < grid->w ? 0xffff : 0;
    for (int i = 0; i < size; i++, from += grid->w * LANES) {
        const __mmask16 row = top + i >= 0 && top + i < grid->h ? 0xffff : 0;

        LANES_UNROLL for (int j = 0; j < size; j++) out[i * size + j] =
            wino_take(row & column[j], from + j * LANES);
    }
}

/* The lines that the patch after the next one sees and those before it have not. */
LANES_INLINE void wino_fetch(const cell *x, const wino_grid *grid, int64_t top, int64_t left)
{
    const cell *from = x + ((top + 2) * grid->w + left + WINO_PATCH + WINO_TILE) * LANES;

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

static void wino_spread_patch(float *v, int64_t apart, const void *x, const wino_grid *grid,
                              int64_t first, int64_t end)
{
    for (int64_t t = first; t < end; t++, v += LANES) {
        const wino_place at = wino_find(grid, t);
        const cell *image = (const cell *)x + at.image * grid->image;
        vec in[WINO_POINTS], half[WINO_POINTS], line[WINO_PATCH];

        wino_fetch(image, grid, at.top, at.left);
        if (WINO_FLOATS && wino_is_inside(grid, at.top, at.left, WINO_PATCH)) {
            const cell *from = image + (at.top * grid->w + at.left) * LANES;

            for (int j = 0; j < WINO_PATCH; j++)
                wino_b(half + j, WINO_PATCH, (const vec *)(const void *)(from + j * LANES),
                       grid->w);
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

static void wino_spread_tile(float *v, int64_t apart, float *sum, const void *dy,
                             const wino_grid *grid, int64_t first, int64_t end)
{
    vec all = {0};

    for (int64_t t = first; t < end; t++, v += LANES) {
        const wino_place at = wino_find(grid, t);
        vec in[WINO_TILE * WINO_TILE], half[WINO_PATCH * WINO_TILE], line[WINO_PATCH];

        wino_read(in, (const cell *)dy + at.image * grid->image, grid, at.top, at.left, WINO_TILE);
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

static void wino_gather_tile(void *y, const wino_grid *grid, const float *m, int64_t apart,
                             const float *bias, int64_t first, int64_t end)
{
    const vec base = bias ? (vec)_mm512_loadu_ps(bias) : (vec){0};

    for (int64_t t = first; t < end; t++, m += LANES) {
        const wino_place at = wino_find(grid, t);
        const int64_t rows = grid->h - at.top, columns = grid->w - at.left;
        cell *to = (cell *)y + at.image * grid->image + (at.top * grid->w + at.left) * LANES;
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
                    wino_put(to + j * LANES, line[j] + base);
            else
                for (int j = 0; j < columns; j++)
                    wino_put(to + j * LANES, line[j] + base);
        }
    }
}

/* --- weights --- */

/* Nine taps to 36 points. */
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

        LANES_UNROLL for (int l = 0; l < LANES; l++) v[l] =
            wino_weight((vec)_mm512_loadu_ps(w + l * row + e));
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
            wino_weight((vec)_mm512_maskz_loadu_ps(taps, w + l * WINO_TAPS));
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

const wino_loops WINO_TABLE = {
    .name = WINO_NAME,
    .cell = sizeof(cell),
    .spread_patch = wino_spread_patch,
    .spread_tile = wino_spread_tile,
    .gather_tile = wino_gather_tile,
    .spread_weight = wino_spread_weight,
    .spread_turned = wino_spread_turned,
    .gather_weight = wino_gather_weight,
    .multiply = wino_multiply_avx512,
    .correlate = wino_correlate_avx512,
};
