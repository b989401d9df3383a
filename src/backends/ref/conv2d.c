/*
 * conv2d.c - convolution over (H, W), without mirroring the weight (cross-correlation).
 *
 *   y[n][o][u][v]  = b[o] + sum_{c,i,j} x[n][g(o) + c][r(u,i)][q(v,j)] w[o][c][i][j]
 *   r(u,i)         = u stride - padding + i dilation, and q(v,j) the same along the width;
 *                    what lies outside the image is 0
 *   g(o)           = first of the C / groups input channels that the group of o reads
 *
 *   dx[n][c][r][q] = sum over the o of c's group, and over i and j, of dy[n][o][u][v] w[o][c][i][j]
 *                    where u and v solve r = r(u,i) and q = q(v,j)
 *   dw[o][c][i][j] = sum_{n,u,v} dy[n][o][u][v] x[n][g(o) + c][r(u,i)][q(v,j)]
 *   db[o]          = sum_{n,u,v} dy[n][o][u][v]
 */
#include "backends/ref/ref.h"

/* One of the two directions in which the weight slides. */
typedef struct conv2d_axis {
    int64_t in, out, kernel, stride, padding, dilation;
} conv2d_axis;

typedef struct conv2d_size {
    int64_t n, c, o;                /* samples, channels in and out */
    int64_t group_c, group_o;       /* of one group */
    conv2d_axis h, w;               /* along the height and along the width */
    int64_t in_plane, out_plane, k; /* H W, OH OW, kh kw */
} conv2d_size;

static conv2d_size conv2d_sizes(const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;

    return (conv2d_size){
        .n = in[0],
        .c = in[1],
        .o = out[1],
        .group_c = in[1] / a->groups,
        .group_o = out[1] / a->groups,
        .h = {in[2], out[2], a->k[0], a->s[0], a->p[0], a->d[0]},
        .w = {in[3], out[3], a->k[1], a->s[1], a->p[1], a->d[1]},
        .in_plane = in[2] * in[3],
        .out_plane = out[2] * out[3],
        .k = a->k[0] * a->k[1],
    };
}

/* r(u, i): the input position under tap i of the weight at output position u; -1 if outside. */
static inline int64_t conv2d_input_at(const conv2d_axis *axis, int64_t u, int64_t i)
{
    int64_t r = u * axis->stride - axis->padding + i * axis->dilation;

    return r >= 0 && r < axis->in ? r : -1;
}

/* The u with r(u, i) = r; negative if there is none. Dividing by 1 would be most of a gradient's
 * time. */
static inline int64_t conv2d_output_at(const conv2d_axis *axis, int64_t r, int64_t i)
{
    int64_t t = r + axis->padding - i * axis->dilation;

    if (axis->stride > 1 && t >= 0)
        t = t % axis->stride == 0 ? t / axis->stride : -1;
    return t < axis->out ? t : -1;
}

/* The sum of one output element; x (C / groups, H, W) and w (C / groups, kh, kw). */
static double conv2d_sum_y(const conv2d_size *s, const float *x, const float *w, int64_t u,
                           int64_t v)
{
    double sum = 0;

    for (int64_t c = 0; c < s->group_c; c++, x += s->in_plane, w += s->k)
        for (int64_t i = 0; i < s->h.kernel; i++) {
            int64_t r = conv2d_input_at(&s->h, u, i);

            for (int64_t j = 0; r >= 0 && j < s->w.kernel; j++) {
                int64_t q = conv2d_input_at(&s->w, v, j);

                if (q >= 0)
                    sum += (double)x[r * s->w.in + q] * (double)w[i * s->w.kernel + j];
            }
        }
    return sum;
}

static co_status conv2d_forward(co_call *call, const co_run *run)
{
    const conv2d_size s = conv2d_sizes(call);
    const float *b = call->n_param > 1 ? call->param[1].data : NULL;
    float *y = call->out[0]->data; /* (N, out, OH, OW) */

    (void)run;
    for (int64_t n = 0; n < s.n; n++)
        for (int64_t o = 0; o < s.o; o++, y += s.out_plane) {
            const int64_t c = o / s.group_o * s.group_c;
            const float *x = (float *)call->in[0]->data + (n * s.c + c) * s.in_plane;
            const float *w = (float *)call->param[0].data + o * s.group_c * s.k;

            for (int64_t e = 0; e < s.out_plane; e++) {
                double sum = conv2d_sum_y(&s, x, w, e / s.w.out, e % s.w.out);

                y[e] = (float)(sum + (b ? (double)b[o] : 0));
            }
        }
    return CO_OK;
}

