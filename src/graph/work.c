/*
 * work.c - operations and bytes of a step, from its tensors and the definition of its op.
 *
 * It is the minimum for any kernel: data that a kernel reads twice, or stores in between, is not
 * counted, so that such a kernel shows as slower. Independent of kernels.
 */
#include "graph/work.h"

static double work_bytes(co_tensor *const *tensor, int n)
{
    double bytes = 0;

    for (int i = 0; i < n; i++)
        if (tensor[i])
            bytes += (double)tensor[i]->bytes;
    return bytes;
}

static double work_param_bytes(const co_tensor *param, int n)
{
    double bytes = 0;

    for (int i = 0; i < n; i++)
        if (param[i].data)
            bytes += (double)param[i].bytes;
    return bytes;
}

static void work_forward(co_work *out, const co_call *call, const co_op_work *work)
{
    out->flops = work->forward;
    out->bytes = work_bytes(call->in, call->n_in) + work_bytes(call->out, call->n_out) +
                 work_param_bytes(call->param, call->n_param) + (double)call->workspace_bytes;
}

/* Gradients in and out, and of the forward tensors only those that the op says it reads. */
static void work_backward(co_work *out, const co_call *call, const co_op_work *work)
{
    const double grad_param = work_param_bytes(call->grad_param, call->n_param);
    const double grad_in = work_bytes(call->grad_in, call->n_in);

    out->flops =
        (grad_in > 0 ? work->backward_in : 0) + (grad_param > 0 ? work->backward_param : 0);
    out->bytes = work_bytes(call->grad_out, call->op->is_loss ? 0 : call->n_out) + grad_in +
                 grad_param + (double)call->workspace_bytes;
    if (grad_in > 0)
        out->bytes += work_param_bytes(call->param, call->n_param);
    if (call->op->saves & CO_SAVES_IN)
        out->bytes += work_bytes(call->in, call->op->n_in);
    out->bytes += work_bytes(&call->grad_out_extra, 1);
    if (call->op->saves & CO_SAVES_OUT)
        out->bytes += work_bytes(call->out, call->n_out);
}

void co_work_of(co_work *out, const co_plan_step *step)
{
    const co_call *call = step->call;
    const double each = (double)co_shape_count(&call->unfused_shape);
    co_op_work work = {each, each, 0};
    co_shape in[CO_OP_MAX_IN];

    for (int i = 0; i < call->n_in; i++)
        in[i] = call->in[i]->shape;
    if (call->op->work)
        call->op->work(&work, in, &call->unfused_shape, call->attr);
    out->factors = call->in[0]->dtype;
    if (step->gradient)
        work_backward(out, call, &work);
    else
        work_forward(out, call, &work);
}
