/*
 * adaptive_pool.h - means over windows of unequal size, and their gradients, of images in any
 * layout in which the values of a pixel are together: its loops.
 *
 *   y[u]  = (sum of x[r] over rows floor(u H / OH) ... ceil((u + 1) H / OH)) / their number
 *   dx[r] = sum of dy[u] / its number, over u = floor(r OH / H) ... ceil((r + 1) OH / H)
 *
 * and so along the width: the windows that hold a pixel are found as the pixels of a window are.
 * Values of one pixel are added up together, in fp32, window row by window row.
 */
#ifndef CO_KERNELS_ADAPTIVE_POOL_H
#define CO_KERNELS_ADAPTIVE_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include <cohort/types.h>

/* Numbers to add up, (images, size[0], size[1], lanes), and where their sums go. */
typedef struct adaptive_pool_side {
    void *data;
    const int64_t *size; /* (H, W) */
} adaptive_pool_side;

typedef struct adaptive_pool_work {
    adaptive_pool_side from, to;
    int64_t lanes; /* values of a pixel */
    co_dtype dtype;
    const float *count; /* of each window, its pixels */
    bool backward;
} adaptive_pool_work;

/* How many pixels each window has, (out[0], out[1]). */
void adaptive_pool_count(float *count, const int64_t *in, const int64_t *out);
/* Images [begin, end), pixel by pixel. */
void adaptive_pool_make(const adaptive_pool_work *work, int64_t begin, int64_t end);

#endif
