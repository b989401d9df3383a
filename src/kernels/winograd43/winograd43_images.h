/*
 * winograd43_images.h - Winograd's transforms (winograd43.h) of images and weights. Included once
 * for each type of tensors, by a file that defines
 *
 *   cell                              float, or the bits of a BF16
 *   WINOGRAD43_FLOATS                       whether cells are floats
 *   WINOGRAD43_TABLE, WINOGRAD43_NAME             the table of loops and its name in profiles
 *   vec winograd43_take(bits, const cell *) a vector, or 0 without bits
 *   void winograd43_put(cell *, vec)
 *   vec winograd43_weight(vec)              floats, rounded as the tensors are
 *
 * Independent of calls, tensors and plans.
 */
#include "kernels/winograd43/winograd43_products.h"

/* --- images --- */

/* Whether all of a patch or tile of `size` is inside the image. */
SIMD_INLINE bool winograd43_is_inside(const winograd43_grid *grid, int64_t top, int64_t left,
                                      int size)
{
    return top >= 0 && left >= 0 && top + size <= grid->h && left + size <= grid->w;
}

/* The part of a patch or tile that is inside the image; elsewhere zeros are used and nothing is
   read. */
SIMD_INLINE void winograd43_read(vec *out, const cell *x, const winograd43_grid *grid, int64_t top,
                                 int64_t left, const int size)
{
    const cell *from = x + (top * grid->w + left) * LANES;
    winograd43_bits column[WINOGRAD43_PATCH];

    for (int j = 0; j < size; j++)
        column[j] = left + j >= 0 && left + j < grid->w ? WINOGRAD43_ALL : 0;
    for (int i = 0; i < size; i++, from += grid->w * LANES) {
        const winograd43_bits row = top + i >= 0 && top + i < grid->h ? WINOGRAD43_ALL : 0;

        SIMD_UNROLL(36)
        for (int j = 0; j < size; j++)
            out[i * size + j] = winograd43_take(row & column[j], from + j * LANES);
    }
}

/* Prefetch the cache lines that the patch after the next one reads and those before it have not. */
SIMD_INLINE void winograd43_fetch(const cell *x, const winograd43_grid *grid, int64_t top,
                                  int64_t left)
{
    const cell *from =
        x + ((top + 2) * grid->w + left + WINOGRAD43_PATCH + WINOGRAD43_TILE) * LANES;

    for (int i = 0; i < WINOGRAD43_TILE; i++, from += grid->w * LANES)
        SIMD_UNROLL(36)
    for (int j = 0; j < WINOGRAD43_TILE; j++)
        __builtin_prefetch(from + j * LANES);
}

/* A tile's place. */
typedef struct winograd43_place {
    int64_t image, top, left;
} winograd43_place;

SIMD_INLINE winograd43_place winograd43_find(const winograd43_grid *grid, int64_t tile)
{
    const int64_t row = tile / grid->columns;

    return (winograd43_place){row / grid->rows, grid->top + row % grid->rows * WINOGRAD43_TILE,
                              grid->left + tile % grid->columns * WINOGRAD43_TILE};
}

static void winograd43_spread_patch(float *v, int64_t apart, const void *x,
                                    const winograd43_grid *grid, int64_t first, int64_t end)
{
    for (int64_t t = first; t < end; t++, v += LANES) {
        const winograd43_place at = winograd43_find(grid, t);
        const cell *image = (const cell *)x + at.image * grid->image;
        vec in[WINOGRAD43_POINTS], half[WINOGRAD43_POINTS], line[WINOGRAD43_PATCH];

        winograd43_fetch(image, grid, at.top, at.left);
        if (WINOGRAD43_FLOATS && winograd43_is_inside(grid, at.top, at.left, WINOGRAD43_PATCH)) {
            const cell *from = image + (at.top * grid->w + at.left) * LANES;

            for (int j = 0; j < WINOGRAD43_PATCH; j++)
                winograd43_b(half + j, WINOGRAD43_PATCH,
                             (const vec *)(const void *)(from + j * LANES), grid->w);
        } else {
            winograd43_read(in, image, grid, at.top, at.left, WINOGRAD43_PATCH);
            for (int j = 0; j < WINOGRAD43_PATCH; j++)
                winograd43_b(half + j, WINOGRAD43_PATCH, in + j, WINOGRAD43_PATCH);
        }
        for (int i = 0; i < WINOGRAD43_PATCH; i++) {
            winograd43_b(line, 1, half + i * WINOGRAD43_PATCH, 1);
            SIMD_UNROLL(36)
            for (int j = 0; j < WINOGRAD43_PATCH; j++)
                simd_store(v + (i * WINOGRAD43_PATCH + j) * apart, line[j]);
        }
    }
}

