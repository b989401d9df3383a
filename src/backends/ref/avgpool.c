/*
 * avgpool.c - the mean of each window: avgpool and adaptive_avgpool.
 *
 *   y[u][v]  = (sum of x over the window at (u, v)) / d(u, v)
 *
 *   dx[r][q] = sum over the windows that hold (r, q) of dy[u][v] / d(u, v)
 *
 * for each plane (H, W). The two ops differ in their windows alone:
 *
 *   avgpool           rows u stride - padding ... + kernel; d is the kernel's size, or with
 *                     count_include_pad false the part of it inside the image
 *   adaptive_avgpool  rows floor(u H / OH) ... ceil((u + 1) H / OH); d is the window's size
 *
 * and so along the width.
 */
#include <string.h>

#include "backends/ref/ref.h"

/* Rows [top, bottom) and columns [left, right) inside the image. */
typedef struct avgpool_window {
    int64_t top, bottom, left, right;
    double divisor;
} avgpool_window;

typedef avgpool_window (*avgpool_window_fn)(const co_call *call, int64_t u, int64_t v);

static double avgpool_area(const avgpool_window *w)
{
    return (double)((w->bottom - w->top) * (w->right - w->left));
}

static avgpool_window avgpool_fixed(const co_call *call, int64_t u, int64_t v)
{
    const co_pool_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim;
    const int64_t top = u * a->s[0] - a->p[0], left = v * a->s[1] - a->p[1];
    avgpool_window w = {top, top + a->k[0], left, left + a->k[1], 0};

    w.divisor = avgpool_area(&w);
    w.top = w.top > 0 ? w.top : 0;
    w.left = w.left > 0 ? w.left : 0;
    w.bottom = w.bottom < in[2] ? w.bottom : in[2];
    w.right = w.right < in[3] ? w.right : in[3];
    if (!a->count_include_pad)
        w.divisor = avgpool_area(&w);
    return w;
}

static avgpool_window avgpool_adaptive(const co_call *call, int64_t u, int64_t v)
{
    const co_adaptive_pool_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *out = a->o;
    avgpool_window w = {
        .top = u * in[2] / out[0],
        .bottom = ((u + 1) * in[2] + out[0] - 1) / out[0],
        .left = v * in[3] / out[1],
        .right = ((v + 1) * in[3] + out[1] - 1) / out[1],
    };

    w.divisor = avgpool_area(&w);
    return w;
}

static void avgpool_run_forward(co_call *call, avgpool_window_fn window)
{
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;

    for (int64_t p = 0; p < in[0] * in[1]; p++, x += in[2] * in[3])
        for (int64_t e = 0; e < out[2] * out[3]; e++) {
            const avgpool_window w = window(call, e / out[3], e % out[3]);
            double sum = 0;

            for (int64_t r = w.top; r < w.bottom; r++)
                for (int64_t q = w.left; q < w.right; q++)
                    sum += x[r * in[3] + q];
            *y++ = (float)(sum / w.divisor);
        }
}

static void avgpool_run_backward(co_call *call, avgpool_window_fn window)
{
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;
    const float *dy = call->grad_out[0]->data;
    float *dx = ref_data(call->grad_in[0]);

    if (!dx)
        return;
    memset(dx, 0, call->grad_in[0]->bytes);
    for (int64_t p = 0; p < in[0] * in[1]; p++, dx += in[2] * in[3])
        for (int64_t e = 0; e < out[2] * out[3]; e++) {
            const avgpool_window w = window(call, e / out[3], e % out[3]);
            const float share = (float)(*dy++ / w.divisor);

            for (int64_t r = w.top; r < w.bottom; r++)
                for (int64_t q = w.left; q < w.right; q++)
                    dx[r * in[3] + q] += share;
        }
}

static co_status avgpool_forward(co_call *call, const co_run *run)
{
    (void)run;
    avgpool_run_forward(call, avgpool_fixed);
    return CO_OK;
}

static co_status avgpool_backward(co_call *call, const co_run *run)
{
    (void)run;
    avgpool_run_backward(call, avgpool_fixed);
    return CO_OK;
}

static co_status avgpool_adaptive_forward(co_call *call, const co_run *run)
{
    (void)run;
    avgpool_run_forward(call, avgpool_adaptive);
    return CO_OK;
}

static co_status avgpool_adaptive_backward(co_call *call, const co_run *run)
{
    (void)run;
    avgpool_run_backward(call, avgpool_adaptive);
    return CO_OK;
}

const co_kernel co_ref_avgpool = {
    .op = "avgpool",
    .forward = avgpool_forward,
    .backward = avgpool_backward,
};

const co_kernel co_ref_adaptive_avgpool = {
    .op = "adaptive_avgpool",
    .forward = avgpool_adaptive_forward,
    .backward = avgpool_adaptive_backward,
};
