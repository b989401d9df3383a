/*
 * winograd3_images.h - Winograd's transforms (winograd3.h) of images and weights. Included once
 * for each type of tensors, by a file that defines
 *
 *   WINOGRAD3_TILE                          outputs of a tile, each way
 *   cell                                    float, or the bits of a BF16
 *   WINOGRAD3_FLOATS                        whether cells are floats
 *   WINOGRAD3_TABLE, WINOGRAD3_NAME         the table of loops and its name in profiles
 *   vec winograd3_take(bits, const cell *)  a vector, or 0 without bits
 *   void winograd3_put(cell *, vec)
 *   vec winograd3_weight(vec)               floats, rounded as the tensors are
 *
 * Independent of calls, tensors and plans.
 */
#include "kernels/winograd3/winograd3_products.h"

/* --- images --- */

/* Whether all of a patch or tile of `size` is inside the image. */
SIMD_INLINE bool winograd3_is_inside(const winograd3_grid *grid, int64_t top, int64_t left,
                                     int size)
{
    return top >= 0 && left >= 0 && top + size <= grid->h && left + size <= grid->w;
}

/* Which rows of a patch or tile of `size` from `top` on are in an image of `h`. */
SIMD_INLINE void winograd3_find_rows(winograd3_bits *row, int64_t top, int64_t h, const int size)
{
    for (int i = 0; i < size; i++)
        row[i] = top + i >= 0 && top + i < h ? WINOGRAD3_ALL : 0;
}

/* A column of it. Outside of the image are zeros, and nothing is read. */
SIMD_INLINE void winograd3_read(vec *out, const cell *from, int64_t w, const winograd3_bits *row,
                                winograd3_bits column, const int size)
{
    SIMD_UNROLL(36)
    for (int i = 0; i < size; i++)
        out[i] = winograd3_take(row[i] & column, from + i * w * LANES);
}

/* A tile's place. */
typedef struct winograd3_place {
    int64_t image, top, left;
} winograd3_place;

SIMD_INLINE winograd3_place winograd3_find(const winograd3_grid *grid, int64_t tile)
{
    const int64_t row = tile / grid->columns;

    return (winograd3_place){row / grid->rows, grid->top + row % grid->rows * WINOGRAD3_TILE,
                             grid->left + tile % grid->columns * WINOGRAD3_TILE};
}

/* Prefetch what a tile reads of x, or the inner part of its patch, after `border` rows and columns:
   a few lines of each row, which a CPU does not fetch by itself. */
SIMD_INLINE void winograd3_fetch(const cell *x, const winograd3_grid *grid, int64_t tile,
                                 const int border)
{
    const winograd3_place at = winograd3_find(grid, tile);
    const int64_t line = SIMD_LINE / (LANES * (int64_t)sizeof(cell));
    const cell *from =
        x + at.image * grid->image + ((at.top + border) * grid->w + at.left + border) * LANES;

    for (int i = 0; i < WINOGRAD3_TILE; i++, from += grid->w * LANES)
        SIMD_UNROLL(36)
    for (int64_t j = 0; j < WINOGRAD3_TILE; j += line)
        __builtin_prefetch(from + j * LANES);
}

static void winograd3_spread_patch(float *v, int64_t apart, const void *x,
                                   const winograd3_grid *grid, int64_t first, int64_t end)
{
    for (int64_t t = first; t < end; t++, v += LANES) {
        const winograd3_place at = winograd3_find(grid, t);
        const cell *from =
            (const cell *)x + at.image * grid->image + (at.top * grid->w + at.left) * LANES;
        vec in[WINOGRAD3_PATCH], half[WINOGRAD3_POINTS], line[WINOGRAD3_PATCH];
        winograd3_bits row[WINOGRAD3_PATCH], column[WINOGRAD3_PATCH];

        winograd3_fetch(x, grid, t + 2, 1);
        winograd3_find_rows(row, at.top, grid->h, WINOGRAD3_PATCH);
        winograd3_find_rows(column, at.left, grid->w, WINOGRAD3_PATCH);
        if (WINOGRAD3_FLOATS && winograd3_is_inside(grid, at.top, at.left, WINOGRAD3_PATCH))
            for (int j = 0; j < WINOGRAD3_PATCH; j++)
                winograd3_b(half + j, WINOGRAD3_PATCH,
                            (const vec *)(const void *)(from + j * LANES), grid->w);
        else
            for (int j = 0; j < WINOGRAD3_PATCH; j++) {
                winograd3_read(in, from + j * LANES, grid->w, row, column[j], WINOGRAD3_PATCH);
                winograd3_b(half + j, WINOGRAD3_PATCH, in, 1);
            }
        for (int i = 0; i < WINOGRAD3_PATCH; i++) {
            winograd3_b(line, 1, half + i * WINOGRAD3_PATCH, 1);
            SIMD_UNROLL(36)
            for (int j = 0; j < WINOGRAD3_PATCH; j++)
                simd_store(v + (i * WINOGRAD3_PATCH + j) * apart, line[j]);
        }
    }
}

