/*
 * adaptive_pool.c - the loops of adaptive_pool.h.
 */
#include "kernels/adaptive_pool/adaptive_pool.h"

#include <string.h>

#include "core/half.h"

#define ADAPTIVE_POOL_TOGETHER 512 /* values added up in one go */

typedef struct adaptive_pool_range {
    int64_t begin, end;
} adaptive_pool_range;

/* Where sums go, and the places of `from` that they are of. */
typedef struct adaptive_pool_pixel {
    int64_t u, v;
    adaptive_pool_range rows, columns;
} adaptive_pool_pixel;

/* Which of `from` places belong to place `at` of `to`. */
static adaptive_pool_range adaptive_pool_find_range(int64_t at, int64_t from, int64_t to)
{
    return (adaptive_pool_range){at * from / to, ((at + 1) * from + to - 1) / to};
}

/* sum += x / by, for n <= ADAPTIVE_POOL_TOGETHER values from `at` on. */
static inline void adaptive_pool_add(float *sum, const void *x, int64_t at, int64_t n,
                                     co_dtype dtype, float by)
{
    float wide[ADAPTIVE_POOL_TOGETHER];
    const float *v = (const float *)x + at;

    if (dtype != CO_F32) {
        co_half_widen(wide, (const uint16_t *)x + at, (size_t)n, dtype);
        v = wide;
    }
    for (int64_t i = 0; i < n; i++)
        sum[i] += v[i] / by;
}

static inline void adaptive_pool_put(void *y, int64_t at, const float *sum, int64_t n,
                                     co_dtype dtype)
{
    if (dtype == CO_F32)
        memcpy((float *)y + at, sum, (size_t)n * sizeof(*sum));
    else
        co_half_round((uint16_t *)y + at, sum, (size_t)n, dtype);
}

/* Values [l, l + n) of pixel (u, v) of an image: the mean of its window or, backward, its shares of
   the windows that hold it. */
static inline void adaptive_pool_values(const adaptive_pool_work *w, const adaptive_pool_pixel *p,
                                        int64_t image, int64_t lanes, int64_t l, int64_t n,
                                        co_dtype dtype)
{
    const int64_t *to = w->to.size, *from = w->from.size;
    float sum[ADAPTIVE_POOL_TOGETHER];

    for (int64_t i = 0; i < n; i++)
        sum[i] = 0;
    for (int64_t r = p->rows.begin; r < p->rows.end; r++)
        for (int64_t q = p->columns.begin; q < p->columns.end; q++)
            adaptive_pool_add(sum, w->from.data, ((image * from[0] + r) * from[1] + q) * lanes + l,
                              n, dtype, w->backward ? w->count[r * from[1] + q] : 1);
    for (int64_t i = 0; i < n && !w->backward; i++)
        sum[i] /= w->count[p->u * to[1] + p->v];
    adaptive_pool_put(w->to.data, ((image * to[0] + p->u) * to[1] + p->v) * lanes + l, sum, n,
                      dtype);
}

/* Of images [begin, end). */
static void adaptive_pool_make_pixel(const adaptive_pool_work *w, const adaptive_pool_pixel *p,
                                     int64_t begin, int64_t end)
{
    const int64_t lanes = w->lanes;

    for (int64_t image = begin; image < end; image++) {
        if (lanes == 16 && w->dtype == CO_F32) { /* so short that its length has to be known */
            adaptive_pool_values(w, p, image, 16, 0, 16, CO_F32);
            continue;
        }
        for (int64_t l = 0; l < lanes; l += ADAPTIVE_POOL_TOGETHER)
            adaptive_pool_values(
                w, p, image, lanes, l,
                lanes - l < ADAPTIVE_POOL_TOGETHER ? lanes - l : ADAPTIVE_POOL_TOGETHER, w->dtype);
    }
}

void adaptive_pool_make(const adaptive_pool_work *w, int64_t begin, int64_t end)
{
    const int64_t *from = w->from.size, *to = w->to.size;

    for (int64_t e = 0; e < to[0] * to[1]; e++) {
        const int64_t u = e / to[1], v = e % to[1];
        const adaptive_pool_pixel pixel = {u, v, adaptive_pool_find_range(u, from[0], to[0]),
                                           adaptive_pool_find_range(v, from[1], to[1])};

        adaptive_pool_make_pixel(w, &pixel, begin, end);
    }
}

void adaptive_pool_count(float *count, const int64_t *in, const int64_t *out)
{
    for (int64_t u = 0; u < out[0]; u++)
        for (int64_t v = 0; v < out[1]; v++) {
            const adaptive_pool_range rows = adaptive_pool_find_range(u, in[0], out[0]);
            const adaptive_pool_range columns = adaptive_pool_find_range(v, in[1], out[1]);

            count[u * out[1] + v] =
                (float)((rows.end - rows.begin) * (columns.end - columns.begin));
        }
}
