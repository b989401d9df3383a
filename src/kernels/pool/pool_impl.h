/*
 * pool_impl.h - the loops of pool.h for LANES lanes. Included once for each instruction set and
 * type of numbers, by a file that defines LANES and POOL_TABLE; POOL_WIDE where blocks have several
 * vectors; and CELL_HALF for tensors of BF16.
 *
 * Gradients are gathered where windows overlap: each pixel of the image asks those that hold it, so
 * none is written twice.
 */
#include "kernels/cell.h"
#include "kernels/pool/pool.h"

#define POOL_TOGETHER 4 /* windows */
#ifndef POOL_WIDE
#define POOL_WIDE 1 /* vectors of a block */
#endif
#define POOL_PIXEL (LANES * POOL_WIDE)

/* Each vector of a block, by its first number. */
#define POOL_EACH(h) for (int64_t h = 0; h < POOL_PIXEL; h += LANES)

typedef uint8_t pool_bytes
    __attribute__((vector_size(LANES * sizeof(uint8_t)), may_alias, aligned(1)));

/* In one direction: the pixels of a window that are inside the image, or the windows that hold a
   pixel. */
typedef struct pool_span {
    int64_t begin, end;
} pool_span;

SIMD_INLINE pool_span pool_find_pixels(const pool_shape *s, int dim, int64_t at)
{
    const int64_t begin = at * s->stride[dim] - s->padding[dim], end = begin + s->kernel[dim];

    return (pool_span){begin > 0 ? begin : 0, end < s->in[dim] ? end : s->in[dim]};
}

SIMD_INLINE pool_span pool_find_windows(const pool_shape *s, int dim, int64_t at)
{
    const uint64_t padded = (uint64_t)(at + s->padding[dim]);
    const uint64_t kernel = (uint64_t)s->kernel[dim], stride = (uint64_t)s->stride[dim];
    const int64_t end = (int64_t)(padded / stride) + 1;

    return (pool_span){padded < kernel ? 0 : (int64_t)((padded - kernel) / stride) + 1,
                       end < s->out[dim] ? end : s->out[dim]};
}

/* The pixel's place in a window. */
SIMD_INLINE int32_t pool_place(const pool_shape *s, int64_t u, int64_t v, int64_t row,
                               int64_t column)
{
    return (int32_t)((row + s->padding[0] - u * s->stride[0]) * s->kernel[1] + column +
                     s->padding[1] - v * s->stride[1]);
}

SIMD_INLINE float pool_share(const pool_shape *s, int64_t u, int64_t v)
{
    const pool_span rows = pool_find_pixels(s, 0, u), columns = pool_find_pixels(s, 1, v);

    return 1 / (float)(s->counts_padding ? s->kernel[0] * s->kernel[1]
                                         : (rows.end - rows.begin) * (columns.end - columns.begin));
}

/* `rows` by `columns` pixels of n neighbouring windows, from x on, which is at place `first`. One
   window's maximum waits for a comparison at each pixel: several keep the processor busy. */
SIMD_INLINE void pool_max_pixels(cell *y, uint8_t *place, const cell *x, const pool_shape *s,
                                 int32_t first, int64_t rows, int64_t columns, const int n)
{
    vec best[POOL_TOGETHER];
    ivec where[POOL_TOGETHER];

    SIMD_UNROLL(4) for (int k = 0; k < n; k++)
    {
        best[k] = cell_load(x + k * s->stride[1] * POOL_PIXEL);
        where[k] = (ivec){0} + first;
    }
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            SIMD_UNROLL(4)
    for (int k = 0; k < n; k++) {
        const vec each = cell_load(x + (i * s->in[1] + j + k * s->stride[1]) * POOL_PIXEL);
        const simd_mask more = simd_greater_or_nan(each, best[k]);

        best[k] = (vec)simd_pick(more, (ivec)each, (ivec)best[k]);
        where[k] = simd_pick(more, (ivec){0} + (first + (int32_t)(i * s->kernel[1] + j)), where[k]);
    }
    SIMD_UNROLL(4) for (int k = 0; k < n; k++)
    {
        cell_store(y + k * POOL_PIXEL, best[k]);
        if (place)
            *(pool_bytes *)(place + k * POOL_PIXEL) = __builtin_convertvector(where[k], pool_bytes);
    }
}

