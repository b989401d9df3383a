/*
 * conv2d.c - convolution by oneDNN: directly, or in fp32 by its Winograd algorithm where
 * cpu/conv2d_rules.c says so.
 *
 * Weights are plain in the flat store and change at every step, so each run reorders them to the
 * kernel's format.
 */
#include <string.h>

#include "backends/cpu/conv2d_rules.h"
#include "backends/onednn/onednn.h"

#define CONV2D_BLOCK 16 /* channels of oneDNN's layout */

typedef struct conv2d {
    onednn_self base;
    dnnl_dims_t stride, dilation, padding, behind; /* padding before and behind the image */
    bool trimmed;  /* some taps only ever meet padding, and are left out */
    int64_t first; /* element of the weight, of those that do not */
    bool covers;   /* the taps are the image: a matrix product */
    int weight_ndim;
    dnnl_dims_t weight_dim;  /* (out, in, kh, kw), or (groups, out / groups, in / groups, kh, kw) */
    onednn_operand grad_out; /* in backward, as the gradient of the weights reads it */
    size_t grad_out_end;     /* of it in scratch */
} conv2d;

/* Whether each tap meets exactly one element of the image, and there is one output. */
static bool conv2d_covers(const conv2d *self, const co_call *call)
{
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;

    for (int i = 0; i < 2; i++)
        if (out[2 + i] != 1 || self->padding[i] || self->behind[i] ||
            self->weight_dim[2 + i] != in[2 + i] || (self->dilation[i] && in[2 + i] > 1))
            return false;
    return true;
}

static void conv2d_read_attr(conv2d *self, const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const co_shape *w = &call->param[0].shape;
    const int64_t groups = a->groups;
    int n = 0;

    for (int i = 0; i < 2; i++) {
        self->stride[i] = a->s[i];
        self->dilation[i] = a->d[i] - 1;
    }
    if (groups > 1)
        self->weight_dim[n++] = groups;
    self->weight_dim[n++] = w->dim[0] / groups;
    for (int i = 1; i < 4; i++)
        self->weight_dim[n++] = w->dim[i];
    self->weight_ndim = n;
    for (int i = 0; i < 2; i++) {
        conv2d_reach reach;

        self->trimmed = conv2d_trim(&reach, call, i) || self->trimmed;
        self->first = self->first * a->k[1] + reach.begin;
        self->padding[i] = reach.before;
        self->behind[i] = reach.after;
        self->weight_dim[n - 2 + i] = reach.taps;
    }
    self->covers = groups == 1 && conv2d_covers(self, call);
}

/* Describes a pass of the convolution by an algorithm, or as the equivalent inner product where the
   taps cover the image. */
typedef dnnl_status_t conv2d_pass(dnnl_primitive_desc_t *pd, conv2d *self,
                                  dnnl_alg_kind_t algorithm);

static co_status conv2d_describe(dnnl_primitive_desc_t *pd, conv2d *self, conv2d_pass *pass)
{
    const co_call *call = self->base.call;
    dnnl_status_t st = dnnl_unimplemented;
    const char *why;

    if (!self->covers && call->in[0]->dtype == CO_F32 && conv2d_suits_winograd(call, &why))
        st = pass(pd, self, dnnl_convolution_winograd);
    if (st != dnnl_success)
        st = pass(pd, self, dnnl_convolution_direct);
    return onednn_described(&self->base, st, pd);
}

/* An output of one pixel, in the format that the layers around it prefer: rows, but called blocks
   of channels where those are full. */
static const_dnnl_memory_desc_t conv2d_output(conv2d *self)
{
    const co_tensor *out = self->base.call->out[0];
    const co_layout blocks = {.format = CO_FORMAT_CHANNEL_BLOCKS, .block = CONV2D_BLOCK};
    co_tensor y = *out;

    y.layout = out->shape.dim[1] % CONV2D_BLOCK == 0 ? blocks : (co_layout){0};
    return onednn_tensor(&self->base, &y).md;
}

/* Rows of the output, (N, out). */
static const_dnnl_memory_desc_t conv2d_rows(conv2d *self)
{
    const co_tensor *out = self->base.call->out[0];

    return onednn_plain(&self->base, out->dtype, 2, out->shape.dim);
}

