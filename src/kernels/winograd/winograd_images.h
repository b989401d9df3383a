/*
 * winograd_images.h - Winograd's transforms (winograd.h) of images and weights. Included once
 * for each type of tensors, by a file that defines
 *
 *   WINOGRAD_TILE, WINOGRAD_SIDE           outputs of a tile, taps of a kernel, each way
 *   cell                                    float, or the bits of a BF16
 *   WINOGRAD_FLOATS                        whether cells are floats
 *   WINOGRAD_TABLE, WINOGRAD_NAME         the table of loops and its name in profiles
 *   vec winograd_take(bits, const cell *)  a vector, or 0 without bits
 *   void winograd_put(cell *, vec)
 *   vec winograd_weight(vec)               floats, rounded as the tensors are
 *
 * Independent of calls, tensors and plans.
 */
#include "kernels/winograd/winograd_products.h"

/* --- images --- */

/* Whether all of a patch or tile of `size` is inside the image. */
SIMD_INLINE bool winograd_is_inside(const winograd_grid *grid, int64_t top, int64_t left, int size)
{
    return top >= 0 && left >= 0 && top + size <= grid->h && left + size <= grid->w;
}

/* Which rows of a patch or tile of `size` from `top` on are in an image of `h`. */
SIMD_INLINE void winograd_find_rows(winograd_bits *row, int64_t top, int64_t h, const int size)
{
    for (int i = 0; i < size; i++)
        row[i] = top + i >= 0 && top + i < h ? WINOGRAD_ALL : 0;
}

/* A column of it. Outside of the image are zeros, and nothing is read. */
SIMD_INLINE void winograd_read(vec *out, const cell *from, int64_t w, const winograd_bits *row,
                               winograd_bits column, const int size)
{
    SIMD_UNROLL(36)
    for (int i = 0; i < size; i++)
        out[i] = winograd_take(row[i] & column, from + i * w * LANES);
}

/* A tile's place. */
typedef struct winograd_place {
    int64_t image, top, left;
} winograd_place;

SIMD_INLINE winograd_place winograd_find(const winograd_grid *grid, int64_t tile)
{
    const int64_t row = tile / grid->columns;

    return (winograd_place){row / grid->rows, grid->top + row % grid->rows * WINOGRAD_TILE,
                            grid->left + tile % grid->columns * WINOGRAD_TILE};
}

/* Prefetch what a tile reads of x, or the inner part of its patch, after `border` rows and columns:
   a few lines of each row, which a CPU does not fetch by itself. */
SIMD_INLINE void winograd_fetch(const cell *x, const winograd_grid *grid, int64_t tile,
                                const int border)
{
    const winograd_place at = winograd_find(grid, tile);
    const int64_t line = SIMD_LINE / (LANES * (int64_t)sizeof(cell));
    const cell *from =
        x + at.image * grid->image + ((at.top + border) * grid->w + at.left + border) * LANES;

    for (int i = 0; i < WINOGRAD_TILE; i++, from += grid->w * LANES)
        SIMD_UNROLL(36)
    for (int64_t j = 0; j < WINOGRAD_TILE; j += line)
        __builtin_prefetch(from + j * LANES);
}

static void winograd_spread_patch(float *v, int64_t apart, const void *x, const winograd_grid *grid,
                                  int64_t first, int64_t end)
{
    for (int64_t t = first; t < end; t++, v += LANES) {
        const winograd_place at = winograd_find(grid, t);
        const cell *from =
            (const cell *)x + at.image * grid->image + (at.top * grid->w + at.left) * LANES;
        vec in[WINOGRAD_PATCH], half[WINOGRAD_POINTS], line[WINOGRAD_PATCH];
        winograd_bits row[WINOGRAD_PATCH], column[WINOGRAD_PATCH];

        winograd_fetch(x, grid, t + 2, 1);
        winograd_find_rows(row, at.top, grid->h, WINOGRAD_PATCH);
        winograd_find_rows(column, at.left, grid->w, WINOGRAD_PATCH);
        if (WINOGRAD_FLOATS && winograd_is_inside(grid, at.top, at.left, WINOGRAD_PATCH))
            for (int j = 0; j < WINOGRAD_PATCH; j++)
                winograd_b(half + j, WINOGRAD_PATCH, (const vec *)(const void *)(from + j * LANES),
                           grid->w);
        else
            for (int j = 0; j < WINOGRAD_PATCH; j++) {
                winograd_read(in, from + j * LANES, grid->w, row, column[j], WINOGRAD_PATCH);
                winograd_b(half + j, WINOGRAD_PATCH, in, 1);
            }
        for (int i = 0; i < WINOGRAD_PATCH; i++) {
            winograd_b(line, 1, half + i * WINOGRAD_PATCH, 1);
            SIMD_UNROLL(36)
            for (int j = 0; j < WINOGRAD_PATCH; j++)
                simd_store(v + (i * WINOGRAD_PATCH + j) * apart, line[j]);
        }
    }
}

