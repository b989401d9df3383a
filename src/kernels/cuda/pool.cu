/*
 * pool.cu - maxima and means of windows: src/backends/ref has the equations. Backward gathers: each
 * element of dx adds up what windows have for it, in their order, so that nothing is added by
 * several threads.
 */
#include "kernels/cuda/pool.h"

#include "kernels/cuda/elements.h"
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

/* The windows that cover the element (r, q) of an image. */
static inline pool_field pool_covering(const cuda_pool *arg, int32_t r, int32_t q)
{
    pool_field field;

    field.rows = pool_holding(r, arg->oh, arg->kernel[0], arg->stride[0], arg->padding[0]);
    field.cols = pool_holding(q, arg->ow, arg->kernel[1], arg->stride[1], arg->padding[1]);
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

/* What a thread makes: some channels of the element (r, q) of an image, at `at` of the result. In
   the other tensor those channels of the image begin at `first`. */
typedef struct pool_task {
    size_t at, first;
    int32_t r, q;
} pool_task;

/* Of thread `i`, where images of the result have this height and width. */
INLINE pool_task pool_find(const cuda_pool *arg, size_t i, int32_t height, int32_t width,
                           int together)
{
    const uint32_t groups = (uint32_t)arg->channels / (uint32_t)together;
    const uint32_t e = (uint32_t)i / groups, image = e / (uint32_t)(height * width);
    const int32_t other = arg->h * arg->w + arg->oh * arg->ow - height * width;
    const uint32_t c = (uint32_t)i % groups * (uint32_t)together;
    pool_task task;

    task.r = (int32_t)(e % (uint32_t)(height * width)) / width;
    task.q = (int32_t)(e % (uint32_t)(height * width)) % width;
    task.at = i * (uint32_t)together;
    task.first = (size_t)image * (uint32_t)other * (uint32_t)arg->channels + c;
    return task;
}

/* Where element `e` of the other image is. */
static inline size_t pool_at(const cuda_pool *arg, const pool_task *task, int32_t e)
{
    return task->first + (size_t)(uint32_t)e * (uint32_t)arg->channels;
}

static inline size_t pool_tasks(const cuda_pool *arg, int32_t height, int32_t width, int together)
{
    return (size_t)arg->images * (uint32_t)(height * width) *
           ((uint32_t)arg->channels / (uint32_t)together);
}

/* The kernel pool_<name> does pool_<name>_do for each element of a result (height, width). */
#define POOL(name, height, width)                                                                  \
    KERNEL(pool_##name, cuda_pool)                                                                 \
    {                                                                                              \
        if (arg.together == 1) {                                                                   \
            EACH (i, pool_tasks(&arg, height, width, 1))                                           \
                pool_##name##_do(&arg, pool_find(&arg, i, height, width, 1), 1);                   \
        } else {                                                                                   \
            EACH (i, pool_tasks(&arg, height, width, CUDA_TOGETHER))                               \
                pool_##name##_do(&arg, pool_find(&arg, i, height, width, CUDA_TOGETHER),           \
                                 CUDA_TOGETHER);                                                   \
        }                                                                                          \
    }

/* ---- maxima ---- */

INLINE void pool_max_do(const cuda_pool *arg, pool_task task, int together)
{
    const pool_field field = pool_covered(arg, task.r, task.q);
    int32_t best[CUDA_TOGETHER] = {0};
    float most[CUDA_TOGETHER] = {0}, v[CUDA_TOGETHER];

    ROLLED
    for (int32_t r = field.rows.begin; r < field.rows.end; r++)
        ROLLED
    for (int32_t q = field.cols.begin; q < field.cols.end; q++) {
        const int32_t place = r * arg->w + q;
        const bool first = r == field.rows.begin && q == field.cols.begin;

        elements_read(v, arg->in, pool_at(arg, &task, place), arg->type, together);
        for (int e = 0; e < together; e++)
            if (first || v[e] > most[e] || v[e] != v[e]) { /* NaN beats any number */
                best[e] = place;
                most[e] = v[e];
            }
    }
    elements_write(arg->out, task.at, arg->type, most, together);
    for (int e = 0; e < together && arg->place; e++)
        arg->place[task.at + (uint32_t)e] = best[e];
}

INLINE void pool_max_backward_do(const cuda_pool *arg, pool_task task, int together)
{
    const int32_t own = task.r * arg->w + task.q;
    const pool_field windows = pool_covering(arg, task.r, task.q);
    float sum[CUDA_TOGETHER] = {0}, dy[CUDA_TOGETHER];

    ROLLED
    for (int32_t u = windows.rows.begin; u < windows.rows.end; u++)
        ROLLED
    for (int32_t v = windows.cols.begin; v < windows.cols.end; v++) {
        const size_t at = pool_at(arg, &task, u * arg->ow + v);

        elements_read(dy, arg->in, at, arg->type, together);
        for (int e = 0; e < together; e++)
            sum[e] += arg->place[at + (uint32_t)e] == own ? dy[e] : 0;
    }
    elements_write(arg->out, task.at, arg->type, sum, together);
}

POOL(max, arg.oh, arg.ow)
POOL(max_backward, arg.h, arg.w)

/* ---- means ---- */

/* Of what a field of the other image has. */
INLINE void pool_average(const cuda_pool *arg, const pool_task *task, pool_field field,
                         float divisor, int together)
{
    float sum[CUDA_TOGETHER] = {0}, v[CUDA_TOGETHER];

    ROLLED
    for (int32_t r = field.rows.begin; r < field.rows.end; r++)
        ROLLED
    for (int32_t q = field.cols.begin; q < field.cols.end; q++) {
        elements_read(v, arg->in, pool_at(arg, task, r * arg->w + q), arg->type, together);
        for (int e = 0; e < together; e++)
            sum[e] += v[e];
    }
    for (int e = 0; e < together; e++)
        sum[e] /= divisor;
    elements_write(arg->out, task->at, arg->type, sum, together);
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

INLINE void pool_mean_do(const cuda_pool *arg, pool_task task, int together)
{
    const pool_field field = pool_covered(arg, task.r, task.q);

    pool_average(arg, &task, field, pool_divisor(arg, field), together);
}

INLINE void pool_parts_do(const cuda_pool *arg, pool_task task, int together)
{
    const pool_field field = pool_parted(arg, task.r, task.q);

    pool_average(arg, &task, field, pool_area(field), together);
}

/* Adds what the window (u, v) has for each of its elements. */
INLINE void pool_add_mean(float *sum, const cuda_pool *arg, const pool_task *task, int32_t u,
                          int32_t v, float divisor, int together)
{
    float dy[CUDA_TOGETHER];

    elements_read(dy, arg->in, pool_at(arg, task, u * arg->ow + v), arg->type, together);
    for (int e = 0; e < together; e++)
        sum[e] += dy[e] / divisor;
}

INLINE void pool_mean_backward_do(const cuda_pool *arg, pool_task task, int together)
{
    const pool_field windows = pool_covering(arg, task.r, task.q);
    float sum[CUDA_TOGETHER] = {0};

    ROLLED
    for (int32_t u = windows.rows.begin; u < windows.rows.end; u++)
        ROLLED
    for (int32_t v = windows.cols.begin; v < windows.cols.end; v++)
        pool_add_mean(sum, arg, &task, u, v, pool_divisor(arg, pool_covered(arg, u, v)), together);
    elements_write(arg->out, task.at, arg->type, sum, together);
}

/* r is in the windows from floor(r count / size) to ceil((r + 1) count / size): as many parts as
   pool_part gives with the two exchanged. */
INLINE void pool_parts_backward_do(const cuda_pool *arg, pool_task task, int together)
{
    const pool_range rows = pool_part(task.r, arg->oh, arg->h);
    const pool_range cols = pool_part(task.q, arg->ow, arg->w);
    float sum[CUDA_TOGETHER] = {0};

    ROLLED
    for (int32_t u = rows.begin; u < rows.end; u++)
        ROLLED
    for (int32_t v = cols.begin; v < cols.end; v++)
        pool_add_mean(sum, arg, &task, u, v, pool_area(pool_parted(arg, u, v)), together);
    elements_write(arg->out, task.at, arg->type, sum, together);
}

POOL(mean, arg.oh, arg.ow)
POOL(mean_backward, arg.h, arg.w)
POOL(parts, arg.oh, arg.ow)
POOL(parts_backward, arg.h, arg.w)
