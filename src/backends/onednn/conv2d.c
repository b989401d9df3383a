/*
 * conv2d.c - convolution by oneDNN's direct algorithm.
 *
 * Winograd is never asked for: its rounding would move results away from the reference. Weights
 * are plain in the flat store and change at every step, so each run brings them into the kernel's
 * format.
 */
#include "backends/onednn/onednn.h"

typedef struct conv2d {
    onednn_self base;
    dnnl_dims_t stride, dilation, padding;
    int weight_ndim;
    dnnl_dims_t weight_dim; /* (out, in, kh, kw), or (groups, out / groups, in / groups, kh, kw) */
} conv2d;

static void conv2d_read_attr(conv2d *self, const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const co_shape *w = &call->param[0].shape;
    const int64_t groups = a->groups;
    int n = 0;

    for (int i = 0; i < 2; i++) {
        self->stride[i] = a->s[i];
        self->dilation[i] = a->d[i] - 1;
        self->padding[i] = a->p[i];
    }
    if (groups > 1)
        self->weight_dim[n++] = groups;
    self->weight_dim[n++] = w->dim[0] / groups;
    for (int i = 1; i < 4; i++)
        self->weight_dim[n++] = w->dim[i];
    self->weight_ndim = n;
}

static onednn_operand conv2d_weight(const conv2d *self, const co_tensor *tensor)
{
    onednn_operand w = {.base = &tensor->data};

    w.md = onednn_plain(self->weight_ndim, self->weight_dim);
    return w;
}

static co_status conv2d_describe_forward(conv2d *self, const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const dnnl_memory_desc_t src = onednn_any(4, call->in[0]->shape.dim);
    const dnnl_memory_desc_t dst = onednn_any(4, call->out[0]->shape.dim);
    const dnnl_memory_desc_t weight = onednn_any(self->weight_ndim, self->weight_dim);
    const dnnl_memory_desc_t bias = onednn_plain(1, &a->out);
    dnnl_convolution_desc_t desc;

    CO_TRY(onednn_check(dnnl_dilated_convolution_forward_desc_init(
                            &desc, onednn_direction(call), dnnl_convolution_direct, &src, &weight,
                            a->bias ? &bias : NULL, &dst, self->stride, self->dilation,
                            self->padding, self->padding),
                        call, "describe the layer"));
    return onednn_describe(&self->base.forward_pd, &self->base, &desc);
}

static co_status conv2d_plan(co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    conv2d *self = call->self;
    onednn_program *program = &self->base.forward;
    onednn_operand src = onednn_tensor(call->in[0]), weight, dst, bias = {0};
    dnnl_memory_desc_t md;

    CO_TRY(onednn_begin(call));
    conv2d_read_attr(self, call);
    CO_TRY(conv2d_describe_forward(self, call));
    md = onednn_chosen(self->base.forward_pd, DNNL_ARG_DST);
    onednn_set_format(call->out[0], &self->base.out, &md);
    dst = onednn_tensor(call->out[0]);
    md = onednn_chosen(self->base.forward_pd, DNNL_ARG_SRC);
    CO_TRY(onednn_convert(&src, &self->base, program, &md));
    weight = conv2d_weight(self, &call->param[0]);
    md = onednn_chosen(self->base.forward_pd, DNNL_ARG_WEIGHTS);
    CO_TRY(onednn_convert(&weight, &self->base, program, &md));
    if (a->bias)
        bias = onednn_tensor(&call->param[1]);
    {
        const onednn_arg arg[] = {{DNNL_ARG_SRC, &src},
                                  {DNNL_ARG_WEIGHTS, &weight},
                                  {DNNL_ARG_DST, &dst},
                                  {DNNL_ARG_BIAS, &bias}};

        return onednn_add_step(&self->base, program, ONEDNN_ALWAYS, self->base.forward_pd, arg,
                               a->bias ? 4 : 3);
    }
}

/* One of the two ways to give the gradients of the parameters. */
static co_status conv2d_add_backward_weights(conv2d *self, const_dnnl_primitive_desc_t pd,
                                             onednn_when when, const onednn_operand *src,
                                             const onednn_operand *diff_dst)
{
    const co_call *call = self->base.call;
    const co_conv2d_attr *a = call->attr;
    onednn_program *program = &self->base.backward;
    const dnnl_memory_desc_t weight_md = onednn_chosen(pd, DNNL_ARG_DIFF_WEIGHTS);
    const onednn_operand weight_store = conv2d_weight(self, &call->grad_param[0]);
    const size_t mark = program->scratch;
    onednn_operand weight, bias = {0}, bias_store = {0};

    weight = onednn_gradient(&self->base, when, &weight_store, &weight_md);
    if (a->bias) {
        bias_store = onednn_tensor(&call->grad_param[1]);
        bias = onednn_gradient(&self->base, when, &bias_store, &bias_store.md);
    }
    {
        const onednn_arg arg[] = {{DNNL_ARG_SRC, src},
                                  {DNNL_ARG_DIFF_DST, diff_dst},
                                  {DNNL_ARG_DIFF_WEIGHTS, &weight},
                                  {DNNL_ARG_DIFF_BIAS, &bias}};

        CO_TRY(onednn_add_step(&self->base, program, when, pd, arg, a->bias ? 4 : 3));
    }
    CO_TRY(onednn_put_gradient(&self->base, when, &weight, &weight_store));
    if (a->bias)
        CO_TRY(onednn_put_gradient(&self->base, when, &bias, &bias_store));
    program->scratch = mark;
    return CO_OK;
}