static void winograd_spread_tile(float *v, int64_t apart, float *sum, const void *dy,
                                 const winograd_grid *grid, int64_t first, int64_t end)
{
    vec all = {0};

    for (int64_t t = first; t < end; t++, v += LANES) {
        const winograd_place at = winograd_find(grid, t);
        const cell *from =
            (const cell *)dy + at.image * grid->image + (at.top * grid->w + at.left) * LANES;
        vec in[WINOGRAD_TILE], half[WINOGRAD_PATCH * WINOGRAD_TILE], line[WINOGRAD_PATCH];
        winograd_bits row[WINOGRAD_TILE], column[WINOGRAD_TILE];

        winograd_fetch(dy, grid, t + 2, 0);
        winograd_find_rows(row, at.top, grid->h, WINOGRAD_TILE);
        winograd_find_rows(column, at.left, grid->w, WINOGRAD_TILE);
        for (int j = 0; j < WINOGRAD_TILE; j++) {
            winograd_read(in, from + j * LANES, grid->w, row, column[j], WINOGRAD_TILE);
            all += (in[0] + in[1]) + (in[2] + in[3]);
            SIMD_UNROLL(36)
            for (int i = 4; i < WINOGRAD_TILE; i++)
                all += in[i];
            winograd_a_back(half + j, WINOGRAD_TILE, in, 1);
        }
        for (int i = 0; i < WINOGRAD_PATCH; i++) {
            winograd_a_back(line, 1, half + i * WINOGRAD_TILE, 1);
            SIMD_UNROLL(36)
            for (int j = 0; j < WINOGRAD_PATCH; j++)
                simd_store(v + (i * WINOGRAD_PATCH + j) * apart, line[j]);
        }
    }
    if (sum)
        simd_store_any(sum, all + simd_load_any(sum));
}

static void winograd_gather_tile(void *y, const winograd_grid *grid, const float *m, int64_t apart,
                                 const float *bias, int64_t first, int64_t end)
{
    const vec base = bias ? simd_load_any(bias) : (vec){0};

    for (int64_t t = first; t < end; t++, m += LANES) {
        const winograd_place at = winograd_find(grid, t);
        const int64_t rows = grid->h - at.top, columns = grid->w - at.left;
        cell *to = (cell *)y + at.image * grid->image + (at.top * grid->w + at.left) * LANES;
        vec half[WINOGRAD_TILE * WINOGRAD_PATCH], line[WINOGRAD_TILE];

        for (int j = 0; j < WINOGRAD_PATCH; j++) {
            vec in[WINOGRAD_PATCH], out[WINOGRAD_TILE];

            SIMD_UNROLL(36)
            for (int i = 0; i < WINOGRAD_PATCH; i++)
                in[i] = simd_load(m + (i * WINOGRAD_PATCH + j) * apart);
            winograd_a(out, in, 1);
            SIMD_UNROLL(36)
            for (int i = 0; i < WINOGRAD_TILE; i++)
                half[i * WINOGRAD_PATCH + j] = out[i];
        }
        for (int i = 0; i < WINOGRAD_TILE && i < rows; i++, to += grid->w * LANES) {
            winograd_a(line, half + i * WINOGRAD_PATCH, 1);
            if (columns >= WINOGRAD_TILE)
                SIMD_UNROLL(36)
            for (int j = 0; j < WINOGRAD_TILE; j++)
                winograd_put(to + j * LANES, line[j] + base);
            else for (int j = 0; j < columns; j++) winograd_put(to + j * LANES, line[j] + base);
        }
    }
}

/* --- weights --- */

#define WINOGRAD_AHEAD 4 /* rows of weights that are fetched before they are read */

/* The taps of a kernel to the points of a tile. */
SIMD_INLINE void winograd_spread_taps(float *u, int64_t apart, const vec *tap)
{
    vec half[WINOGRAD_PATCH * WINOGRAD_SIDE], line[WINOGRAD_PATCH];

    SIMD_UNROLL(36)
    for (int j = 0; j < WINOGRAD_SIDE; j++)
        winograd_g(half + j, WINOGRAD_SIDE, tap + j, WINOGRAD_SIDE);
    SIMD_UNROLL(36) for (int i = 0; i < WINOGRAD_PATCH; i++)
    {
        winograd_g(line, 1, half + i * WINOGRAD_SIDE, 1);
        SIMD_UNROLL(36)
        for (int j = 0; j < WINOGRAD_PATCH; j++)
            simd_store(u + (i * WINOGRAD_PATCH + j) * apart, line[j]);
    }
}