/* The output's gradient in the format that the primitive has chosen. */
static co_status conv2d_read_output(onednn_operand *x, conv2d *self, const_dnnl_primitive_desc_t pd)
{
    const_dnnl_memory_desc_t chosen = onednn_chosen(pd, DNNL_ARG_DIFF_DST);

    CO_TRY(onednn_convert(x, &self->base, &self->base.backward,
                          self->covers ? conv2d_output(self) : chosen));
    x->md = chosen;
    return CO_OK;
}

/* The taps that are used, as a part of all. */
static onednn_operand conv2d_weight(conv2d *self, const co_tensor *tensor)
{
    const int64_t *all = tensor->shape.dim;
    dnnl_dims_t stride;
    int64_t step = 1;

    for (int i = self->weight_ndim - 1, k = 3; i >= 0; i--, k--) {
        stride[i] = step;
        step *= k > 0 ? all[k] : self->weight_dim[i];
    }
    return (onednn_operand){
        .md = onednn_desc_of_strides(&self->base.descs, dnnl_f32, self->weight_ndim,
                                     self->weight_dim, stride),
        .base = &tensor->data,
        .offset = (size_t)self->first * sizeof(float),
    };
}

/* In the format that the primitive prefers; its gradient is fp32. */
static const_dnnl_memory_desc_t conv2d_any_weight(conv2d *self, co_dtype dtype)
{
    return onednn_any(&self->base, dtype, self->weight_ndim, self->weight_dim);
}

static const_dnnl_memory_desc_t conv2d_bias(conv2d *self)
{
    const co_conv2d_attr *a = self->base.call->attr;

    return a->bias ? onednn_plain(&self->base, CO_F32, 1, &a->out) : NULL;
}

static dnnl_status_t conv2d_pass_forward(dnnl_primitive_desc_t *pd, conv2d *self,
                                         dnnl_alg_kind_t algorithm)
{
    onednn_self *base = &self->base;
    const co_call *call = base->call;
    const dnnl_prop_kind_t direction = onednn_direction(call);
    const_dnnl_memory_desc_t src = onednn_any_of(base, call->in[0]);
    const_dnnl_memory_desc_t weight = conv2d_any_weight(self, call->in[0]->dtype);

    if (self->covers)
        return dnnl_inner_product_forward_primitive_desc_create(pd, base->engine, direction, src,
                                                                weight, conv2d_bias(self),
                                                                conv2d_rows(self), base->attr);
    return dnnl_convolution_forward_primitive_desc_create(
        pd, base->engine, direction, algorithm, src, weight, conv2d_bias(self),
        onednn_any_of(base, call->out[0]), self->stride, self->dilation, self->padding,
        self->behind, base->attr);
}

static co_status conv2d_plan(co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    conv2d *self = call->self;
    onednn_self *base = &self->base;
    onednn_operand src = onednn_tensor(base, call->in[0]), weight, dst, bias = {0};

    CO_TRY(onednn_begin(call));
    conv2d_read_attr(self, call);
    CO_TRY(conv2d_describe(&base->forward_pd, self, conv2d_pass_forward));
    dst = (onednn_operand){.md = onednn_chosen(base->forward_pd, DNNL_ARG_DST),
                           .base = &call->out[0]->data};
    onednn_set_format(base, call->out[0], self->covers ? conv2d_output(self) : dst.md);
    CO_TRY(
        onednn_convert(&src, base, &base->forward, onednn_chosen(base->forward_pd, DNNL_ARG_SRC)));
    weight = conv2d_weight(self, &call->param[0]);
    CO_TRY(onednn_convert(&weight, base, &base->forward,
                          onednn_chosen(base->forward_pd, DNNL_ARG_WEIGHTS)));
    if (a->bias)
        bias = onednn_tensor(base, &call->param[1]);
    {
        const onednn_arg arg[] = {{DNNL_ARG_SRC, &src},
                                  {DNNL_ARG_WEIGHTS, &weight},
                                  {DNNL_ARG_DST, &dst},
                                  {DNNL_ARG_BIAS, &bias}};

        return onednn_add_step(base, &base->forward, ONEDNN_ALWAYS, base->forward_pd, arg,
                               a->bias ? 4 : 3);
    }
}

