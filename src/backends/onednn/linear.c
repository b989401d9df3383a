/*
 * linear.c - matrix product by oneDNN's inner product; backward by loops of our own where those are
 * faster.
 */
#include <string.h>

#include "backends/cpu/linear.h"
#include "backends/onednn/onednn.h"
#include "core/isa.h"

typedef struct linear {
    onednn_self base;
    gemm own;                     /* without loops: oneDNN does backward, too */
    onednn_operand src, grad_out; /* for them: plain */
    onednn_operand room;
} linear;

static bool linear_supports(const co_call *call, const char **why)
{
    if (!onednn_multiplies(call, why))
        return false;
    *why = "it takes rows, and no sequences of rows";
    return call->in[0]->shape.ndim == 2;
}

/* Whether the number of threads changes bits: below AVX-512 oneDNN 2.6's inner products by its gemm
   cut sums into parts, by threads. */
static bool linear_is_cut_by_threads(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";

    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    return !co_isa_has(CO_ISA_AVX512) && strstr(name, "gemm:jit");
}

static co_status linear_plan_product(co_call *call)
{
    const co_linear_attr *a = call->attr;
    onednn_self *self = call->self;
    onednn_operand src = onednn_tensor(self, call->in[0]), dst, bias = {0};
    onednn_operand weight = onednn_tensor(self, &call->param[0]);
    dnnl_status_t st;

    if (a->bias)
        bias = onednn_tensor(self, &call->param[1]);
    st = dnnl_inner_product_forward_primitive_desc_create(
        &self->forward_pd, self->engine, onednn_direction(call), onednn_any_of(self, call->in[0]),
        onednn_any(self, call->in[0]->dtype, 2, call->param[0].shape.dim), bias.md,
        onednn_any_of(self, call->out[0]), self->attr);
    CO_TRY(onednn_described(self, st, &self->forward_pd));
    self->small = self->small || linear_is_cut_by_threads(self->forward_pd);
    onednn_set_format(self, call->out[0], onednn_chosen(self->forward_pd, DNNL_ARG_DST));
    dst = onednn_tensor(self, call->out[0]);
    CO_TRY(
        onednn_convert(&src, self, &self->forward, onednn_chosen(self->forward_pd, DNNL_ARG_SRC)));
    CO_TRY(onednn_convert(&weight, self, &self->forward,
                          onednn_chosen(self->forward_pd, DNNL_ARG_WEIGHTS)));
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
    const onednn_operand weight_store = onednn_tensor(self, &call->grad_param[0]);
    const size_t mark = self->backward.scratch;
    onednn_operand weight, bias = {0}, bias_store = {0};

    weight = onednn_gradient(self, when, &weight_store, onednn_chosen(pd, DNNL_ARG_DIFF_WEIGHTS));
    if (a->bias) {
        bias_store = onednn_tensor(self, &call->grad_param[1]);
        bias = onednn_gradient(self, when, &bias_store, bias_store.md);
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
    onednn_operand src = onednn_tensor(self, call->in[0]);
    onednn_operand diff_dst = onednn_tensor(self, call->grad_out[0]);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t st;

    st = dnnl_inner_product_backward_weights_primitive_desc_create(
        &pd, self->engine, onednn_any_of(self, call->in[0]),
        onednn_any(self, CO_F32, 2, call->param[0].shape.dim),
        a->bias ? onednn_plain(self, CO_F32, 1, &a->out) : NULL, onednn_any_of(self, call->out[0]),
        self->forward_pd, self->attr);
    CO_TRY(onednn_described(self, st, &pd));
    CO_TRY(onednn_convert(&src, self, &self->backward, onednn_chosen(pd, DNNL_ARG_SRC)));
    CO_TRY(onednn_convert(&diff_dst, self, &self->backward, onednn_chosen(pd, DNNL_ARG_DIFF_DST)));
    CO_TRY(linear_add_backward_weights(self, pd, ONEDNN_OVERWRITE, &src, &diff_dst));
    return linear_add_backward_weights(self, pd, ONEDNN_ACCUMULATE, &src, &diff_dst);
}

static co_status linear_add_backward_data(onednn_self *self, const_dnnl_primitive_desc_t pd)
{
    const co_call *call = self->call;
    onednn_operand weight = onednn_tensor(self, &call->param[0]);
    onednn_operand diff_dst = onednn_tensor(self, call->grad_out[0]), diff_src;

    onednn_set_format(self, call->grad_in[0], onednn_chosen(pd, DNNL_ARG_DIFF_SRC));
    diff_src = onednn_tensor(self, call->grad_in[0]);
    CO_TRY(onednn_convert(&diff_dst, self, &self->backward, onednn_chosen(pd, DNNL_ARG_DIFF_DST)));
    CO_TRY(onednn_convert(&weight, self, &self->backward, onednn_chosen(pd, DNNL_ARG_WEIGHTS)));
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
    dnnl_primitive_desc_t pd = NULL;
    dnnl_status_t st;

    CO_TRY(linear_plan_backward_weights(self, call));
    if (!call->grad_in[0])
        return CO_OK;
    self->backward.scratch = 0; /* the gradients of the weights have been stored by then */
    st = dnnl_inner_product_backward_data_primitive_desc_create(
        &pd, self->engine, onednn_any_of(self, call->in[0]),
        onednn_any(self, call->in[0]->dtype, 2, call->param[0].shape.dim),
        onednn_any_of(self, call->out[0]), self->forward_pd, self->attr);
    CO_TRY(onednn_described(self, st, &pd));
    return linear_add_backward_data(self, pd);
}

static co_status linear_plan_backward_own(co_call *call)
{
    linear *self = call->self;
    onednn_self *base = &self->base;
    const_dnnl_memory_desc_t src = onednn_plain(base, CO_F32, 2, call->in[0]->shape.dim);
    const_dnnl_memory_desc_t dst = onednn_plain(base, CO_F32, 2, call->out[0]->shape.dim);
    const int64_t floats = (int64_t)(gemm_backward_bytes(&self->own, call) / sizeof(float));
    const_dnnl_memory_desc_t room = onednn_plain(base, CO_F32, 1, &floats);

    base->back_loops = self->own.loops->name;
    CO_TRY(base->descs.failure);
    self->src = onednn_tensor(base, call->in[0]);
    self->grad_out = onednn_tensor(base, call->grad_out[0]);
    CO_TRY(onednn_convert(&self->src, base, &base->backward, src));
    CO_TRY(onednn_convert(&self->grad_out, base, &base->backward, dst));
    if (call->grad_in[0])
        onednn_set_format(base, call->grad_in[0], src);
    self->room = onednn_scratch(base, &base->backward, room);
    return base->descs.failure;
}

static co_status linear_plan_backward(co_call *call)
{
    linear *self = call->self;

    (void)onednn_use_threads(call);
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
    .supports = linear_supports,
    .plan = linear_plan,
    .plan_backward = linear_plan_backward,
    .bind = onednn_bind,
    .forward = onednn_forward,
    .backward = linear_backward,
    .fini = onednn_fini,
};
