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

#include <string.h>

/* Sums that grow side by side, of a row or of output channels: one alone would wait for each of
   its additions. */
enum { CONV2D_COLUMNS = 64, CONV2D_OUTPUTS = 8 };

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

/* r(u, i): the input position under tap i of the weight at output position u; may lie outside. */
static inline int64_t conv2d_input_at(const conv2d_axis *axis, int64_t u, int64_t i)
{
    return u * axis->stride - axis->padding + i * axis->dilation;
}

/* a / b rounded up, b > 0; dividing by 1 would be most of a convolution's time. */
static inline int64_t conv2d_divide_up(int64_t a, int64_t b)
{
    if (b == 1)
        return a;
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}

/* Positions from first to before end. */
typedef struct conv2d_span {
    int64_t first, end;
} conv2d_span;

/* The u of `out` whose r(u, i) lies in `in`. */
static inline conv2d_span conv2d_meet(const conv2d_axis *axis, int64_t i, conv2d_span out,
                                      conv2d_span in)
{
    const int64_t shift = axis->padding - i * axis->dilation;
    const conv2d_span u = {conv2d_divide_up(in.first + shift, axis->stride),
                           conv2d_divide_up(in.end + shift, axis->stride)};

    return (conv2d_span){u.first > out.first ? u.first : out.first,
                         u.end < out.end ? u.end : out.end};
}

/* At most CONV2D_COLUMNS positions from `first` on, of `n`. */
static inline conv2d_span conv2d_columns(int64_t first, int64_t n)
{
    return (conv2d_span){first, n - first < CONV2D_COLUMNS ? n : first + CONV2D_COLUMNS};
}

/* The sums of columns `at` of output row u; x (C / groups, H, W) and w (C / groups, kh, kw). */
static void conv2d_sum_y(const conv2d_size *s, const float *x, const float *w, int64_t u,
                         conv2d_span at, double *sum)
{
    for (int64_t c = 0; c < s->group_c; c++, x += s->in_plane, w += s->k)
        for (int64_t i = 0; i < s->h.kernel; i++) {
            const int64_t r = conv2d_input_at(&s->h, u, i);

            for (int64_t j = 0; r >= 0 && r < s->h.in && j < s->w.kernel; j++) {
                const conv2d_span v = conv2d_meet(&s->w, j, at, (conv2d_span){0, s->w.in});
                const int64_t zero = r * s->w.in + conv2d_input_at(&s->w, 0, j);
                const double tap = (double)w[i * s->w.kernel + j];

                for (int64_t e = v.first; e < v.end; e++)
                    sum[e - at.first] += (double)x[zero + e * s->w.stride] * tap;
            }
        }
}

static co_status conv2d_forward(co_call *call, const co_run *run)
{
    const conv2d_size s = conv2d_sizes(call);
    const float *b = call->n_param > 1 ? call->param[1].data : NULL;
    float *y = call->out[0]->data; /* (N, out, OH, OW) */

    (void)run;
    for (int64_t row = 0; row < s.n * s.o * s.h.out; row++, y += s.w.out) {
        const int64_t n = row / s.h.out / s.o, o = row / s.h.out % s.o, u = row % s.h.out;
        const float *x =
            (float *)call->in[0]->data + (n * s.c + o / s.group_o * s.group_c) * s.in_plane;
        const float *w = (float *)call->param[0].data + o * s.group_c * s.k;

        for (conv2d_span at = {0}; at.end < s.w.out;) {
            double sum[CONV2D_COLUMNS] = {0};

            at = conv2d_columns(at.end, s.w.out);
            conv2d_sum_y(&s, x, w, u, at, sum);
            for (int64_t v = at.first; v < at.end; v++)
                y[v] = (float)(sum[v - at.first] + (b ? (double)b[o] : 0));
        }
    }
    return CO_OK;
}

/* The sums of columns `at` of row r of dx; dy (group_o, OH, OW) and w (group_o, C / groups, kh,
   kw), both from the first output channel of the group, w at the row's input channel. */
