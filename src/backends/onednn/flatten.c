/*
 * flatten.c - each sample as one row; and unpack, which gives another backend any tensor in the
 * plain layout. Rows are plain, so both are a change of format.
 */
#include "backends/onednn/onednn.h"

static co_status flatten_plan(co_call *call)
{
    onednn_self *self = call->self;
    const co_shape *shape = &call->in[0]->shape;
    const onednn_operand x = onednn_tensor(self, call->in[0]);
    onednn_operand y = onednn_tensor(self, call->out[0]);

    if (call->in[0]->layout.format == CO_FORMAT_PLAIN)
        return CO_OK;
    CO_TRY(onednn_begin(call));
    y.md = onednn_plain(self, call->out[0]->dtype, shape->ndim, shape->dim);
    return onednn_add_reorder(self, &self->forward, ONEDNN_ALWAYS, &x, &y, false);
}

/* The gradient gets the layout of the input, in which the layers before compute. */
static co_status flatten_plan_backward(co_call *call)
{
    onednn_self *self = call->self;
    const co_tensor *y = call->out[0];
    const co_shape *shape = &call->in[0]->shape;
    const_dnnl_memory_desc_t rows = onednn_plain(self, y->dtype, y->shape.ndim, y->shape.dim);
    onednn_operand dy = onednn_tensor(self, call->grad_out[0]), dx;

    if (!call->grad_in[0] || (call->in[0]->layout.format == CO_FORMAT_PLAIN &&
                              call->grad_out[0]->layout.format == CO_FORMAT_PLAIN))
        return CO_OK;
    if (!self->call)
        CO_TRY(onednn_begin(call));
    CO_TRY(onednn_convert(&dy, self, &self->backward, rows));
    onednn_like(call->grad_in[0], call->in[0]);
    dx = onednn_tensor(self, call->grad_in[0]);
    dy.md = onednn_plain(self, y->dtype, shape->ndim, shape->dim);
    return onednn_add_reorder(self, &self->backward, ONEDNN_ALWAYS, &dy, &dx, false);
}

static co_status flatten_forward(co_call *call, const co_run *run)
{
    const onednn_self *self = call->self;

    return self->forward.n ? onednn_forward(call, run) : co_copy_forward(call, run);
}

static co_status flatten_backward(co_call *call, const co_run *run)
{
    const onednn_self *self = call->self;

    return self->backward.n ? onednn_backward(call, run) : co_copy_backward(call, run);
}

const co_kernel co_onednn_flatten = {
    .op = "flatten",
    .reads = ONEDNN_READS,
    .self_size = sizeof(onednn_self),
    .half = ONEDNN_HALF,
    .supports = onednn_takes,
    .plan = flatten_plan,
    .plan_backward = flatten_plan_backward,
    .bind = onednn_bind,
    .forward = flatten_forward,
    .backward = flatten_backward,
    .fini = onednn_fini,
    .in_place = true,
};

static co_status flatten_plan_unpack(co_call *call)
{
    onednn_self *self = call->self;
    const onednn_operand x = onednn_tensor(self, call->in[0]);
    const onednn_operand y = onednn_tensor(self, call->out[0]);

    CO_TRY(onednn_begin(call));
    return onednn_add_reorder(self, &self->forward, ONEDNN_ALWAYS, &x, &y, false);
}

const co_kernel co_onednn_unpack = {
    .op = "unpack",
    .reads = ONEDNN_READS,
    .self_size = sizeof(onednn_self),
    .half = ONEDNN_HALF,
    .supports = onednn_takes,
    .plan = flatten_plan_unpack,
    .bind = onednn_bind,
    .forward = onednn_forward,
    .fini = onednn_fini,
};
