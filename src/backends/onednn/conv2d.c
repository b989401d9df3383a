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

/* One of oneDNN's three descriptors of a convolution, for an algorithm; and of the equivalent inner
   product where the taps cover the image. */
typedef struct conv2d_pass {
    dnnl_status_t (*convolution)(dnnl_convolution_desc_t *desc, dnnl_alg_kind_t algorithm,
                                 const conv2d *self, const co_call *call);
    dnnl_status_t (*product)(dnnl_inner_product_desc_t *desc, const conv2d *self,
                             const co_call *call);
} conv2d_pass;

static co_status conv2d_describe(dnnl_primitive_desc_t *out, conv2d *self, const co_call *call,
                                 const conv2d_pass *pass)
{
    dnnl_convolution_desc_t desc;
    dnnl_inner_product_desc_t product;
    const char *why;

    if (self->covers) {
        CO_TRY(onednn_check(pass->product(&product, self, call), call, "describe the layer"));
        return onednn_describe(out, &self->base, &product);
    }
    if (call->in[0]->dtype == CO_F32 && conv2d_suits_winograd(call, &why) &&
        pass->convolution(&desc, dnnl_convolution_winograd, self, call) == dnnl_success &&
        dnnl_primitive_desc_create(out, &desc, self->base.attr, self->base.engine,
                                   self->base.forward_pd) == dnnl_success)
        return CO_OK;
    CO_TRY(onednn_check(pass->convolution(&desc, dnnl_convolution_direct, self, call), call,
                        "describe the layer"));
    return onednn_describe(out, &self->base, &desc);
}

/* An output of one pixel, in the format that the layers around it prefer: rows, but called blocks
   of channels where those are full. */
static dnnl_memory_desc_t conv2d_output(const co_call *call)
{
    const int64_t *dim = call->out[0]->shape.dim;
    const dnnl_memory_desc_t plain = onednn_plain(call->out[0]->dtype, 4, dim);
    dnnl_memory_desc_t md = plain;

    if (dim[1] % CONV2D_BLOCK == 0)
        (void)dnnl_memory_desc_init_by_tag(&md, 4, plain.dims, plain.data_type, dnnl_aBcd16b);
    return md;
}

/* Rows of the output, (N, out). */
static dnnl_memory_desc_t conv2d_rows(const co_call *call)
{
    return onednn_plain(call->out[0]->dtype, 2, call->out[0]->shape.dim);
}

/* The output's gradient in the format that the primitive has chosen. */
static co_status conv2d_read_output(onednn_operand *x, conv2d *self, const_dnnl_primitive_desc_t pd)
{
    const dnnl_memory_desc_t chosen = onednn_chosen(pd, DNNL_ARG_DIFF_DST);
    const dnnl_memory_desc_t own = conv2d_output(self->base.call);

    CO_TRY(onednn_convert(x, &self->base, &self->base.backward, self->covers ? &own : &chosen));
    x->md = chosen;
    return CO_OK;
}

/* The taps that are used, as a part of all. */
static co_status conv2d_weight(onednn_operand *out, const conv2d *self, const co_tensor *tensor)
{
    const int64_t *all = tensor->shape.dim;
    dnnl_dims_t stride;
    int64_t step = 1;

    *out = (onednn_operand){.base = &tensor->data, .offset = (size_t)self->first * sizeof(float)};
    for (int i = self->weight_ndim - 1, k = 3; i >= 0; i--, k--) {
        stride[i] = step;
        step *= k > 0 ? all[k] : self->weight_dim[i];
    }
    return onednn_check(dnnl_memory_desc_init_by_strides(&out->md, self->weight_ndim,
                                                         self->weight_dim, dnnl_f32, stride),
                        self->base.call, "describe the weight");
}

static dnnl_status_t conv2d_init_forward(dnnl_convolution_desc_t *desc, dnnl_alg_kind_t algorithm,
                                         const conv2d *self, const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const dnnl_memory_desc_t src = onednn_any_of(call->in[0]);
    const dnnl_memory_desc_t dst = onednn_any_of(call->out[0]);
    const dnnl_memory_desc_t weight =
        onednn_any(call->in[0]->dtype, self->weight_ndim, self->weight_dim);
    const dnnl_memory_desc_t bias = onednn_plain(CO_F32, 1, &a->out);

    return dnnl_dilated_convolution_forward_desc_init(
        desc, onednn_direction(call), algorithm, &src, &weight, a->bias ? &bias : NULL, &dst,
        self->stride, self->dilation, self->padding, self->behind);
}