static void winograd43_spread_tile(float *v, int64_t apart, float *sum, const void *dy,
                                   const winograd43_grid *grid, int64_t first, int64_t end)
{
    vec all = {0};

    for (int64_t t = first; t < end; t++, v += LANES) {
        const winograd43_place at = winograd43_find(grid, t);
        vec in[WINOGRAD43_TILE * WINOGRAD43_TILE], half[WINOGRAD43_PATCH * WINOGRAD43_TILE],
            line[WINOGRAD43_PATCH];

        winograd43_read(in, (const cell *)dy + at.image * grid->image, grid, at.top, at.left,
                        WINOGRAD43_TILE);
        for (int j = 0; j < WINOGRAD43_TILE; j++) {
            all += (in[j] + in[j + 4]) + (in[j + 8] + in[j + 12]);
            winograd43_a_back(half + j, WINOGRAD43_TILE, in + j, WINOGRAD43_TILE);
        }
        for (int i = 0; i < WINOGRAD43_PATCH; i++) {
            winograd43_a_back(line, 1, half + i * WINOGRAD43_TILE, 1);
            SIMD_UNROLL(36)
            for (int j = 0; j < WINOGRAD43_PATCH; j++)
                simd_store(v + (i * WINOGRAD43_PATCH + j) * apart, line[j]);
        }
    }
    if (sum)
        simd_store_any(sum, all + simd_load_any(sum));
}

static void winograd43_gather_tile(void *y, const winograd43_grid *grid, const float *m,
                                   int64_t apart, const float *bias, int64_t first, int64_t end)
{
    const vec base = bias ? simd_load_any(bias) : (vec){0};

    for (int64_t t = first; t < end; t++, m += LANES) {
        const winograd43_place at = winograd43_find(grid, t);
        const int64_t rows = grid->h - at.top, columns = grid->w - at.left;
        cell *to = (cell *)y + at.image * grid->image + (at.top * grid->w + at.left) * LANES;
        vec half[WINOGRAD43_TILE * WINOGRAD43_PATCH], line[WINOGRAD43_TILE];

        for (int j = 0; j < WINOGRAD43_PATCH; j++) {
            vec in[WINOGRAD43_PATCH], out[WINOGRAD43_TILE];

            SIMD_UNROLL(36)
            for (int i = 0; i < WINOGRAD43_PATCH; i++)
                in[i] = simd_load(m + (i * WINOGRAD43_PATCH + j) * apart);
            winograd43_a(out, in, 1);
            SIMD_UNROLL(36)
            for (int i = 0; i < WINOGRAD43_TILE; i++)
                half[i * WINOGRAD43_PATCH + j] = out[i];
        }
        for (int i = 0; i < WINOGRAD43_TILE && i < rows; i++, to += grid->w * LANES) {
            winograd43_a(line, half + i * WINOGRAD43_PATCH, 1);
            if (columns >= WINOGRAD43_TILE)
                SIMD_UNROLL(36)
            for (int j = 0; j < WINOGRAD43_TILE; j++)
                winograd43_put(to + j * LANES, line[j] + base);
            else for (int j = 0; j < columns; j++) winograd43_put(to + j * LANES, line[j] + base);
        }
    }
}

/* --- weights --- */

/* Nine taps to 36 points. */
SIMD_INLINE void winograd43_spread_taps(float *u, int64_t apart, const vec *tap)
{
    vec half[WINOGRAD43_PATCH * 3], line[WINOGRAD43_PATCH];

    SIMD_UNROLL(36) for (int j = 0; j < 3; j++) winograd43_g(half + j, 3, tap + j, 3);
    SIMD_UNROLL(36) for (int i = 0; i < WINOGRAD43_PATCH; i++)
    {
        winograd43_g(line, 1, half + i * 3, 1);
        SIMD_UNROLL(36)
        for (int j = 0; j < WINOGRAD43_PATCH; j++)
            simd_store(u + (i * WINOGRAD43_PATCH + j) * apart, line[j]);
    }
}