/* One of the two ways to return the gradients of the parameters. */
static co_status conv2d_add_backward_weights(conv2d *self, const_dnnl_primitive_desc_t pd,
                                             onednn_when when, const onednn_operand *src)
{
    const co_call *call = self->base.call;
    const co_conv2d_attr *a = call->attr;
    onednn_program *program = &self->base.backward;
    const size_t mark = program->scratch;
    const onednn_operand weight_store = conv2d_weight(self, &call->grad_param[0]);
    onednn_operand weight, bias = {0}, bias_store = {0};

    weight =
        onednn_gradient(&self->base, when, &weight_store, onednn_chosen(pd, DNNL_ARG_DIFF_WEIGHTS));
    if (a->bias) {
        bias_store = onednn_tensor(&self->base, &call->grad_param[1]);
        bias = onednn_gradient(&self->base, when, &bias_store, bias_store.md);
    }
    {
        const onednn_arg arg[] = {{DNNL_ARG_SRC, src},
                                  {DNNL_ARG_DIFF_DST, &self->grad_out},
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

static dnnl_status_t conv2d_pass_weights(dnnl_primitive_desc_t *pd, conv2d *self,
                                         dnnl_alg_kind_t algorithm)
{
    onednn_self *base = &self->base;
    const co_call *call = base->call;
    const_dnnl_memory_desc_t src = onednn_any_of(base, call->in[0]);
    const_dnnl_memory_desc_t weight = conv2d_any_weight(self, CO_F32);

    if (self->covers)
        return dnnl_inner_product_backward_weights_primitive_desc_create(
            pd, base->engine, src, weight, conv2d_bias(self), conv2d_rows(self), base->forward_pd,
            base->attr);
    return dnnl_convolution_backward_weights_primitive_desc_create(
        pd, base->engine, algorithm, src, weight, conv2d_bias(self),
        onednn_any_of(base, call->out[0]), self->stride, self->dilation, self->padding,
        self->behind, base->forward_pd, base->attr);
}

static co_status conv2d_plan_backward_weights(conv2d *self, const co_call *call)
{
    onednn_self *base = &self->base;
    onednn_operand src = onednn_tensor(base, call->in[0]);
    dnnl_primitive_desc_t pd = NULL;

    CO_TRY(conv2d_describe(&pd, self, conv2d_pass_weights));
    self->grad_out = onednn_tensor(base, call->grad_out[0]);
    CO_TRY(conv2d_read_output(&self->grad_out, self, pd));
    self->grad_out_end = base->backward.scratch;
    CO_TRY(onednn_convert(&src, base, &base->backward, onednn_chosen(pd, DNNL_ARG_SRC)));
    CO_TRY(conv2d_add_backward_weights(self, pd, ONEDNN_OVERWRITE, &src));
    return conv2d_add_backward_weights(self, pd, ONEDNN_ACCUMULATE, &src);
}

static dnnl_status_t conv2d_describe_data(dnnl_primitive_desc_t *pd, conv2d *self,
                                          dnnl_alg_kind_t algorithm, const_dnnl_memory_desc_t src,
                                          const_dnnl_memory_desc_t dst)
{
    const onednn_self *base = &self->base;
    const_dnnl_memory_desc_t weight = conv2d_any_weight(self, base->call->in[0]->dtype);

    return dnnl_convolution_backward_data_primitive_desc_create(
        pd, base->engine, algorithm, src, weight, dst, self->stride, self->dilation, self->padding,
        self->behind, base->forward_pd, base->attr);
}

/* Loops without vector instructions, which take any formats and a thousand times as long. */
static bool conv2d_is_reference(const_dnnl_primitive_desc_t pd)
{
    const char *name = "";

    dnnl_primitive_desc_query(pd, dnnl_query_impl_info_str, 0, &name);
    return strncmp(name, "ref", 3) == 0;
}

/* With a stride oneDNN 3 would choose channels last for its gradients, where the layers around are
   in the forward pass's formats: two changes of layout cost more than it gains. Where it has no
   other loops for these formats (8 channels, in oneDNN 2.6) they are worth it. */
static bool conv2d_keeps_formats(dnnl_primitive_desc_t *pd, conv2d *self, dnnl_alg_kind_t algorithm)
{
    const_dnnl_primitive_desc_t forward = self->base.forward_pd;

    if (self->stride[0] * self->stride[1] == 1 ||
        conv2d_describe_data(pd, self, algorithm, onednn_chosen(forward, DNNL_ARG_SRC),
                             onednn_chosen(forward, DNNL_ARG_DST)) != dnnl_success)
        return false;
    if (!conv2d_is_reference(*pd))
        return true;
    dnnl_primitive_desc_destroy(*pd);
    return false;
}

static dnnl_status_t conv2d_pass_data(dnnl_primitive_desc_t *pd, conv2d *self,
                                      dnnl_alg_kind_t algorithm)
{
    onednn_self *base = &self->base;
    const co_call *call = base->call;
    const_dnnl_memory_desc_t src = onednn_any_of(base, call->in[0]);

    if (self->covers)
        return dnnl_inner_product_backward_data_primitive_desc_create(
            pd, base->engine, src, conv2d_any_weight(self, call->in[0]->dtype), conv2d_rows(self),
            base->forward_pd, base->attr);
    if (conv2d_keeps_formats(pd, self, algorithm))
        return dnnl_success;
    return conv2d_describe_data(pd, self, algorithm, src, onednn_any_of(base, call->out[0]));
}

static co_status conv2d_plan_backward_data(conv2d *self, const co_call *call)
{
    onednn_self *base = &self->base;
    onednn_program *program = &base->backward;
    onednn_operand diff_dst = self->grad_out, weight, diff_src;
    dnnl_primitive_desc_t pd = NULL;

    CO_TRY(conv2d_describe(&pd, self, conv2d_pass_data));
    /* The gradients of the weights have been stored by now, and their inputs may be overwritten. */
    program->scratch = self->grad_out_end;
    if (!onednn_same(diff_dst.md, onednn_chosen(pd, DNNL_ARG_DIFF_DST))) {
        program->scratch = 0;
        diff_dst = onednn_tensor(base, call->grad_out[0]);
        CO_TRY(conv2d_read_output(&diff_dst, self, pd));
    }
    onednn_set_format(base, call->grad_in[0], onednn_chosen(pd, DNNL_ARG_DIFF_SRC));
    diff_src = onednn_tensor(base, call->grad_in[0]);
    weight = conv2d_weight(self, &call->param[0]);
    CO_TRY(onednn_convert(&weight, base, program, onednn_chosen(pd, DNNL_ARG_WEIGHTS)));
    {
        const onednn_arg arg[] = {{DNNL_ARG_DIFF_DST, &diff_dst},
                                  {DNNL_ARG_WEIGHTS, &weight},
                                  {DNNL_ARG_DIFF_SRC, &diff_src}};

        return onednn_add_step(base, program, ONEDNN_ALWAYS, pd, arg, 3);
    }
}

static co_status conv2d_plan_backward(co_call *call)
{
    conv2d *self = call->self;

    (void)onednn_use_threads(call);
    CO_TRY(conv2d_plan_backward_weights(self, call));
    return call->grad_in[0] ? conv2d_plan_backward_data(self, call) : CO_OK;
}

static co_status conv2d_backward(co_call *call, const co_run *run)
{
    const conv2d *self = call->self;

    if (self->trimmed && !run->accumulate)
        memset(call->grad_param[0].data, 0, call->grad_param[0].bytes);
    return onednn_backward(call, run);
}

const co_kernel co_onednn_conv2d = {
    .op = "conv2d",
    .reads = ONEDNN_READS,
    .self_size = sizeof(conv2d),
    .half = ONEDNN_HALF,
    .supports = onednn_multiplies,
    .plan = conv2d_plan,
    .plan_backward = conv2d_plan_backward,
    .bind = onednn_bind,
    .forward = onednn_forward,
    .backward = conv2d_backward,
    .fini = onednn_fini,
};