static void winograd3_spread_tile(float *v, int64_t apart, float *sum, const void *dy,
                                  const winograd3_grid *grid, int64_t first, int64_t end)
{
    vec all = {0};

    for (int64_t t = first; t < end; t++, v += LANES) {
        const winograd3_place at = winograd3_find(grid, t);
        const cell *from =
            (const cell *)dy + at.image * grid->image + (at.top * grid->w + at.left) * LANES;
        vec in[WINOGRAD3_TILE], half[WINOGRAD3_PATCH * WINOGRAD3_TILE], line[WINOGRAD3_PATCH];
        winograd3_bits row[WINOGRAD3_TILE], column[WINOGRAD3_TILE];

        winograd3_fetch(dy, grid, t + 2, 0);
        winograd3_find_rows(row, at.top, grid->h, WINOGRAD3_TILE);
        winograd3_find_rows(column, at.left, grid->w, WINOGRAD3_TILE);
        for (int j = 0; j < WINOGRAD3_TILE; j++) {
            winograd3_read(in, from + j * LANES, grid->w, row, column[j], WINOGRAD3_TILE);
            all += (in[0] + in[1]) + (in[2] + in[3]);
            SIMD_UNROLL(36)
            for (int i = 4; i < WINOGRAD3_TILE; i++)
                all += in[i];
            winograd3_a_back(half + j, WINOGRAD3_TILE, in, 1);
        }
        for (int i = 0; i < WINOGRAD3_PATCH; i++) {
            winograd3_a_back(line, 1, half + i * WINOGRAD3_TILE, 1);
            SIMD_UNROLL(36)
            for (int j = 0; j < WINOGRAD3_PATCH; j++)
                simd_store(v + (i * WINOGRAD3_PATCH + j) * apart, line[j]);
        }
    }
    if (sum)
        simd_store_any(sum, all + simd_load_any(sum));
}

static void winograd3_gather_tile(void *y, const winograd3_grid *grid, const float *m,
                                  int64_t apart, const float *bias, int64_t first, int64_t end)
{
    const vec base = bias ? simd_load_any(bias) : (vec){0};

    for (int64_t t = first; t < end; t++, m += LANES) {
        const winograd3_place at = winograd3_find(grid, t);
        const int64_t rows = grid->h - at.top, columns = grid->w - at.left;
        cell *to = (cell *)y + at.image * grid->image + (at.top * grid->w + at.left) * LANES;
        vec half[WINOGRAD3_TILE * WINOGRAD3_PATCH], line[WINOGRAD3_TILE];

        for (int j = 0; j < WINOGRAD3_PATCH; j++) {
            vec in[WINOGRAD3_PATCH], out[WINOGRAD3_TILE];

            SIMD_UNROLL(36)
            for (int i = 0; i < WINOGRAD3_PATCH; i++)
                in[i] = simd_load(m + (i * WINOGRAD3_PATCH + j) * apart);
            winograd3_a(out, in, 1);
            SIMD_UNROLL(36)
            for (int i = 0; i < WINOGRAD3_TILE; i++)
                half[i * WINOGRAD3_PATCH + j] = out[i];
        }
        for (int i = 0; i < WINOGRAD3_TILE && i < rows; i++, to += grid->w * LANES) {
            winograd3_a(line, half + i * WINOGRAD3_PATCH, 1);
            if (columns >= WINOGRAD3_TILE)
                SIMD_UNROLL(36)
            for (int j = 0; j < WINOGRAD3_TILE; j++)
                winograd3_put(to + j * LANES, line[j] + base);
            else for (int j = 0; j < columns; j++) winograd3_put(to + j * LANES, line[j] + base);
        }
    }
}

/* --- weights --- */

#define WINOGRAD3_AHEAD 4 /* rows of weights that are fetched before they are read */

/* Nine taps to 36 points. */
SIMD_INLINE void winograd3_spread_taps(float *u, int64_t apart, const vec *tap)
{
    vec half[WINOGRAD3_PATCH * 3], line[WINOGRAD3_PATCH];

    SIMD_UNROLL(36) for (int j = 0; j < 3; j++) winograd3_g(half + j, 3, tap + j, 3);
    SIMD_UNROLL(36) for (int i = 0; i < WINOGRAD3_PATCH; i++)
    {
        winograd3_g(line, 1, half + i * 3, 1);
        SIMD_UNROLL(36)
        for (int j = 0; j < WINOGRAD3_PATCH; j++)
            simd_store(u + (i * WINOGRAD3_PATCH + j) * apart, line[j]);
    }
}