SIMD_INLINE bool pool_is_whole(const pool_span *span, int64_t kernel)
{
    return span->end - span->begin == kernel;
}

/* Window v and those after it, if they are together; returns how many. */
SIMD_INLINE int pool_max_windows(cell *y, uint8_t *place, const cell *x, const pool_shape *s,
                                 int64_t u, int64_t v)
{
    const pool_span rows = pool_find_pixels(s, 0, u), columns = pool_find_pixels(s, 1, v);
    const pool_span last = pool_find_pixels(s, 1, v + POOL_TOGETHER - 1);
    const cell *from = x + (rows.begin * s->in[1] + columns.begin) * POOL_PIXEL;

    if (v + POOL_TOGETHER <= s->out[1] && pool_is_whole(&rows, s->kernel[0]) &&
        pool_is_whole(&columns, s->kernel[1]) && pool_is_whole(&last, s->kernel[1])) {
        pool_max_pixels(y, place, from, s, 0, s->kernel[0], s->kernel[1], POOL_TOGETHER);
        return POOL_TOGETHER;
    }
    pool_max_pixels(y, place, from, s, pool_place(s, u, v, rows.begin, columns.begin),
                    rows.end - rows.begin, columns.end - columns.begin, 1);
    return 1;
}

SIMD_INLINE void pool_max_of(void *to, uint8_t *place, const void *from, const pool_shape *s)
{
    const cell *x = from;
    cell *y = to;

    for (int64_t u = 0; u < s->out[0]; u++)
        for (int64_t v = 0, n = 0; v < s->out[1]; v += n) {
            const int64_t at = (u * s->out[1] + v) * POOL_PIXEL;

            POOL_EACH(h)
            n = pool_max_windows(y + at + h, place ? place + at + h : NULL, x + h, s, u, v);
        }
}

SIMD_INLINE vec pool_gather_max(const cell *dy, const uint8_t *place, const pool_shape *s,
                                const pool_span *us, const pool_span *vs, int64_t r, int64_t q)
{
    vec sum = {0};

    for (int64_t u = us->begin; u < us->end; u++)
        for (int64_t v = vs->begin; v < vs->end; v++) {
            const int64_t at = (u * s->out[1] + v) * POOL_PIXEL;
            const ivec where = __builtin_convertvector(*(const pool_bytes *)(place + at), ivec);
            const ivec here = (ivec){0} + pool_place(s, u, v, r, q);

            sum += (vec)simd_pick(simd_equal(where, here), (ivec)cell_load(dy + at), (ivec){0});
        }
    return sum;
}

SIMD_INLINE void pool_max_gradient_of(void *to, const void *dy, const uint8_t *place,
                                      const pool_shape *s)
{
    cell *dx = to;

    for (int64_t r = 0; r < s->in[0]; r++) {
        const pool_span us = pool_find_windows(s, 0, r);

        for (int64_t q = 0; q < s->in[1]; q++, dx += POOL_PIXEL) {
            const pool_span vs = pool_find_windows(s, 1, q);

            POOL_EACH(h)
            cell_store(dx + h, pool_gather_max((const cell *)dy + h, place + h, s, &us, &vs, r, q));
        }
    }
}

SIMD_INLINE void pool_put_window(cell *dx, const cell *dy, const uint8_t *place,
                                 const pool_shape *s)
{
    const ivec where = __builtin_convertvector(*(const pool_bytes *)place, ivec);
    const ivec d = (ivec)cell_load(dy);

    for (int64_t i = 0; i < s->kernel[0]; i++)
        for (int64_t j = 0; j < s->kernel[1]; j++) {
            const ivec here = (ivec){0} + (int32_t)(i * s->kernel[1] + j);

            cell_store(dx + (i * s->in[1] + j) * POOL_PIXEL,
                       (vec)simd_pick(simd_equal(where, here), d, (ivec){0}));
        }
}

