/*
 * pool_impl.h - the loops of pool.h for LANES lanes. Included once for each instruction set, by a
 * file that defines LANES and POOL_TABLE.
 */
#include <string.h>

#include "kernels/pool/pool.h"
#include "kernels/simd.h"

typedef uint8_t pool_bytes
    __attribute__((vector_size(LANES * sizeof(uint8_t)), may_alias, aligned(1)));

/* The part of a window that is inside the image. */
typedef struct pool_window {
    int64_t top, bottom, left, right;
    int32_t place; /* of its first pixel among all of the window */
    float share;   /* 1 / divisor of a mean */
} pool_window;

/* The window of result `e`. */
SIMD_INLINE pool_window pool_find_window(const pool_shape *s, int64_t e)
{
    const int64_t u = e / s->out[1], v = e % s->out[1];
    const int64_t top = u * s->stride[0] - s->padding[0], left = v * s->stride[1] - s->padding[1];
    const int64_t bottom = top + s->kernel[0], right = left + s->kernel[1];
    pool_window w = {.top = top > 0 ? top : 0,
                     .left = left > 0 ? left : 0,
                     .bottom = bottom < s->in[0] ? bottom : s->in[0],
                     .right = right < s->in[1] ? right : s->in[1]};
    const int64_t inside = (w.bottom - w.top) * (w.right - w.left);

    w.place = (int32_t)((w.top - top) * s->kernel[1] + w.left - left);
    w.share = 1 / (float)(s->counts_padding ? s->kernel[0] * s->kernel[1] : inside);
    return w;
}

static void pool_max(float *y, uint8_t *place, const float *x, const pool_shape *s)
{
    for (int64_t e = 0; e < s->out[0] * s->out[1]; e++, y += LANES) {
        const pool_window w = pool_find_window(s, e);
        vec best = simd_load(x + (w.top * s->in[1] + w.left) * LANES);
        ivec where = (ivec){0} + w.place;

        for (int64_t r = w.top; r < w.bottom; r++)
            for (int64_t q = w.left; q < w.right; q++) {
                const vec each = simd_load(x + (r * s->in[1] + q) * LANES);
                const ivec more = (ivec)((each > best) | (each != each));
                const ivec here =
                    (ivec){0} + (w.place + (int32_t)((r - w.top) * s->kernel[1] + q - w.left));

                best = simd_select(more, each, best);
                where = (more & here) | (~more & where);
            }
        simd_store(y, best);
        if (place) {
            *(pool_bytes *)place = __builtin_convertvector(where, pool_bytes);
            place += LANES;
        }
    }
}

static void pool_max_gradient(float *dx, const float *dy, const uint8_t *place, const pool_shape *s)
{
    memset(dx, 0, (size_t)(s->in[0] * s->in[1] * LANES) * sizeof(float));
    for (int64_t e = 0; e < s->out[0] * s->out[1]; e++, dy += LANES, place += LANES) {
        const pool_window w = pool_find_window(s, e);
        const vec d = simd_load(dy);
        const ivec where = __builtin_convertvector(*(const pool_bytes *)place, ivec);

        for (int64_t r = w.top; r < w.bottom; r++)
            for (int64_t q = w.left; q < w.right; q++) {
                float *to = dx + (r * s->in[1] + q) * LANES;
                const ivec here =
                    (ivec){0} + (w.place + (int32_t)((r - w.top) * s->kernel[1] + q - w.left));

                simd_store(to, simd_load(to) + (vec)((where == here) & (ivec)d));
            }
    }
}

static void pool_mean(float *y, const float *x, const pool_shape *s)
{
    for (int64_t e = 0; e < s->out[0] * s->out[1]; e++, y += LANES) {
        const pool_window w = pool_find_window(s, e);
        vec sum = {0};

        for (int64_t r = w.top; r < w.bottom; r++)
            for (int64_t q = w.left; q < w.right; q++)
                sum += simd_load(x + (r * s->in[1] + q) * LANES);
        simd_store(y, sum * w.share);
    }
}

static void pool_mean_gradient(float *dx, const float *dy, const pool_shape *s)
{
    memset(dx, 0, (size_t)(s->in[0] * s->in[1] * LANES) * sizeof(float));
    for (int64_t e = 0; e < s->out[0] * s->out[1]; e++, dy += LANES) {
        const pool_window w = pool_find_window(s, e);
        const vec d = simd_load(dy) * w.share;

        for (int64_t r = w.top; r < w.bottom; r++)
            for (int64_t q = w.left; q < w.right; q++) {
                float *to = dx + (r * s->in[1] + q) * LANES;

                simd_store(to, simd_load(to) + d);
            }
    }
}

const pool_loops POOL_TABLE = {
    .lanes = LANES,
    .max = pool_max,
    .max_gradient = pool_max_gradient,
    .mean = pool_mean,
    .mean_gradient = pool_mean_gradient,
};