static void conv2d_sum_dx(const conv2d_size *s, const float *dy, const float *w, int64_t r,
                          conv2d_span at, double *sum)
{
    const conv2d_span all_u = {0, s->h.out}, all_v = {0, s->w.out};

    for (int64_t o = 0; o < s->group_o; o++, dy += s->out_plane, w += s->group_c * s->k)
        for (int64_t i = 0; i < s->h.kernel; i++) {
            const conv2d_span u = conv2d_meet(&s->h, i, all_u, (conv2d_span){r, r + 1});

            for (int64_t j = 0; u.first < u.end && j < s->w.kernel; j++) {
                const conv2d_span v = conv2d_meet(&s->w, j, all_v, at);
                const float *row = dy + u.first * s->w.out;
                const double tap = (double)w[i * s->w.kernel + j];
                const int64_t zero = conv2d_input_at(&s->w, 0, j) - at.first;

                for (int64_t e = v.first; e < v.end; e++)
                    sum[zero + e * s->w.stride] += (double)row[e] * tap;
            }
        }
}

static void conv2d_backward_input(const co_call *call, float *dx)
{
    const conv2d_size s = conv2d_sizes(call);

    for (int64_t row = 0; row < s.n * s.c * s.h.in; row++, dx += s.w.in) {
        const int64_t n = row / s.h.in / s.c, c = row / s.h.in % s.c, r = row % s.h.in;
        const int64_t o = c / s.group_c * s.group_o;
        const float *dy = (float *)call->grad_out[0]->data + (n * s.o + o) * s.out_plane;
        const float *w = (float *)call->param[0].data + (o * s.group_c + c % s.group_c) * s.k;

        for (conv2d_span at = {0}; at.end < s.w.in;) {
            double sum[CONV2D_COLUMNS] = {0};

            at = conv2d_columns(at.end, s.w.in);
            conv2d_sum_dx(&s, dy, w, r, at, sum);
            for (int64_t q = at.first; q < at.end; q++)
                dx[q] = (float)sum[q - at.first];
        }
    }
}

/* One sample's part of the sums of dw at tap (i, j) of `outputs` output channels and one of input;
   dy (outputs, OH, OW) and x (H, W). */
static void conv2d_sum_dw(const conv2d_size *s, const float *dy, const float *x, int64_t i,
                          int64_t j, int64_t outputs, double *sum)
{
    const conv2d_span u =
        conv2d_meet(&s->h, i, (conv2d_span){0, s->h.out}, (conv2d_span){0, s->h.in});
    const conv2d_span v =
        conv2d_meet(&s->w, j, (conv2d_span){0, s->w.out}, (conv2d_span){0, s->w.in});

    for (int64_t a = u.first; a < u.end; a++)
        for (int64_t e = v.first; e < v.end; e++) {
            const int64_t r = conv2d_input_at(&s->h, a, i), q = conv2d_input_at(&s->w, e, j);
            const double under = (double)x[r * s->w.in + q];

            for (int64_t o = 0; o < outputs; o++)
                sum[o] += (double)dy[o * s->out_plane + a * s->w.out + e] * under;
        }
}

/* dw of `outputs` output channels of one group, the first of them o. */
static void conv2d_outputs_dw(const co_call *call, const conv2d_size *s, int64_t o, int64_t outputs,
                              const co_run *run)
{
    const int64_t taps = s->group_c * s->k;                   /* of one output channel */
    float *dw = (float *)call->grad_param[0].data + o * taps; /* (outputs, C / groups, kh, kw) */

    for (int64_t e = 0; e < taps; e++) {
        const int64_t c = o / s->group_o * s->group_c + e / s->k, tap = e % s->k;
        const float *x = (float *)call->in[0]->data + c * s->in_plane;
        const float *dy = (float *)call->grad_out[0]->data + o * s->out_plane;
        double sum[CONV2D_OUTPUTS] = {0};

        for (int64_t n = 0; n < s->n; n++, x += s->c * s->in_plane, dy += s->o * s->out_plane)
            conv2d_sum_dw(s, dy, x, tap / s->w.kernel, tap % s->w.kernel, outputs, sum);
        for (int64_t a = 0; a < outputs; a++)
            ref_put(&dw[a * taps + e], sum[a], run);
    }
}

static void conv2d_backward_weight(const co_call *call, const co_run *run)
{
    const conv2d_size s = conv2d_sizes(call);

    for (int64_t o = 0, outputs; o < s.o; o += outputs) {
        const int64_t left = s.group_o - o % s.group_o; /* in its group */

        outputs = left < CONV2D_OUTPUTS ? left : CONV2D_OUTPUTS;
        conv2d_outputs_dw(call, &s, o, outputs, run);
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