static dnnl_status_t conv2d_product_forward(dnnl_inner_product_desc_t *desc, const conv2d *self,
                                            const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const dnnl_memory_desc_t src = onednn_any_of(call->in[0]), dst = conv2d_rows(call);
    const dnnl_memory_desc_t weight =
        onednn_any(call->in[0]->dtype, self->weight_ndim, self->weight_dim);
    const dnnl_memory_desc_t bias = onednn_plain(CO_F32, 1, &a->out);

    return dnnl_inner_product_forward_desc_init(desc, onednn_direction(call), &src, &weight,
                                                a->bias ? &bias : NULL, &dst);
}

static co_status conv2d_plan(co_call *call)
{
    static const conv2d_pass forward = {conv2d_init_forward, conv2d_product_forward};
    const co_conv2d_attr *a = call->attr;
    conv2d *self = call->self;
    onednn_program *program = &self->base.forward;
    onednn_operand src = onednn_tensor(call->in[0]), weight, dst, bias = {0};
    dnnl_memory_desc_t md;

    CO_TRY(onednn_begin(call));
    conv2d_read_attr(self, call);
    CO_TRY(conv2d_describe(&self->base.forward_pd, self, call, &forward));
    dst = (onednn_operand){.base = &call->out[0]->data};
    dst.md = onednn_chosen(self->base.forward_pd, DNNL_ARG_DST);
    md = self->covers ? conv2d_output(call) : dst.md;
    onednn_set_format(call->out[0], &self->base.out, &md);
    md = onednn_chosen(self->base.forward_pd, DNNL_ARG_SRC);
    CO_TRY(onednn_convert(&src, &self->base, program, &md));
    CO_TRY(conv2d_weight(&weight, self, &call->param[0]));
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

/* One of the two ways to return the gradients of the parameters. */
static co_status conv2d_add_backward_weights(conv2d *self, const_dnnl_primitive_desc_t pd,
                                             onednn_when when, const onednn_operand *src)
{
    const co_call *call = self->base.call;
    const co_conv2d_attr *a = call->attr;
    onednn_program *program = &self->base.backward;
    const dnnl_memory_desc_t weight_md = onednn_chosen(pd, DNNL_ARG_DIFF_WEIGHTS);
    const size_t mark = program->scratch;
    onednn_operand weight, weight_store, bias = {0}, bias_store = {0};

    CO_TRY(conv2d_weight(&weight_store, self, &call->grad_param[0]));
    weight = onednn_gradient(&self->base, when, &weight_store, &weight_md);
    if (a->bias) {
        bias_store = onednn_tensor(&call->grad_param[1]);
        bias = onednn_gradient(&self->base, when, &bias_store, &bias_store.md);
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

static dnnl_status_t conv2d_init_weights(dnnl_convolution_desc_t *desc, dnnl_alg_kind_t algorithm,
                                         const conv2d *self, const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const dnnl_memory_desc_t src = onednn_any_of(call->in[0]);
    const dnnl_memory_desc_t dst = onednn_any_of(call->out[0]);
    const dnnl_memory_desc_t weight = onednn_any(CO_F32, self->weight_ndim, self->weight_dim);
    const dnnl_memory_desc_t bias = onednn_plain(CO_F32, 1, &a->out);

    return dnnl_dilated_convolution_backward_weights_desc_init(
        desc, algorithm, &src, &weight, a->bias ? &bias : NULL, &dst, self->stride, self->dilation,
        self->padding, self->behind);
}

static dnnl_status_t conv2d_product_weights(dnnl_inner_product_desc_t *desc, const conv2d *self,
                                            const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const dnnl_memory_desc_t src = onednn_any_of(call->in[0]), dst = conv2d_rows(call);
    const dnnl_memory_desc_t weight = onednn_any(CO_F32, self->weight_ndim, self->weight_dim);
    const dnnl_memory_desc_t bias = onednn_plain(CO_F32, 1, &a->out);

    return dnnl_inner_product_backward_weights_desc_init(desc, &src, &weight,
                                                         a->bias ? &bias : NULL, &dst);
}

static co_status conv2d_plan_backward_weights(conv2d *self, const co_call *call)
{
    static const conv2d_pass weights = {conv2d_init_weights, conv2d_product_weights};
    onednn_operand src = onednn_tensor(call->in[0]);
    dnnl_primitive_desc_t pd = NULL;
    dnnl_memory_desc_t md;
    co_status st;

    CO_TRY(conv2d_describe(&pd, self, call, &weights));
    self->grad_out = onednn_tensor(call->grad_out[0]);
    st = conv2d_read_output(&self->grad_out, self, pd);
    self->grad_out_end = self->base.backward.scratch;
    md = onednn_chosen(pd, DNNL_ARG_SRC);
    if (st == CO_OK)
        st = onednn_convert(&src, &self->base, &self->base.backward, &md);
    if (st == CO_OK)
        st = conv2d_add_backward_weights(self, pd, ONEDNN_OVERWRITE, &src);
    if (st == CO_OK)
        st = conv2d_add_backward_weights(self, pd, ONEDNN_ACCUMULATE, &src);
    dnnl_primitive_desc_destroy(pd);
    return st;
}

static co_status conv2d_add_backward_data(conv2d *self, const_dnnl_primitive_desc_t pd)
{
    const co_call *call = self->base.call;
    onednn_program *program = &self->base.backward;
    onednn_operand diff_dst = self->grad_out, weight, diff_src;
    dnnl_memory_desc_t md = onednn_chosen(pd, DNNL_ARG_DIFF_DST);

    /* The gradients of the weights have been stored by now, and their inputs may be overwritten. */
    program->scratch = self->grad_out_end;
    if (!onednn_same(&diff_dst.md, &md)) {
        program->scratch = 0;
        diff_dst = onednn_tensor(call->grad_out[0]);
        CO_TRY(conv2d_read_output(&diff_dst, self, pd));
    }
    md = onednn_chosen(pd, DNNL_ARG_DIFF_SRC);
    onednn_set_format(call->grad_in[0], &self->base.grad_in, &md);
    diff_src = onednn_tensor(call->grad_in[0]);
    CO_TRY(conv2d_weight(&weight, self, &call->param[0]));
    md = onednn_chosen(pd, DNNL_ARG_WEIGHTS);
    CO_TRY(onednn_convert(&weight, &self->base, program, &md));
    {
        const onednn_arg arg[] = {{DNNL_ARG_DIFF_DST, &diff_dst},
                                  {DNNL_ARG_WEIGHTS, &weight},
                                  {DNNL_ARG_DIFF_SRC, &diff_src}};

        return onednn_add_step(&self->base, program, ONEDNN_ALWAYS, pd, arg, 3);
    }
}

static dnnl_status_t conv2d_init_data(dnnl_convolution_desc_t *desc, dnnl_alg_kind_t algorithm,
                                      const conv2d *self, const co_call *call)
{
    const dnnl_memory_desc_t src = onednn_any_of(call->in[0]);
    const dnnl_memory_desc_t dst = onednn_any_of(call->out[0]);
    const dnnl_memory_desc_t weight =
        onednn_any(call->in[0]->dtype, self->weight_ndim, self->weight_dim);

    return dnnl_dilated_convolution_backward_data_desc_init(desc, algorithm, &src, &weight, &dst,
                                                            self->stride, self->dilation,
                                                            self->padding, self->behind);
}

static dnnl_status_t conv2d_product_data(dnnl_inner_product_desc_t *desc, const conv2d *self,
                                         const co_call *call)
{
    const dnnl_memory_desc_t src = onednn_any_of(call->in[0]), dst = conv2d_rows(call);
    const dnnl_memory_desc_t weight =
        onednn_any(call->in[0]->dtype, self->weight_ndim, self->weight_dim);

    return dnnl_inner_product_backward_data_desc_init(desc, &src, &weight, &dst);
}

static co_status conv2d_plan_backward_data(conv2d *self, const co_call *call)
{
    static const conv2d_pass data = {conv2d_init_data, conv2d_product_data};
    dnnl_primitive_desc_t pd = NULL;
    co_status st;

    CO_TRY(conv2d_describe(&pd, self, call, &data));
    st = conv2d_add_backward_data(self, pd);
    dnnl_primitive_desc_destroy(pd);
    return st;
}

static co_status conv2d_plan_backward(co_call *call)
{
    conv2d *self = call->self;

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
    .supports = onednn_takes,
    .plan = conv2d_plan,
    .plan_backward = conv2d_plan_backward,
    .bind = onednn_bind,
    .forward = onednn_forward,
    .backward = conv2d_backward,
    .fini = onednn_fini,
};
