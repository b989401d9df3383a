/*
 * loss.c - losses with the loops of kernels/softmax and kernels/loss. The equations are those of
 * the reference kernels.
 */
#include "kernels/loss/loss.h"
#include <math.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "core/parallel.h"
#include "kernels/softmax/softmax.h"

#define LOSS_PIECE (1 << 14) /* elements of a gradient that a thread takes at once */

/* Logits or log-probabilities of `classes` for each label: `rows` of them, of each sample as many
   as it has positions. */
typedef struct loss_size {
    int64_t rows, classes, positions;
} loss_size;

static loss_size loss_find_size(const co_call *call)
{
    const co_shape *x = &call->in[0]->shape;
    const int64_t classes = x->dim[x->ndim - 1], rows = co_shape_count(x) / classes;

    return (loss_size){rows, classes, rows / x->dim[0]};
}

/* --- nll_loss --- */

static co_status nll_forward(co_call *call, const co_run *run)
{
    const loss_size size = loss_find_size(call);
    const float *x = call->in[0]->data;
    const int32_t *label = call->in[1]->data;
    float *loss = call->out[0]->data;

    (void)run;
    for (int64_t i = 0; i < size.rows; i++)
        loss[i] = -x[i * size.classes + label[i]];
    return CO_OK;
}

static co_status nll_backward(co_call *call, const co_run *run)
{
    const loss_size size = loss_find_size(call);
    const int threads = cpu_threads(call);
    const int32_t *label = call->in[1]->data;
    const float g = co_run_grad_scale(run);
    float *dx;

    if (!call->grad_in[0])
        return CO_OK;
    dx = call->grad_in[0]->data;
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < size.rows; i++) {
        memset(dx + i * size.classes, 0, (size_t)size.classes * sizeof(float));
        dx[i * size.classes + label[i]] = -g;
    }
    return CO_OK;
}

const co_kernel co_cpu_nll_loss = {
    .op = "nll_loss",
    .name = "rows",
    .supports = cpu_takes_floats,
    .forward = nll_forward,
    .backward = nll_backward,
};

/* --- cross_entropy --- */

/* In the workspace, of each row. */
typedef struct entropy_row {
    softmax_norm norm;
    float loss;
} entropy_row;

static double entropy_smoothing(const co_call *call)
{
    return ((const co_cross_entropy_attr *)call->attr)->label_smoothing;
}

static co_status entropy_plan(co_call *call)
{
    call->workspace_bytes = (size_t)loss_find_size(call).rows * sizeof(entropy_row);
    return CO_OK;
}

/* sum_c q[c] (log sum exp(x) - x[c]), with differences to the maximum; 0 for a label of -1, whose
   row is left out. */
static entropy_row entropy_find_row(const softmax_loops *loops, const float *x, int32_t label,
                                    int64_t classes, double smoothing)
{
    softmax_norm norm;
    double loss;

    if (label < 0)
        return (entropy_row){0};
    norm = loops->norm(x, classes);
    loss = log((double)norm.sum) + (1 - smoothing) * ((double)norm.max - (double)x[label]);
    if (smoothing > 0)
        loss += smoothing / (double)classes * loops->below(x, norm.max, classes);
    return (entropy_row){norm, (float)loss};
}

static co_status entropy_forward(co_call *call, const co_run *run)
{
    const loss_size size = loss_find_size(call);
    const softmax_loops *loops = softmax_choose();
    const int threads = cpu_threads(call);
    const float *x = call->in[0]->data;
    const int32_t *label = call->in[1]->data;
    const double smoothing = entropy_smoothing(call);
    entropy_row *row = call->workspace;
    float *loss = call->out[0]->data;

    (void)run;
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < size.rows; i++)
        row[i] = entropy_find_row(loops, x + i * size.classes, label[i], size.classes, smoothing);
    for (int64_t n = 0; n < call->in[0]->shape.dim[0]; n++) {
        double sum = 0;

        for (int64_t i = 0; i < size.positions; i++)
            sum += (double)row[n * size.positions + i].loss;
        loss[n] = (float)(sum / (double)size.positions);
    }
    return CO_OK;
}

