/*
 * maxpool.c - the largest value of each window.
 *
 *   y[u][v]  = max of x over the window at (u, v); padding counts as -infinity
 *
 *   dx[r][q] = sum of the dy of those windows that took their maximum from (r, q)
 *
 * for each plane (H, W). Of equal values the first one wins, and a NaN beats any number, as in
 * PyTorch. Training keeps the place of each maximum from forward to backward.
 */
#include <math.h>
#include <string.h>

#include "backends/ref/ref.h"

/* In a (H, W) plane x: the place of the maximum of the window of output (u, v). */
static int64_t maxpool_find(const co_call *call, const float *x, int64_t u, int64_t v)
{
    const co_pool_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim;
    const int64_t top = u * a->s[0] - a->p[0], left = v * a->s[1] - a->p[1];
    int64_t best = -1;

    for (int64_t r = top > 0 ? top : 0; r < top + a->k[0] && r < in[2]; r++)
        for (int64_t q = left > 0 ? left : 0; q < left + a->k[1] && q < in[3]; q++) {
            int64_t at = r * in[3] + q;

            if (best < 0 || x[at] > x[best] || isnan(x[at]))
                best = at;
        }
    return best;
}

static co_status maxpool_plan(co_call *call)
{
    if (call->training)
        call->workspace_bytes = (size_t)co_shape_count(&call->out[0]->shape) * sizeof(int64_t);
    return CO_OK;
}

static co_status maxpool_forward(co_call *call, const co_run *run)
{
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;
    const int64_t in_plane = in[2] * in[3], out_plane = out[2] * out[3];
    int64_t *place = call->workspace; /* (N, C, OH, OW); NULL in evaluation */
    float *y = call->out[0]->data;

    (void)run;
    for (int64_t p = 0; p < in[0] * in[1]; p++) {
        const float *x = (float *)call->in[0]->data + p * in_plane;

        for (int64_t e = 0; e < out_plane; e++) {
            int64_t at = maxpool_find(call, x, e / out[3], e % out[3]);

            y[p * out_plane + e] = x[at];
            if (place)
                place[p * out_plane + e] = at;
        }
    }
    return CO_OK;
}

static co_status maxpool_backward(co_call *call, const co_run *run)
{
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;
    const int64_t in_plane = in[2] * in[3], out_plane = out[2] * out[3];
    const int64_t *place = call->workspace;
    const float *dy = call->grad_out[0]->data;
    float *dx = ref_data(call->grad_in[0]);

    (void)run;
    if (!dx)
        return CO_OK;
    memset(dx, 0, call->grad_in[0]->bytes);
    for (int64_t p = 0; p < in[0] * in[1]; p++, dx += in_plane, dy += out_plane, place += out_plane)
        for (int64_t e = 0; e < out_plane; e++)
            dx[place[e]] += dy[e];
    return CO_OK;
}

const co_kernel co_ref_maxpool = {
    .op = "maxpool",
    .plan = maxpool_plan,
    .forward = maxpool_forward,
    .backward = maxpool_backward,
};