static void winograd_spread_weight(float *u, int64_t apart, float *work, const float *w,
                                   int64_t row, int64_t in)
{
    for (int64_t e = 0; e < in * WINOGRAD_TAPS; e += LANES) {
        vec v[LANES];

        SIMD_UNROLL(36)
        for (int l = 0; l < LANES; l++)
            v[l] = winograd_weight(simd_load_any(w + l * row + e));
        simd_transpose(v);
        SIMD_UNROLL(36) for (int l = 0; l < LANES; l++) simd_store(work + (e + l) * LANES, v[l]);
    }
    for (int64_t i = 0; i < in; i++)
        winograd_spread_taps(u + i * LANES, apart, (const vec *)(work + i * WINOGRAD_TAPS * LANES));
}

/* The taps of LANES channels, rotated by 180 degrees. */
SIMD_INLINE void winograd_turn_taps(vec *turned, const float *w)
{
#if LANES > WINOGRAD_TAPS
    vec v[LANES];

    SIMD_UNROLL(36)
    for (int l = 0; l < LANES; l++)
        v[l] = winograd_weight(simd_load_some(w + l * WINOGRAD_TAPS, WINOGRAD_TAPS));
    simd_transpose(v);
    SIMD_UNROLL(36)
    for (int k = 0; k < WINOGRAD_TAPS; k++)
        turned[k] = v[WINOGRAD_TAPS - 1 - k];
#else
    for (int k = 0; k < WINOGRAD_TAPS; k++) {
        vec v = {0};

        for (int l = 0; l < LANES; l++)
            v[l] = w[l * WINOGRAD_TAPS + WINOGRAD_TAPS - 1 - k];
        turned[k] = winograd_weight(v);
    }
#endif
}

/* LANES channels of a row: a few cache lines far from those before, which a CPU does not fetch by
   itself. */
SIMD_INLINE void winograd_fetch_taps(const float *w)
{
    SIMD_UNROLL(36)
    for (int k = 0; k < WINOGRAD_TAPS * LANES; k += SIMD_LINE / (int)sizeof(float))
        __builtin_prefetch(w + k);
}

static void winograd_spread_turned(float *u, int64_t apart, const float *w, int64_t row,
                                   int64_t out)
{
    for (int64_t o = 0; o < out; o++, w += row) {
        vec turned[WINOGRAD_TAPS];

        winograd_fetch_taps(w + WINOGRAD_AHEAD * row);
        winograd_turn_taps(turned, w);
        winograd_spread_taps(u + o * LANES, apart, turned);
    }
}

static void winograd_gather_weight(float *dw, const float *u, int64_t apart, float *work,
                                   int64_t row, int64_t in, bool add)
{
    for (int64_t i = 0; i < in; i++) {
        vec half[WINOGRAD_SIDE * WINOGRAD_PATCH], *tap = (vec *)(work + i * WINOGRAD_TAPS * LANES);

        for (int j = 0; j < WINOGRAD_PATCH; j++) {
            vec point[WINOGRAD_PATCH];

            SIMD_UNROLL(36)
            for (int k = 0; k < WINOGRAD_PATCH; k++)
                point[k] = simd_load(u + (k * WINOGRAD_PATCH + j) * apart + i * LANES);
            winograd_g_back(half + j, WINOGRAD_PATCH, point, 1);
        }
        SIMD_UNROLL(36)
        for (int k = 0; k < WINOGRAD_SIDE; k++)
            winograd_g_back(tap + k * WINOGRAD_SIDE, 1, half + k * WINOGRAD_PATCH, 1);
    }
    for (int64_t e = 0; e < in * WINOGRAD_TAPS; e += LANES) {
        vec v[LANES];

        SIMD_UNROLL(36) for (int l = 0; l < LANES; l++) v[l] = simd_load(work + (e + l) * LANES);
        simd_transpose(v);
        SIMD_UNROLL(36) for (int l = 0; l < LANES; l++)
        {
            float *to = dw + l * row + e;

            if (add)
                v[l] += simd_load_any(to);
            simd_store_any(to, v[l]);
        }
    }
}

const winograd_loops WINOGRAD_TABLE = {
    .name = WINOGRAD_NAME,
    .lanes = LANES,
    .tile = WINOGRAD_TILE,
    .side = WINOGRAD_SIDE,
    .points = WINOGRAD_POINTS,
    .cell = sizeof(cell),
    .spread_patch = winograd_spread_patch,
    .spread_tile = winograd_spread_tile,
    .gather_tile = winograd_gather_tile,
    .spread_weight = winograd_spread_weight,
    .spread_turned = winograd_spread_turned,
    .gather_weight = winograd_gather_weight,
    .multiply = winograd_multiply,
    .correlate = winograd_correlate,
};
