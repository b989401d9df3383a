/*
 * pool.cu - maxima and means of windows: src/backends/ref has the equations. Backward gathers: each
 * element of dx adds up what windows have for it, in their order, so that nothing is added by
 * several threads.
 */
#include "kernels/cuda/pool.h"

#include "kernels/cuda/grid.h"

/* Windows [begin, end) in one direction. */
typedef struct pool_range {
    int32_t begin, end;
} pool_range;

/* Where the window at u is, the padding not counted. */
static inline pool_range pool_window(int32_t u, int32_t size, int32_t kernel, int32_t stride,
                                     int32_t padding)
{
    const int32_t begin = u * stride - padding, end = begin + kernel;
    pool_range range;

    range.begin = begin > 0 ? begin : 0;
    range.end = end < size ? end : size;
    return range;
}

/* The windows that r is in; `count` of them there are. */
static inline pool_range pool_holding(int32_t r, int32_t count, int32_t kernel, int32_t stride,
                                      int32_t padding)
{
    const int32_t from = r + padding - kernel + stride, to = (r + padding) / stride + 1;
    pool_range range;

    range.begin = from > 0 ? from / stride : 0;
    range.end = to < count ? to : count;
    return range;
}

/* The same for windows that cut the image into `count` parts, which may overlap. */
static inline pool_range pool_part(int32_t u, int32_t size, int32_t count)
{
    pool_range range;

    range.begin = (int32_t)((int64_t)u * size / count);
    range.end = (int32_t)((((int64_t)u + 1) * size + count - 1) / count);
    return range;
}

/* Rows and columns of the image, or of the windows. */
typedef struct pool_field {
    pool_range rows, cols;
} pool_field;

/* What the window (u, v) covers. */
static inline pool_field pool_covered(const cuda_pool *arg, int32_t u, int32_t v)
{
    pool_field field;

    field.rows = pool_window(u, arg->h, arg->kernel[0], arg->stride[0], arg->padding[0]);
    field.cols = pool_window(v, arg->w, arg->kernel[1], arg->stride[1], arg->padding[1]);
    return field;
}

/* The windows that cover the element `e` of an image. */
static inline pool_field pool_covering(const cuda_pool *arg, int32_t e)
{
    pool_field field;

    field.rows =
        pool_holding(e / arg->w, arg->oh, arg->kernel[0], arg->stride[0], arg->padding[0]);
    field.cols =
        pool_holding(e % arg->w, arg->ow, arg->kernel[1], arg->stride[1], arg->padding[1]);
    return field;
}

/* As pool_covered, of parts. */
static inline pool_field pool_parted(const cuda_pool *arg, int32_t u, int32_t v)
{
    pool_field field;

    field.rows = pool_part(u, arg->h, arg->oh);
    field.cols = pool_part(v, arg->w, arg->ow);
    return field;
}

KERNEL(pool_max, cuda_pool)
{
    const uint32_t out = (uint32_t)(arg.oh * arg.ow);

    EACH(i, (size_t)arg.planes * out)
    {
        const uint32_t plane = (uint32_t)i / out, e = (uint32_t)i % out;
        const float *x = arg.in + (size_t)plane * (uint32_t)(arg.h * arg.w);
        const pool_field field = pool_covered(&arg, (int32_t)e / arg.ow, (int32_t)e % arg.ow);
        int32_t best = field.rows.begin * arg.w + field.cols.begin;
        float most = x[best];

        for (int32_t r = field.rows.begin; r < field.rows.end; r++)
            for (int32_t q = field.cols.begin; q < field.cols.end; q++) {
                const float v = x[r * arg.w + q];

                if (v > most || v != v) { /* NaN beats any number */
                    best = r * arg.w + q;
                    most = v;
                }
            }
        arg.out[i] = most;
        if (arg.place)
            arg.place[i] = best;
    }
}