static void winograd43_spread_weight(float *u, int64_t apart, float *work, const float *w,
                                     int64_t in)
{
    const int64_t row = in * WINOGRAD43_TAPS;

    for (int64_t e = 0; e < row; e += LANES) {
        vec v[LANES];

        SIMD_UNROLL(36)
        for (int l = 0; l < LANES; l++)
            v[l] = winograd43_weight(simd_load_any(w + l * row + e));
        simd_transpose(v);
        SIMD_UNROLL(36) for (int l = 0; l < LANES; l++) simd_store(work + (e + l) * LANES, v[l]);
    }
    for (int64_t i = 0; i < in; i++)
        winograd43_spread_taps(u + i * LANES, apart,
                               (const vec *)(work + i * WINOGRAD43_TAPS * LANES));
}

/* Nine taps of LANES channels, rotated by 180 degrees. */
SIMD_INLINE void winograd43_turn_taps(vec *turned, const float *w)
{
#if LANES > WINOGRAD43_TAPS
    vec v[LANES];

    SIMD_UNROLL(36)
    for (int l = 0; l < LANES; l++)
        v[l] = winograd43_weight(simd_load_some(w + l * WINOGRAD43_TAPS, WINOGRAD43_TAPS));
    simd_transpose(v);
    SIMD_UNROLL(36)
    for (int k = 0; k < WINOGRAD43_TAPS; k++)
        turned[k] = v[WINOGRAD43_TAPS - 1 - k];
#else
    for (int k = 0; k < WINOGRAD43_TAPS; k++) {
        vec v = {0};

        for (int l = 0; l < LANES; l++)
            v[l] = w[l * WINOGRAD43_TAPS + WINOGRAD43_TAPS - 1 - k];
        turned[k] = winograd43_weight(v);
    }
#endif
}

static void winograd43_spread_turned(float *u, int64_t apart, const float *w, int64_t in,
                                     int64_t out)
{
    for (int64_t o = 0; o < out; o++, w += in * WINOGRAD43_TAPS) {
        vec turned[WINOGRAD43_TAPS];

        winograd43_turn_taps(turned, w);
        winograd43_spread_taps(u + o * LANES, apart, turned);
    }
}

static void winograd43_gather_weight(float *dw, const float *u, int64_t apart, float *work,
                                     int64_t in, bool add)
{
    const int64_t row = in * WINOGRAD43_TAPS;

    for (int64_t i = 0; i < in; i++) {
        vec half[3 * WINOGRAD43_PATCH], *tap = (vec *)(work + i * WINOGRAD43_TAPS * LANES);

        for (int j = 0; j < WINOGRAD43_PATCH; j++) {
            vec point[WINOGRAD43_PATCH];

            SIMD_UNROLL(36)
            for (int k = 0; k < WINOGRAD43_PATCH; k++)
                point[k] = simd_load(u + (k * WINOGRAD43_PATCH + j) * apart + i * LANES);
            winograd43_g_back(half + j, WINOGRAD43_PATCH, point, 1);
        }
        SIMD_UNROLL(36)
        for (int k = 0; k < 3; k++)
            winograd43_g_back(tap + k * 3, 1, half + k * WINOGRAD43_PATCH, 1);
    }
    for (int64_t e = 0; e < row; e += LANES) {
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

const winograd43_loops WINOGRAD43_TABLE = {
    .name = WINOGRAD43_NAME,
    .lanes = LANES,
    .cell = sizeof(cell),
    .spread_patch = winograd43_spread_patch,
    .spread_tile = winograd43_spread_tile,
    .gather_tile = winograd43_gather_tile,
    .spread_weight = winograd43_spread_weight,
    .spread_turned = winograd43_spread_turned,
    .gather_weight = winograd43_gather_weight,
    .multiply = winograd43_multiply,
    .correlate = winograd43_correlate,
};
