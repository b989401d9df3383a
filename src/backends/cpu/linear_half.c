/*
 * linear_half.c - linear layers in bf16 by the loops of kernels/direct_conv: a 1x1 convolution of
 * one image, whose pixels are the rows. Rows are that image with its channels last, which is
 * brought into blocks of channels; results come back the same way.
 */
#include "backends/cpu/direct_conv.h"

/* With fewer rows packing the weight takes longer than the products save. */
#define LINEAR_HALF_ROWS     32
#define LINEAR_HALF_CHANNELS 16
#define LINEAR_HALF_OUTPUTS  32

/* The self of the kernel. */
typedef struct linear_half {
    direct conv;
    co_conv2d_attr attr;
    co_call view; /* the layer as a convolution */
    co_tensor in, out, grad_in, grad_out;
    size_t out_at, grad_in_at; /* in scratch */
} linear_half;

/* Rows (..., channels) as (1, channels, 1, rows), in the same memory. */
static void linear_half_view(co_tensor *out, const co_tensor *rows)
{
    const int64_t channels = rows->shape.dim[rows->shape.ndim - 1];

    *out = *rows;
    out->shape = (co_shape){4, {1, channels, 1, co_shape_count(&rows->shape) / channels}};
    out->layout = (co_layout){.format = CO_FORMAT_CHANNELS_LAST};
}

static co_status linear_half_plan(co_call *call)
{
    linear_half *self = call->self;
    size_t used;

    self->attr = (co_conv2d_attr){.out = call->param[0].shape.dim[0],
                                  .k = {1, 1},
                                  .s = {1, 1},
                                  .d = {1, 1},
                                  .groups = 1,
                                  .bias = call->n_param > 1};
    linear_half_view(&self->in, call->in[0]);
    linear_half_view(&self->out, call->out[0]);
    self->view = *call;
    self->view.attr = &self->attr;
    self->view.self = &self->conv;
    self->view.in[0] = &self->in;
    self->view.out[0] = &self->out;
    CO_TRY(direct_plan_with(&self->view, direct_find_loops(CO_BF16)));
    call->workspace_bytes = self->view.workspace_bytes;
    used = self->view.scratch_bytes;
    self->out_at = cpu_take_scratch(call, &used, self->out.bytes);
    return CO_OK;
}

static co_status linear_half_plan_backward(co_call *call)
{
    linear_half *self = call->self;
    size_t used;

    linear_half_view(&self->grad_out, call->grad_out[0]);
    self->view.grad_out[0] = &self->grad_out;
    if (call->grad_in[0]) {
        linear_half_view(&self->grad_in, call->grad_in[0]);
        self->view.grad_in[0] = &self->grad_in;
    }
    CO_TRY(direct_plan_backward(&self->view));
    used = self->view.scratch_bytes;
    self->grad_in_at = cpu_take_scratch(call, &used, self->grad_in.bytes);
    return CO_OK;
}

/* Results in blocks, to rows. */
static void linear_half_put(const co_tensor *rows, const co_tensor *image, int threads)
{
    cpu_reorder(rows->data, (co_layout){.format = CO_FORMAT_CHANNELS_LAST}, image, threads);
}

static co_status linear_half_forward(co_call *call, const co_run *run)
{
    linear_half *self = call->self;

    self->view.scratch = call->scratch;
    self->view.workspace = call->workspace;
    self->in.data = call->in[0]->data;
    self->out.data = (char *)call->scratch + self->out_at;
    CO_TRY(direct_forward(&self->view, run));
    linear_half_put(call->out[0], &self->out, cpu_threads(call));
    return CO_OK;
}

static co_status linear_half_backward(co_call *call, const co_run *run)
{
    linear_half *self = call->self;

    self->view.scratch = call->scratch;
    self->view.workspace = call->workspace;
    self->in.data = call->in[0]->data;
    self->grad_out.data = call->grad_out[0]->data;
    self->grad_in.data = (char *)call->scratch + self->grad_in_at;
    CO_TRY(direct_backward(&self->view, run));
    if (call->grad_in[0])
        linear_half_put(call->grad_in[0], &self->grad_in, cpu_threads(call));
    return CO_OK;
}

static void linear_half_fini(co_call *call)
{
    linear_half *self = call->self;

    direct_fini(&self->view);
}

static bool linear_half_supports(const co_call *call, const char **why)
{
    const int64_t *weight = call->param[0].shape.dim;
    const int64_t rows = co_shape_count(&call->in[0]->shape) / weight[1];

    *why = "its tensors are not bf16";
    if (call->in[0]->dtype != CO_BF16 || call->out[0]->dtype != CO_BF16)
        return false;
    *why = "its rows are few or short";
    if (rows < LINEAR_HALF_ROWS || weight[1] < LINEAR_HALF_CHANNELS ||
        weight[0] < LINEAR_HALF_OUTPUTS)
        return false;
    return cpu_takes(call, why);
}

const co_kernel co_cpu_linear_half = {
    .op = "linear",
    .name = "bf16",
    .self_size = sizeof(linear_half),
    .half = CPU_HALF,
    .supports = linear_half_supports,
    .plan = linear_half_plan,
    .plan_backward = linear_half_plan_backward,
    .forward = linear_half_forward,
    .backward = linear_half_backward,
    .fini = linear_half_fini,
};