KERNEL(pool_max_backward, cuda_pool)
{
    const uint32_t in = (uint32_t)(arg.h * arg.w);

    EACH(i, (size_t)arg.planes * in)
    {
        const uint32_t plane = (uint32_t)i / in;
        const int32_t e = (int32_t)((uint32_t)i % in);
        const size_t first = (size_t)plane * (uint32_t)(arg.oh * arg.ow);
        const pool_field at = pool_covering(&arg, e);
        float sum = 0;

        for (int32_t u = at.rows.begin; u < at.rows.end; u++)
            for (int32_t v = at.cols.begin; v < at.cols.end; v++)
                if (arg.place[first + (uint32_t)(u * arg.ow + v)] == e)
                    sum += arg.in[first + (uint32_t)(u * arg.ow + v)];
        arg.out[i] = sum;
    }
}

/* ---- means ---- */

static inline float pool_sum(const float *x, int32_t width, pool_field field)
{
    float sum = 0;

    for (int32_t r = field.rows.begin; r < field.rows.end; r++)
        for (int32_t q = field.cols.begin; q < field.cols.end; q++)
            sum += x[r * width + q];
    return sum;
}

static inline float pool_area(pool_field field)
{
    return (float)((field.rows.end - field.rows.begin) * (field.cols.end - field.cols.begin));
}

/* What counts in a window. */
static inline float pool_divisor(const cuda_pool *arg, pool_field field)
{
    return arg->count_padding ? (float)(arg->kernel[0] * arg->kernel[1]) : pool_area(field);
}

KERNEL(pool_mean, cuda_pool)
{
    const uint32_t out = (uint32_t)(arg.oh * arg.ow);

    EACH(i, (size_t)arg.planes * out)
    {
        const uint32_t plane = (uint32_t)i / out, e = (uint32_t)i % out;
        const float *x = arg.in + (size_t)plane * (uint32_t)(arg.h * arg.w);
        const pool_field field = pool_covered(&arg, (int32_t)e / arg.ow, (int32_t)e % arg.ow);

        arg.out[i] = pool_sum(x, arg.w, field) / pool_divisor(&arg, field);
    }
}

KERNEL(pool_mean_backward, cuda_pool)
{
    const uint32_t in = (uint32_t)(arg.h * arg.w);

    EACH(i, (size_t)arg.planes * in)
    {
        const uint32_t plane = (uint32_t)i / in;
        const int32_t e = (int32_t)((uint32_t)i % in);
        const float *dy = arg.in + (size_t)plane * (uint32_t)(arg.oh * arg.ow);
        const pool_field at = pool_covering(&arg, e);
        float sum = 0;

        for (int32_t u = at.rows.begin; u < at.rows.end; u++)
            for (int32_t v = at.cols.begin; v < at.cols.end; v++)
                sum += dy[u * arg.ow + v] / pool_divisor(&arg, pool_covered(&arg, u, v));
        arg.out[i] = sum;
    }
}

KERNEL(pool_parts, cuda_pool)
{
    const uint32_t out = (uint32_t)(arg.oh * arg.ow);

    EACH(i, (size_t)arg.planes * out)
    {
        const uint32_t plane = (uint32_t)i / out, e = (uint32_t)i % out;
        const float *x = arg.in + (size_t)plane * (uint32_t)(arg.h * arg.w);
        const pool_field field = pool_parted(&arg, (int32_t)e / arg.ow, (int32_t)e % arg.ow);

        arg.out[i] = pool_sum(x, arg.w, field) / pool_area(field);
    }
}

/* r is in the windows from floor(r count / size) to ceil((r + 1) count / size): as many parts as
   pool_part gives with the two exchanged. */
KERNEL(pool_parts_backward, cuda_pool)
{
    const uint32_t in = (uint32_t)(arg.h * arg.w);

    EACH(i, (size_t)arg.planes * in)
    {
        const uint32_t plane = (uint32_t)i / in;
        const int32_t e = (int32_t)((uint32_t)i % in);
        const float *dy = arg.in + (size_t)plane * (uint32_t)(arg.oh * arg.ow);
        const pool_range rows = pool_part(e / arg.w, arg.oh, arg.h);
        const pool_range cols = pool_part(e % arg.w, arg.ow, arg.w);
        float sum = 0;

        for (int32_t u = rows.begin; u < rows.end; u++)
            for (int32_t v = cols.begin; v < cols.end; v++)
                sum += dy[u * arg.ow + v] / pool_area(pool_parted(&arg, u, v));
        arg.out[i] = sum;
    }
}