/* Windows side by side, of whole images: each pixel is in one of them. */
SIMD_INLINE void pool_max_gradient_apart(void *to, const void *dy, const uint8_t *place,
                                         const pool_shape *s)
{
    for (int64_t u = 0; u < s->out[0]; u++)
        for (int64_t v = 0; v < s->out[1]; v++) {
            const int64_t at = (u * s->out[1] + v) * POOL_PIXEL;

            cell *dx = (cell *)to + (u * s->kernel[0] * s->in[1] + v * s->kernel[1]) * POOL_PIXEL;

            POOL_EACH(h)
            pool_put_window(dx + h, (const cell *)dy + at + h, place + at + h, s);
        }
}

SIMD_INLINE bool pool_is_apart(const pool_shape *s)
{
    for (int i = 0; i < 2; i++)
        if (s->padding[i] || s->kernel[i] != s->stride[i] || s->in[i] % s->kernel[i])
            return false;
    return true;
}

/* Windows of 3x3 with a stride of 2. In one direction pixel t, counted from the padding on, is the
   third of a window and the first of the next one, or the second of one. */

/* A line of windows: what it gives to a line of pixels. */
typedef struct pool_line {
    const cell *dy;
    const uint8_t *place;
    int32_t first; /* place of the line's first pixel in its window */
} pool_line;

/* A window's gradient and the place that it goes to; nothing where there is no window. */
typedef struct pool_window {
    ivec where, dy;
} pool_window;

SIMD_INLINE pool_window pool_read(const pool_line *line, int64_t v, int64_t n)
{
    if (v < 0 || v >= n)
        return (pool_window){(ivec){0} - 1, {0}};
    return (pool_window){
        __builtin_convertvector(*(const pool_bytes *)(line->place + v * POOL_PIXEL), ivec) -
            line->first,
        (ivec)cell_load(line->dy + v * POOL_PIXEL)};
}

SIMD_INLINE vec pool_give(const pool_window *window, int32_t place)
{
    return (vec)simd_pick(simd_equal(window->where, (ivec){0} + place), window->dy, (ivec){0});
}

/* One line of dx from n lines of windows; n is a constant in each use. */
SIMD_INLINE void pool_max_gradient_line(cell *dx, const pool_line *line, const int n,
                                        const pool_shape *s)
{
    const int64_t first = s->padding[1] / 2;
    pool_window last[2];

    for (int k = 0; k < n; k++)
        last[k] = pool_read(&line[k], first - 1, s->out[1]);
    for (int64_t v = first, q = 2 * first - s->padding[1]; q < s->in[1]; v++, q += 2) {
        vec even = {0}, odd = {0};

        for (int k = 0; k < n; k++) {
            const pool_window next = pool_read(&line[k], v, s->out[1]);

            even += pool_give(&last[k], 2);
            even += pool_give(&next, 0);
            odd += pool_give(&next, 1);
            last[k] = next;
        }
        if (q >= 0)
            cell_store(dx + q * POOL_PIXEL, even);
        if (q + 1 < s->in[1])
            cell_store(dx + (q + 1) * POOL_PIXEL, odd);
    }
}

static void pool_max_gradient_three(void *to, const void *dy, const uint8_t *place,
                                    const pool_shape *s)
{
    cell *dx = to;

    for (int64_t r = 0; r < s->in[0]; r++, dx += s->in[1] * POOL_PIXEL) {
        const int64_t t = r + s->padding[0];
        pool_line line[2];
        int n = 0;

        for (int64_t u = (t - 1) / 2; u <= t / 2; u++) {
            const int64_t at = u * s->out[1] * POOL_PIXEL;

            if (u < s->out[0])
                line[n++] =
                    (pool_line){(const cell *)dy + at, place + at, (int32_t)(3 * (t - 2 * u))};
        }
        POOL_EACH(h)
        {
            if (n == 2)
                pool_max_gradient_line(dx + h, line, 2, s);
            else
                pool_max_gradient_line(dx + h, line, n, s);
            for (int k = 0; k < n; k++) {
                line[k].dy += LANES;
                line[k].place += LANES;
            }
        }
    }
}

