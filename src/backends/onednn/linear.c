/*
 * linear.c - matrix product by oneDNN's inner product; backward by loops of our own where those are
 * faster.
 */
#include "backends/cpu/linear.h"
#include "backends/onednn/onednn.h"

typedef struct linear {
    onednn_self base;
    gemm own;                     /* without loops: oneDNN does backward, too */
    onednn_operand src, grad_out; /* for them: plain */
    onednn_operand room;
} linear;

static co_status linear_plan_product(co_call *call)
{
    const co_linear_attr *a = call->attr;
    onednn_self *self = call->self;
    onednn_operand src = onednn_tensor(call->in[0]), dst, bias = {0};
    onednn_operand weight = onednn_tensor(&call->param[0]);
    const dnnl_memory_desc_t any_src = onednn_any_of(call->in[0]);
    const dnnl_memory_desc_t any_dst = onednn_any_of(call->out[0]);
    const dnnl_memory_desc_t any_weight =
        onednn_any(call->in[0]->dtype, 2, call->param[0].shape.dim);
    dnnl_inner_product_desc_t desc;
    dnnl_memory_desc_t md;

    if (a->bias)
        bias = onednn_tensor(&call->param[1]);
    CO_TRY(onednn_check(dnnl_inner_product_forward_desc_init(&desc, onednn_direction(call),
                                                             &any_src, &any_weight,
                                                             a->bias ? &bias.md : NULL, &any_dst),
                        call, "describe the layer"));
    CO_TRY(onednn_describe(&self->forward_pd, self, &desc));
    md = onednn_chosen(self->forward_pd, DNNL_ARG_DST);
    onednn_set_format(call->out[0], &self->out, &md);
    dst = onednn_tensor(call->out[0]);
    md = onednn_chosen(self->forward_pd, DNNL_ARG_SRC);
    CO_TRY(onednn_convert(&src, self, &self->forward, &md));
    md = onednn_chosen(self->forward_pd, DNNL_ARG_WEIGHTS);
    CO_TRY(onednn_convert(&weight, self, &self->forward, &md));
    {
        const onednn_arg arg[] = {{DNNL_ARG_SRC, &src},
                                  {DNNL_ARG_WEIGHTS, &weight},
                                  {DNNL_ARG_DST, &dst},
                                  {DNNL_ARG_BIAS, &bias}};

        return onednn_add_step(self, &self->forward, ONEDNN_ALWAYS, self->forward_pd, arg,
                               a->bias ? 4 : 3);
    }
}

static co_status linear_plan(co_call *call)
{
    CO_TRY(onednn_begin(call));
    return linear_plan_product(call);
}

/* One of the two ways to return the gradients of the parameters. */
static co_status linear_add_backward_weights(onednn_self *self, const_dnnl_primitive_desc_t pd,
                                             onednn_when when, const onednn_operand *src,
                                             const onednn_operand *diff_dst)
{
    const co_call *call = self->call;
    const co_linear_attr *a = call->attr;
    const dnnl_memory_desc_t weight_md = onednn_chosen(pd, DNNL_ARG_DIFF_WEIGHTS);
    const onednn_operand weight_store = onednn_tensor(&call->grad_param[0]);
    const size_t mark = self->backward.scratch;
    onednn_operand weight, bias = {0}, bias_store = {0};

    weight = onednn_gradient(self, when, &weight_store, &weight_md);
    if (a->bias) {
        bias_store = onednn_tensor(&call->grad_param[1]);
        bias = onednn_gradient(self, when, &bias_store, &bias_store.md);
    }
    {
        const onednn_arg arg[] = {{DNNL_ARG_SRC, src},
                                  {DNNL_ARG_DIFF_DST, diff_dst},
                                  {DNNL_ARG_DIFF_WEIGHTS, &weight},
                                  {DNNL_ARG_DIFF_BIAS, &bias}};

        CO_TRY(onednn_add_step(self, &self->backward, when, pd, arg, a->bias ? 4 : 3));
    }
    CO_TRY(onednn_put_gradient(self, when, &weight, &weight_store));
    if (a->bias)
        CO_TRY(onednn_put_gradient(self, when, &bias, &bias_store));
    self->backward.scratch = mark;
    return CO_OK;
}

static co_status linear_plan_backward_weights(onednn_self *self, const co_call *call)
{
    const co_linear_attr *a = call->attr;
    const dnnl_memory_desc_t any_src = onednn_any_of(call->in[0]);
    const dnnl_memory_desc_t any_dst = onednn_any_of(call->out[0]);
    const dnnl_memory_desc_t any_weight = onednn_any(CO_F32, 2, call->param[0].shape.dim);
    const dnnl_memory_desc_t plain_bias = onednn_plain(CO_F32, 1, &a->out);
    onednn_operand src = onednn_tensor(call->in[0]), diff_dst = onednn_tensor(call->grad_out[0]);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_inner_product_desc_t desc;
    dnnl_memory_desc_t md;
    co_status st;

    CO_TRY(onednn_check(dnnl_inner_product_backward_weights_desc_init(
                            &desc, &any_src, &any_weight, a->bias ? &plain_bias : NULL, &any_dst),
                        call, "describe the layer's backward"));
    CO_TRY(onednn_describe(&pd, self, &desc));
    md = onednn_chosen(pd, DNNL_ARG_SRC);
    st = onednn_convert(&src, self, &self->backward, &md);
    md = onednn_chosen(pd, DNNL_ARG_DIFF_DST);
    if (st == CO_OK)
        st = onednn_convert(&diff_dst, self, &self->backward, &md);
    if (st == CO_OK)
        st = linear_add_backward_weights(self, pd, ONEDNN_OVERWRITE, &src, &diff_dst);
    if (st == CO_OK)
        st = linear_add_backward_weights(self, pd, ONEDNN_ACCUMULATE, &src, &diff_dst);
    dnnl_primitive_desc_destroy(pd);
    return st;
}

