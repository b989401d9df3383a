/*
 * pool.c - maxpool and avgpool by oneDNN's pooling.
 */
#include "backends/onednn/onednn.h"

typedef struct pool {
    onednn_self base;
    dnnl_alg_kind_t alg;
    dnnl_dims_t kernel, stride, dilation, padding;
} pool;

static void pool_read_attr(pool *self, const co_call *call)
{
    const co_pool_attr *a = call->attr;

    for (int i = 0; i < 2; i++) {
        self->kernel[i] = a->k[i];
        self->stride[i] = a->s[i];
        self->padding[i] = a->p[i];
    }
}

static co_status pool_plan(co_call *call)
{
    pool *self = call->self;
    onednn_self *base = &self->base;
    const onednn_operand src = onednn_tensor(base, call->in[0]);
    onednn_operand dst, places = {.base = &call->workspace};
    dnnl_status_t st;

    CO_TRY(onednn_begin(call));
    st = dnnl_pooling_forward_primitive_desc_create(
        &base->forward_pd, base->engine, onednn_direction(call), self->alg, src.md,
        onednn_any_of(base, call->out[0]), self->stride, self->kernel, self->dilation,
        self->padding, self->padding, base->attr);
    CO_TRY(onednn_described(base, st, &base->forward_pd));
    onednn_set_format(base, call->out[0], onednn_chosen(base->forward_pd, DNNL_ARG_DST));
    dst = onednn_tensor(base, call->out[0]);
    places.md = onednn_chosen(base->forward_pd, DNNL_ARG_WORKSPACE);
    call->workspace_bytes = dnnl_memory_desc_get_size(places.md);
    {
        const onednn_arg arg[] = {
            {DNNL_ARG_SRC, &src}, {DNNL_ARG_DST, &dst}, {DNNL_ARG_WORKSPACE, &places}};

        return onednn_add_step(base, &base->forward, ONEDNN_ALWAYS, base->forward_pd, arg,
                               call->workspace_bytes ? 3 : 2);
    }
}

static co_status pool_plan_backward(co_call *call)
{
    pool *self = call->self;
    onednn_self *base = &self->base;
    const onednn_operand dst = onednn_tensor(base, call->out[0]);
    onednn_operand diff_dst, diff_src, places = {.base = &call->workspace};
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t st;

    if (!call->grad_in[0])
        return CO_OK;
    (void)onednn_use_threads(call);
    diff_dst = onednn_tensor(base, call->grad_out[0]);
    CO_TRY(onednn_convert(&diff_dst, base, &base->backward, dst.md));
    onednn_like(call->grad_in[0], call->in[0]);
    diff_src = onednn_tensor(base, call->grad_in[0]);
    st = dnnl_pooling_backward_primitive_desc_create(
        &pd, base->engine, self->alg, diff_src.md, diff_dst.md, self->stride, self->kernel,
        self->dilation, self->padding, self->padding, base->forward_pd, base->attr);
    CO_TRY(onednn_described(base, st, &pd));
    places.md = onednn_chosen(base->forward_pd, DNNL_ARG_WORKSPACE);
    {
        const onednn_arg arg[] = {{DNNL_ARG_DIFF_DST, &diff_dst},
                                  {DNNL_ARG_DIFF_SRC, &diff_src},
                                  {DNNL_ARG_WORKSPACE, &places}};

        return onednn_add_step(base, &base->backward, ONEDNN_ALWAYS, pd, arg,
                               call->workspace_bytes ? 3 : 2);
    }
}

static co_status pool_plan_max(co_call *call)
{
    pool *self = call->self;

    pool_read_attr(self, call);
    self->alg = dnnl_pooling_max;
    return pool_plan(call);
}

static co_status pool_plan_avg(co_call *call)
{
    pool *self = call->self;
    const co_pool_attr *a = call->attr;

    pool_read_attr(self, call);
    self->alg =
        a->count_include_pad ? dnnl_pooling_avg_include_padding : dnnl_pooling_avg_exclude_padding;
    return pool_plan(call);
}

const co_kernel co_onednn_maxpool = {
    .op = "maxpool",
    .reads = ONEDNN_READS,
    .self_size = sizeof(pool),
    .half = ONEDNN_HALF,
    .supports = onednn_takes,
    .plan = pool_plan_max,
    .plan_backward = pool_plan_backward,
    .bind = onednn_bind,
    .forward = onednn_forward,
    .backward = onednn_backward,
    .fini = onednn_fini,
};

const co_kernel co_onednn_avgpool = {
    .op = "avgpool",
    .reads = ONEDNN_READS,
    .self_size = sizeof(pool),
    .half = ONEDNN_HALF,
    .supports = onednn_takes,
    .plan = pool_plan_avg,
    .plan_backward = pool_plan_backward,
    .bind = onednn_bind,
    .forward = onednn_forward,
    .backward = onednn_backward,
    .fini = onednn_fini,
};