/* The shape, with what is usual as constants for the compiler: squares with a stride of 2. */
SIMD_INLINE pool_shape pool_fix(const pool_shape *s, int64_t kernel)
{
    pool_shape known = *s;

    for (int i = 0; i < 2; i++) {
        known.kernel[i] = kernel;
        known.stride[i] = 2;
    }
    return known;
}

SIMD_INLINE bool pool_is(const pool_shape *s, int64_t kernel)
{
    return s->kernel[0] == kernel && s->kernel[1] == kernel && s->stride[0] == 2 &&
           s->stride[1] == 2;
}

static void pool_max(void *y, uint8_t *place, const void *x, const pool_shape *s)
{
    const pool_shape two = pool_fix(s, 2), three = pool_fix(s, 3);

    if (pool_is(s, 2))
        pool_max_of(y, place, x, &two);
    else if (pool_is(s, 3))
        pool_max_of(y, place, x, &three);
    else
        pool_max_of(y, place, x, s);
}

static void pool_max_gradient(void *dx, const void *dy, const uint8_t *place, const pool_shape *s)
{
    const pool_shape two = pool_fix(s, 2);

    if (pool_is(s, 2) && pool_is_apart(s))
        pool_max_gradient_apart(dx, dy, place, &two);
    else if (pool_is_apart(s))
        pool_max_gradient_apart(dx, dy, place, s);
    else if (pool_is(s, 2))
        pool_max_gradient_of(dx, dy, place, &two);
    else if (pool_is(s, 3))
        pool_max_gradient_three(dx, dy, place, s);
    else
        pool_max_gradient_of(dx, dy, place, s);
}

SIMD_INLINE vec pool_gather_pixels(const cell *x, const pool_shape *s, const pool_span *rows,
                                   const pool_span *columns)
{
    vec sum = {0};

    for (int64_t r = rows->begin; r < rows->end; r++)
        for (int64_t q = columns->begin; q < columns->end; q++)
            sum += cell_load(x + (r * s->in[1] + q) * POOL_PIXEL);
    return sum;
}

static void pool_mean(void *to, const void *from, const pool_shape *s)
{
    cell *y = to;

    for (int64_t e = 0; e < s->out[0] * s->out[1]; e++, y += POOL_PIXEL) {
        const int64_t u = e / s->out[1], v = e % s->out[1];
        const pool_span rows = pool_find_pixels(s, 0, u), columns = pool_find_pixels(s, 1, v);
        const float share = pool_share(s, u, v);

        POOL_EACH(h)
        cell_store(y + h, pool_gather_pixels((const cell *)from + h, s, &rows, &columns) * share);
    }
}

SIMD_INLINE vec pool_gather_mean(const cell *dy, const pool_shape *s, const pool_span *us,
                                 const pool_span *vs)
{
    vec sum = {0};

    for (int64_t u = us->begin; u < us->end; u++)
        for (int64_t v = vs->begin; v < vs->end; v++)
            sum += cell_load(dy + (u * s->out[1] + v) * POOL_PIXEL) * pool_share(s, u, v);
    return sum;
}

static void pool_mean_gradient(void *to, const void *dy, const pool_shape *s)
{
    cell *dx = to;

    for (int64_t r = 0; r < s->in[0]; r++) {
        const pool_span us = pool_find_windows(s, 0, r);

        for (int64_t q = 0; q < s->in[1]; q++, dx += POOL_PIXEL) {
            const pool_span vs = pool_find_windows(s, 1, q);

            POOL_EACH(h)
            cell_store(dx + h, pool_gather_mean((const cell *)dy + h, s, &us, &vs));
        }
    }
}

const pool_loops POOL_TABLE = {
    .lanes = POOL_PIXEL,
    .cell = sizeof(cell),
    .max = pool_max,
    .max_gradient = pool_max_gradient,
    .mean = pool_mean,
    .mean_gradient = pool_mean_gradient,
};