static co_status entropy_backward(co_call *call, const co_run *run)
{
    const loss_size size = loss_find_size(call);
    const softmax_loops *loops = softmax_choose();
    const int threads = cpu_threads(call);
    const float *x = call->in[0]->data, g = co_run_grad_scale(run) / (float)size.positions;
    const int32_t *label = call->in[1]->data;
    const float smoothing = (float)entropy_smoothing(call);
    const float even = g * smoothing / (float)size.classes;
    const entropy_row *row = call->workspace;
    float *dx;

    if (!call->grad_in[0])
        return CO_OK;
    dx = call->grad_in[0]->data;
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < size.rows; i++) {
        const softmax_norm norm = row[i].norm;
        const int64_t at = i * size.classes;

        if (label[i] < 0) {
            memset(dx + at, 0, (size_t)size.classes * sizeof(float));
            continue;
        }
        loops->entropy_gradient(dx + at, x + at, norm.max, g / norm.sum, even, size.classes);
        dx[at + label[i]] -= g * (1 - smoothing);
    }
    return CO_OK;
}

const co_kernel co_cpu_cross_entropy = {
    .op = "cross_entropy",
    .name = "rows",
    .supports = cpu_takes_floats,
    .plan = entropy_plan,
    .forward = entropy_forward,
    .backward = entropy_backward,
};

/* --- means over the elements of a sample --- */

static co_status values_forward(co_call *call, loss_sum_fn sum)
{
    const int64_t samples = call->in[0]->shape.dim[0];
    const int64_t width = co_shape_count(&call->in[0]->shape) / samples;
    const int threads = cpu_threads(call);
    const float *x = call->in[0]->data, *t = call->in[1]->data;
    float *loss = call->out[0]->data;

    CO_PARALLEL_FOR(threads)
    for (int64_t n = 0; n < samples; n++)
        loss[n] = (float)(sum(x + n * width, t + n * width, width) / (double)width);
    return CO_OK;
}

static co_status values_backward(co_call *call, const co_run *run, loss_gradient_fn gradient)
{
    const int64_t count = co_shape_count(&call->in[0]->shape);
    const int64_t width = count / call->in[0]->shape.dim[0];
    const double scale = (double)co_run_grad_scale(run) / (double)width;
    const int threads = cpu_threads(call);
    const float *x = call->in[0]->data, *t = call->in[1]->data;
    float *dx;

    if (!call->grad_in[0])
        return CO_OK;
    dx = call->grad_in[0]->data;
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < count; i += LOSS_PIECE)
        gradient(dx + i, x + i, t + i, scale, count - i < LOSS_PIECE ? count - i : LOSS_PIECE);
    return CO_OK;
}

static const loss_loops *values_loops(void)
{
    return KERNELS_CHOOSE(loss_loops, &loss_loops_basic);
}

/* The kernel co_cpu_NAME, whose terms are `term`. */
#define VALUES_KERNEL(loss_name, term)                                                             \
    static co_status loss_name##_forward(co_call *call, const co_run *run)                         \
    {                                                                                              \
        (void)run;                                                                                 \
        return values_forward(call, values_loops()->term.sum);                                     \
    }                                                                                              \
                                                                                                   \
    static co_status loss_name##_backward(co_call *call, const co_run *run)                        \
    {                                                                                              \
        return values_backward(call, run, values_loops()->term.gradient);                          \
    }                                                                                              \
                                                                                                   \
    const co_kernel co_cpu_##loss_name = {                                                         \
        .op = #loss_name,                                                                          \
        .name = "rows",                                                                            \
        .supports = cpu_takes_floats,                                                              \
        .forward = loss_name##_forward,                                                            \
        .backward = loss_name##_backward,                                                          \
    };

VALUES_KERNEL(mse_loss, squared)
VALUES_KERNEL(l1_loss, absolute)
VALUES_KERNEL(bce_with_logits_loss, binary)