/* The sum of one element of dx; dy (group_o, OH, OW) and w (group_o, C / groups, kh, kw), both
   from the first output channel of the group, w at the element's input channel. */
static double conv2d_sum_dx(const conv2d_size *s, const float *dy, const float *w, int64_t r,
                            int64_t q)
{
    double sum = 0;

    for (int64_t o = 0; o < s->group_o; o++, dy += s->out_plane, w += s->group_c * s->k)
        for (int64_t i = 0; i < s->h.kernel; i++) {
            int64_t u = conv2d_output_at(&s->h, r, i);

            for (int64_t j = 0; u >= 0 && j < s->w.kernel; j++) {
                int64_t v = conv2d_output_at(&s->w, q, j);

                if (v >= 0)
                    sum += (double)dy[u * s->w.out + v] * (double)w[i * s->w.kernel + j];
            }
        }
    return sum;
}

static void conv2d_backward_input(const co_call *call, float *dx)
{
    const conv2d_size s = conv2d_sizes(call);

    for (int64_t n = 0; n < s.n; n++)
        for (int64_t c = 0; c < s.c; c++, dx += s.in_plane) {
            const int64_t o = c / s.group_c * s.group_o;
            const float *dy = (float *)call->grad_out[0]->data + (n * s.o + o) * s.out_plane;
            const float *w = (float *)call->param[0].data + (o * s.group_c + c % s.group_c) * s.k;

            for (int64_t e = 0; e < s.in_plane; e++)
                dx[e] = (float)conv2d_sum_dx(&s, dy, w, e / s.w.in, e % s.w.in);
        }
}

/* One sample's part of the sum of one element of dw; dy (OH, OW) and x (H, W). */
static double conv2d_sum_dw(const conv2d_size *s, const float *dy, const float *x, int64_t i,
                            int64_t j)
{
    double sum = 0;

    for (int64_t u = 0; u < s->h.out; u++) {
        int64_t r = conv2d_input_at(&s->h, u, i);

        for (int64_t v = 0; r >= 0 && v < s->w.out; v++) {
            int64_t q = conv2d_input_at(&s->w, v, j);

            if (q >= 0)
                sum += (double)dy[u * s->w.out + v] * (double)x[r * s->w.in + q];
        }
    }
    return sum;
}

static void conv2d_backward_weight(const co_call *call, const co_run *run)
{
    const conv2d_size s = conv2d_sizes(call);
    float *dw = call->grad_param[0].data; /* (out, C / groups, kh, kw) */

    for (int64_t o = 0; o < s.o; o++)
        for (int64_t e = 0; e < s.group_c * s.k; e++, dw++) {
            const int64_t c = o / s.group_o * s.group_c + e / s.k, tap = e % s.k;
            const float *x = (float *)call->in[0]->data + c * s.in_plane;
            const float *dy = (float *)call->grad_out[0]->data + o * s.out_plane;
            double sum = 0;

            for (int64_t n = 0; n < s.n; n++, x += s.c * s.in_plane, dy += s.o * s.out_plane)
                sum += conv2d_sum_dw(&s, dy, x, tap / s.w.kernel, tap % s.w.kernel);
            ref_put(dw, sum, run);
        }
}

static void conv2d_backward_bias(const co_call *call, const co_run *run)
{
    const conv2d_size s = conv2d_sizes(call);
    float *db = call->grad_param[1].data;

    for (int64_t o = 0; o < s.o; o++) {
        const float *dy = (float *)call->grad_out[0]->data + o * s.out_plane;
        double sum = 0;

        for (int64_t n = 0; n < s.n; n++, dy += s.o * s.out_plane)
            for (int64_t e = 0; e < s.out_plane; e++)
                sum += dy[e];
        ref_put(&db[o], sum, run);
    }
}

static co_status conv2d_backward(co_call *call, const co_run *run)
{
    if (call->grad_in[0])
        conv2d_backward_input(call, call->grad_in[0]->data);
    conv2d_backward_weight(call, run);
    if (call->n_param > 1)
        conv2d_backward_bias(call, run);
    return CO_OK;
}

const co_kernel co_ref_conv2d = {
    .op = "conv2d",
    .forward = conv2d_forward,
    .backward = conv2d_backward,
};