static co_status conv2d_plan_backward_weights(conv2d *self, const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const dnnl_memory_desc_t any_src = onednn_any(4, call->in[0]->shape.dim);
    const dnnl_memory_desc_t any_dst = onednn_any(4, call->out[0]->shape.dim);
    const dnnl_memory_desc_t any_weight = onednn_any(self->weight_ndim, self->weight_dim);
    const dnnl_memory_desc_t plain_bias = onednn_plain(1, &a->out);
    onednn_operand src = onednn_tensor(call->in[0]), diff_dst = onednn_tensor(call->grad_out[0]);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_convolution_desc_t desc;
    dnnl_memory_desc_t md;
    co_status st;

    CO_TRY(onednn_check(dnnl_dilated_convolution_backward_weights_desc_init(
                            &desc, dnnl_convolution_direct, &any_src, &any_weight,
                            a->bias ? &plain_bias : NULL, &any_dst, self->stride, self->dilation,
                            self->padding, self->padding),
                        call, "describe the layer's backward"));
    CO_TRY(onednn_describe(&pd, &self->base, &desc));
    md = onednn_chosen(pd, DNNL_ARG_SRC);
    st = onednn_convert(&src, &self->base, &self->base.backward, &md);
    md = onednn_chosen(pd, DNNL_ARG_DIFF_DST);
    if (st == CO_OK)
        st = onednn_convert(&diff_dst, &self->base, &self->base.backward, &md);
    if (st == CO_OK)
        st = conv2d_add_backward_weights(self, pd, ONEDNN_OVERWRITE, &src, &diff_dst);
    if (st == CO_OK)
        st = conv2d_add_backward_weights(self, pd, ONEDNN_ACCUMULATE, &src, &diff_dst);
    dnnl_primitive_desc_destroy(pd);
    return st;
}

static co_status conv2d_add_backward_data(conv2d *self, const_dnnl_primitive_desc_t pd)
{
    const co_call *call = self->base.call;
    onednn_program *program = &self->base.backward;
    onednn_operand weight = conv2d_weight(self, &call->param[0]);
    onednn_operand diff_dst = onednn_tensor(call->grad_out[0]), diff_src;
    dnnl_memory_desc_t md = onednn_chosen(pd, DNNL_ARG_DIFF_SRC);

    onednn_set_format(call->grad_in[0], &self->base.grad_in, &md);
    diff_src = onednn_tensor(call->grad_in[0]);
    md = onednn_chosen(pd, DNNL_ARG_DIFF_DST);
    CO_TRY(onednn_convert(&diff_dst, &self->base, program, &md));
    md = onednn_chosen(pd, DNNL_ARG_WEIGHTS);
    CO_TRY(onednn_convert(&weight, &self->base, program, &md));
    {
        const onednn_arg arg[] = {{DNNL_ARG_DIFF_DST, &diff_dst},
                                  {DNNL_ARG_WEIGHTS, &weight},
                                  {DNNL_ARG_DIFF_SRC, &diff_src}};

        return onednn_add_step(&self->base, program, ONEDNN_ALWAYS, pd, arg, 3);
    }
}

static co_status conv2d_plan_backward_data(conv2d *self, const co_call *call)
{
    const dnnl_memory_desc_t src = onednn_any(4, call->in[0]->shape.dim);
    const dnnl_memory_desc_t dst = onednn_any(4, call->out[0]->shape.dim);
    const dnnl_memory_desc_t weight = onednn_any(self->weight_ndim, self->weight_dim);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_convolution_desc_t desc;
    co_status st;

    CO_TRY(onednn_check(dnnl_dilated_convolution_backward_data_desc_init(
                            &desc, dnnl_convolution_direct, &src, &weight, &dst, self->stride,
                            self->dilation, self->padding, self->padding),
                        call, "describe the layer's backward"));
    CO_TRY(onednn_describe(&pd, &self->base, &desc));
    st = conv2d_add_backward_data(self, pd);
    dnnl_primitive_desc_destroy(pd);
    return st;
}

static co_status conv2d_plan_backward(co_call *call)
{
    conv2d *self = call->self;

    CO_TRY(conv2d_plan_backward_weights(self, call));
    if (!call->grad_in[0])
        return CO_OK;
    self->base.backward.scratch = 0; /* the gradients of the weights are out by then */
    return conv2d_plan_backward_data(self, call);
}

const co_kernel co_onednn_conv2d = {
    .op = "conv2d",
    .self_size = sizeof(conv2d),
    .plan = conv2d_plan,
    .plan_backward = conv2d_plan_backward,
    .bind = onednn_bind,
    .forward = onednn_forward,
    .backward = onednn_backward,
    .fini = onednn_fini,
};