static co_status linear_add_backward_data(onednn_self *self, const_dnnl_primitive_desc_t pd)
{
    const co_call *call = self->call;
    onednn_operand weight = onednn_tensor(&call->param[0]);
    onednn_operand diff_dst = onednn_tensor(call->grad_out[0]), diff_src;
    dnnl_memory_desc_t md = onednn_chosen(pd, DNNL_ARG_DIFF_SRC);

    onednn_set_format(call->grad_in[0], &self->grad_in, &md);
    diff_src = onednn_tensor(call->grad_in[0]);
    md = onednn_chosen(pd, DNNL_ARG_DIFF_DST);
    CO_TRY(onednn_convert(&diff_dst, self, &self->backward, &md));
    md = onednn_chosen(pd, DNNL_ARG_WEIGHTS);
    CO_TRY(onednn_convert(&weight, self, &self->backward, &md));
    {
        const onednn_arg arg[] = {{DNNL_ARG_DIFF_DST, &diff_dst},
                                  {DNNL_ARG_WEIGHTS, &weight},
                                  {DNNL_ARG_DIFF_SRC, &diff_src}};

        return onednn_add_step(self, &self->backward, ONEDNN_ALWAYS, pd, arg, 3);
    }
}

static co_status linear_plan_backward_product(co_call *call)
{
    onednn_self *self = call->self;
    const dnnl_memory_desc_t any_src = onednn_any_of(call->in[0]);
    const dnnl_memory_desc_t any_dst = onednn_any_of(call->out[0]);
    const dnnl_memory_desc_t any_weight =
        onednn_any(call->in[0]->dtype, 2, call->param[0].shape.dim);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_inner_product_desc_t desc;
    co_status st;

    CO_TRY(linear_plan_backward_weights(self, call));
    if (!call->grad_in[0])
        return CO_OK;
    self->backward.scratch = 0; /* the gradients of the weights have been stored by then */
    CO_TRY(onednn_check(
        dnnl_inner_product_backward_data_desc_init(&desc, &any_src, &any_weight, &any_dst), call,
        "describe the layer's backward"));
    CO_TRY(onednn_describe(&pd, self, &desc));
    st = linear_add_backward_data(self, pd);
    dnnl_primitive_desc_destroy(pd);
    return st;
}

static co_status linear_plan_backward_own(co_call *call)
{
    linear *self = call->self;
    onednn_self *base = &self->base;
    const dnnl_memory_desc_t src = onednn_plain(CO_F32, 2, call->in[0]->shape.dim);
    const dnnl_memory_desc_t dst = onednn_plain(CO_F32, 2, call->out[0]->shape.dim);
    const int64_t floats = (int64_t)(gemm_backward_bytes(&self->own, call) / sizeof(float));
    const dnnl_memory_desc_t room = onednn_plain(CO_F32, 1, &floats);

    base->back_loops = self->own.loops->name;
    self->src = onednn_tensor(call->in[0]);
    self->grad_out = onednn_tensor(call->grad_out[0]);
    CO_TRY(onednn_convert(&self->src, base, &base->backward, &src));
    CO_TRY(onednn_convert(&self->grad_out, base, &base->backward, &dst));
    if (call->grad_in[0])
        onednn_set_format(call->grad_in[0], &base->grad_in, &src);
    self->room = onednn_scratch(base, &base->backward, &room);
    return CO_OK;
}

static co_status linear_plan_backward(co_call *call)
{
    linear *self = call->self;

    return gemm_choose(&self->own, call) ? linear_plan_backward_own(call)
                                         : linear_plan_backward_product(call);
}

static void *linear_address(const onednn_operand *x)
{
    return (char *)*x->base + x->offset;
}

static co_status linear_backward(co_call *call, const co_run *run)
{
    const linear *self = call->self;

    CO_TRY(onednn_backward(call, run));
    if (self->own.loops) {
        const gemm_backward_from in = {linear_address(&self->src), linear_address(&self->grad_out)};

        gemm_backward(&self->own, call, &in, linear_address(&self->room), run->accumulate);
    }
    return CO_OK;
}

const co_kernel co_onednn_linear = {
    .op = "linear",
    .reads = ONEDNN_READS,
    .self_size = sizeof(linear),
    .half = ONEDNN_HALF,
    .supports = onednn_takes,
    .plan = linear_plan,
    .plan_backward = linear_plan_backward,
    .bind = onednn_bind,
    .forward = onednn_forward,
    .backward = linear_backward,
    .fini = onednn_fini,
};
