/*
 * linear.c - fully connected layer.
 *
 *   y[n][o]  = b[o] + sum_f x[n][f] w[o][f]
 *
 *   dx[n][f] = sum_o dy[n][o] w[o][f]
 *   dw[o][f] = sum_n dy[n][o] x[n][f]
 *   db[o]    = sum_n dy[n][o]
 *
 * Here and in every file beside it, d<t> is the gradient of the loss with respect to <t>.
 */
#include "backends/ref/ref.h"

/* Sizes of a call: `n` rows, which are samples or positions of samples, `in` features to `out`
 * features. */
typedef struct linear_size {
    int64_t n, in, out;
} linear_size;

static linear_size linear_sizes(const co_call *call)
{
    const co_shape *weight = &call->param[0].shape;

    return (linear_size){co_shape_count(&call->in[0]->shape) / weight->dim[1], weight->dim[1],
                         weight->dim[0]};
}

/* sum_i a[i * a_step] b[i * b_step] */
static double linear_dot(const float *a, int64_t a_step, const float *b, int64_t b_step, int64_t n)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += (double)a[i * a_step] * (double)b[i * b_step];
    return sum;
}

static co_status linear_forward(co_call *call, const co_run *run)
{
    const linear_size s = linear_sizes(call);
    const float *x = call->in[0]->data;   /* (N, F) */
    const float *w = call->param[0].data; /* (out, F) */
    const float *b = call->n_param > 1 ? call->param[1].data : NULL;
    float *y = call->out[0]->data; /* (N, out) */

    (void)run;
    for (int64_t n = 0; n < s.n; n++)
        for (int64_t o = 0; o < s.out; o++) {
            double sum = linear_dot(x + n * s.in, 1, w + o * s.in, 1, s.in);

            y[n * s.out + o] = (float)(sum + (b ? (double)b[o] : 0));
        }
    return CO_OK;
}

static void linear_backward_input(const co_call *call, float *dx)
{
    const linear_size s = linear_sizes(call);
    const float *w = call->param[0].data;
    const float *dy = call->grad_out[0]->data;

    for (int64_t n = 0; n < s.n; n++)
        for (int64_t f = 0; f < s.in; f++)
            dx[n * s.in + f] = (float)linear_dot(dy + n * s.out, 1, w + f, s.in, s.out);
}

static co_status linear_backward(co_call *call, const co_run *run)
{
    const linear_size s = linear_sizes(call);
    const float one = 1;
    const float *x = call->in[0]->data;
    const float *dy = call->grad_out[0]->data;
    float *dw = call->grad_param[0].data;
    float *db = call->n_param > 1 ? call->grad_param[1].data : NULL;

    if (call->grad_in[0])
        linear_backward_input(call, call->grad_in[0]->data);
    for (int64_t o = 0; o < s.out; o++) {
        for (int64_t f = 0; f < s.in; f++)
            ref_put(&dw[o * s.in + f], linear_dot(dy + o, s.out, x + f, s.in, s.n), run);
        if (db)
            ref_put(&db[o], linear_dot(dy + o, s.out, &one, 0, s.n), run);
    }
    return CO_OK;
}

const co_kernel co_ref_linear = {
    .op = "linear",
    .forward = linear_forward,
    .backward = linear_backward,
};