static void winograd3_spread_weight(float *u, int64_t apart, float *work, const float *w,
                                    int64_t row, int64_t in)
{
    for (int64_t e = 0; e < in * WINOGRAD3_TAPS; e += LANES) {
        vec v[LANES];

        SIMD_UNROLL(36)
        for (int l = 0; l < LANES; l++)
            v[l] = winograd3_weight(simd_load_any(w + l * row + e));
        simd_transpose(v);
        SIMD_UNROLL(36) for (int l = 0; l < LANES; l++) simd_store(work + (e + l) * LANES, v[l]);
    }
    for (int64_t i = 0; i < in; i++)
        winograd3_spread_taps(u + i * LANES, apart,
                              (const vec *)(work + i * WINOGRAD3_TAPS * LANES));
}

/* Nine taps of LANES channels, rotated by 180 degrees. */
SIMD_INLINE void winograd3_turn_taps(vec *turned, const float *w)
{
#if LANES > WINOGRAD3_TAPS
    vec v[LANES];

    SIMD_UNROLL(36)
    for (int l = 0; l < LANES; l++)
        v[l] = winograd3_weight(simd_load_some(w + l * WINOGRAD3_TAPS, WINOGRAD3_TAPS));
    simd_transpose(v);
    SIMD_UNROLL(36)
    for (int k = 0; k < WINOGRAD3_TAPS; k++)
        turned[k] = v[WINOGRAD3_TAPS - 1 - k];
#else
    for (int k = 0; k < WINOGRAD3_TAPS; k++) {
        vec v = {0};

        for (int l = 0; l < LANES; l++)
            v[l] = w[l * WINOGRAD3_TAPS + WINOGRAD3_TAPS - 1 - k];
        turned[k] = winograd3_weight(v);
    }
#endif
}

/* LANES channels of a row: a few cache lines far from those before, which a CPU does not fetch by
   itself. */
SIMD_INLINE void winograd3_fetch_taps(const float *w)
{
    SIMD_UNROLL(36)
    for (int k = 0; k < WINOGRAD3_TAPS * LANES; k += SIMD_LINE / (int)sizeof(float))
        __builtin_prefetch(w + k);
}

static void winograd3_spread_turned(float *u, int64_t apart, const float *w, int64_t row,
                                    int64_t out)
{
    for (int64_t o = 0; o < out; o++, w += row) {
        vec turned[WINOGRAD3_TAPS];

        winograd3_fetch_taps(w + WINOGRAD3_AHEAD * row);
        winograd3_turn_taps(turned, w);
        winograd3_spread_taps(u + o * LANES, apart, turned);
    }
}

static void winograd3_gather_weight(float *dw, const float *u, int64_t apart, float *work,
                                    int64_t row, int64_t in, bool add)
{
    for (int64_t i = 0; i < in; i++) {
        vec half[3 * WINOGRAD3_PATCH], *tap = (vec *)(work + i * WINOGRAD3_TAPS * LANES);

        for (int j = 0; j < WINOGRAD3_PATCH; j++) {
            vec point[WINOGRAD3_PATCH];

            SIMD_UNROLL(36)
            for (int k = 0; k < WINOGRAD3_PATCH; k++)
                point[k] = simd_load(u + (k * WINOGRAD3_PATCH + j) * apart + i * LANES);
            winograd3_g_back(half + j, WINOGRAD3_PATCH, point, 1);
        }
        SIMD_UNROLL(36)
        for (int k = 0; k < 3; k++)
            winograd3_g_back(tap + k * 3, 1, half + k * WINOGRAD3_PATCH, 1);
    }
    for (int64_t e = 0; e < in * WINOGRAD3_TAPS; e += LANES) {
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

const winograd3_loops WINOGRAD3_TABLE = {
    .name = WINOGRAD3_NAME,
    .lanes = LANES,
    .tile = WINOGRAD3_TILE,
    .points = WINOGRAD3_POINTS,
    .cell = sizeof(cell),
    .spread_patch = winograd3_spread_patch,
    .spread_tile = winograd3_spread_tile,
    .gather_tile = winograd3_gather_tile,
    .spread_weight = winograd3_spread_weight,
    .spread_turned = winograd3_spread_turned,
    .gather_weight = winograd3_gather_weight,
    .multiply = winograd3_multiply,
    .correlate = winograd3_correlate,
};
