/*
 * dnnl_v2.h - what 3.x calls by these names, in terms of oneDNN 2.x. Only dnnl_api.h includes it.
 *
 * A primitive is described by the operation's own descriptor, which says no more than the arguments
 * of 3.x's function do; where 2.x takes fewer, the others have one possible value.
 */
#ifndef CO_BACKENDS_ONEDNN_DNNL_V2_H
#define CO_BACKENDS_ONEDNN_DNNL_V2_H

#include <oneapi/dnnl/dnnl.h>

typedef const dnnl_memory_desc_t *const_dnnl_memory_desc_t;

/* The primitive of an operation that `st` says has been described. */
static inline dnnl_status_t dnnl_v2_create(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                           dnnl_status_t st, const void *operation,
                                           const_dnnl_primitive_desc_t forward,
                                           const_dnnl_primitive_attr_t attr)
{
    return st == dnnl_success ? dnnl_primitive_desc_create(pd, operation, attr, engine, forward)
                              : st;
}

static inline dnnl_status_t dnnl_convolution_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t weights, const_dnnl_memory_desc_t bias,
    const_dnnl_memory_desc_t dst, const dnnl_dims_t strides, const dnnl_dims_t dilates,
    const dnnl_dims_t before, const dnnl_dims_t after, const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t desc;
    const dnnl_status_t st = dnnl_dilated_convolution_forward_desc_init(
        &desc, prop, alg, src, weights, bias, dst, strides, dilates, before, after);

    return dnnl_v2_create(pd, engine, st, &desc, NULL, attr);
}

static inline dnnl_status_t dnnl_convolution_backward_data_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t diff_src, const_dnnl_memory_desc_t weights,
    const_dnnl_memory_desc_t diff_dst, const dnnl_dims_t strides, const dnnl_dims_t dilates,
    const dnnl_dims_t before, const dnnl_dims_t after, const_dnnl_primitive_desc_t forward,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t desc;
    const dnnl_status_t st = dnnl_dilated_convolution_backward_data_desc_init(
        &desc, alg, diff_src, weights, diff_dst, strides, dilates, before, after);

    return dnnl_v2_create(pd, engine, st, &desc, forward, attr);
}

static inline dnnl_status_t dnnl_convolution_backward_weights_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t diff_weights,
    const_dnnl_memory_desc_t diff_bias, const_dnnl_memory_desc_t diff_dst,
    const dnnl_dims_t strides, const dnnl_dims_t dilates, const dnnl_dims_t before,
    const dnnl_dims_t after, const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
    dnnl_convolution_desc_t desc;
    const dnnl_status_t st = dnnl_dilated_convolution_backward_weights_desc_init(
        &desc, alg, src, diff_weights, diff_bias, diff_dst, strides, dilates, before, after);

    return dnnl_v2_create(pd, engine, st, &desc, forward, attr);
}

static inline dnnl_status_t dnnl_inner_product_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t weights, const_dnnl_memory_desc_t bias,
    const_dnnl_memory_desc_t dst, const_dnnl_primitive_attr_t attr)
{
    dnnl_inner_product_desc_t desc;
    const dnnl_status_t st =
        dnnl_inner_product_forward_desc_init(&desc, prop, src, weights, bias, dst);

    return dnnl_v2_create(pd, engine, st, &desc, NULL, attr);
}

static inline dnnl_status_t dnnl_inner_product_backward_data_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, const_dnnl_memory_desc_t diff_src,
    const_dnnl_memory_desc_t weights, const_dnnl_memory_desc_t diff_dst,
    const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
    dnnl_inner_product_desc_t desc;
    const dnnl_status_t st =
        dnnl_inner_product_backward_data_desc_init(&desc, diff_src, weights, diff_dst);

    return dnnl_v2_create(pd, engine, st, &desc, forward, attr);
}

static inline dnnl_status_t dnnl_inner_product_backward_weights_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, const_dnnl_memory_desc_t src,
    const_dnnl_memory_desc_t diff_weights, const_dnnl_memory_desc_t diff_bias,
    const_dnnl_memory_desc_t diff_dst, const_dnnl_primitive_desc_t forward,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_inner_product_desc_t desc;
    const dnnl_status_t st = dnnl_inner_product_backward_weights_desc_init(&desc, src, diff_weights,
                                                                           diff_bias, diff_dst);

    return dnnl_v2_create(pd, engine, st, &desc, forward, attr);
}

/* 2.x has no dilation here. */
static inline dnnl_status_t dnnl_pooling_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t dst, const dnnl_dims_t strides,
    const dnnl_dims_t kernel, const dnnl_dims_t none, const dnnl_dims_t before,
    const dnnl_dims_t after, const_dnnl_primitive_attr_t attr)
{
    dnnl_pooling_desc_t desc;
    const dnnl_status_t st =
        dnnl_pooling_forward_desc_init(&desc, prop, alg, src, dst, strides, kernel, before, after);

    (void)none;
    return dnnl_v2_create(pd, engine, st, &desc, NULL, attr);
}

static inline dnnl_status_t dnnl_pooling_backward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t diff_src, const_dnnl_memory_desc_t diff_dst, const dnnl_dims_t strides,
    const dnnl_dims_t kernel, const dnnl_dims_t none, const dnnl_dims_t before,
    const dnnl_dims_t after, const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
    dnnl_pooling_desc_t desc;
    const dnnl_status_t st = dnnl_pooling_backward_desc_init(&desc, alg, diff_src, diff_dst,
                                                             strides, kernel, before, after);

    (void)none;
    return dnnl_v2_create(pd, engine, st, &desc, forward, attr);
}

/* Where 2.x takes one descriptor, input and output have the same. */
static inline dnnl_status_t dnnl_eltwise_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t dst, float alpha, float beta,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_eltwise_desc_t desc;
    const dnnl_status_t st = dnnl_eltwise_forward_desc_init(&desc, prop, alg, src, alpha, beta);

    (void)dst;
    return dnnl_v2_create(pd, engine, st, &desc, NULL, attr);
}

static inline dnnl_status_t dnnl_eltwise_backward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t diff_src, const_dnnl_memory_desc_t diff_dst,
    const_dnnl_memory_desc_t data, float alpha, float beta, const_dnnl_primitive_desc_t forward,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_eltwise_desc_t desc;
    const dnnl_status_t st =
        dnnl_eltwise_backward_desc_init(&desc, alg, diff_src, data, alpha, beta);

    (void)diff_dst;
    return dnnl_v2_create(pd, engine, st, &desc, forward, attr);
}

static inline dnnl_status_t dnnl_batch_normalization_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t dst, float epsilon, unsigned flags,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_batch_normalization_desc_t desc;
    const dnnl_status_t st =
        dnnl_batch_normalization_forward_desc_init(&desc, prop, src, epsilon, flags);

    (void)dst;
    return dnnl_v2_create(pd, engine, st, &desc, NULL, attr);
}

static inline dnnl_status_t dnnl_batch_normalization_backward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop,
    const_dnnl_memory_desc_t diff_src, const_dnnl_memory_desc_t diff_dst,
    const_dnnl_memory_desc_t src, float epsilon, unsigned flags,
    const_dnnl_primitive_desc_t forward, const_dnnl_primitive_attr_t attr)
{
    dnnl_batch_normalization_desc_t desc;
    const dnnl_status_t st =
        dnnl_batch_normalization_backward_desc_init(&desc, prop, diff_src, src, epsilon, flags);

    (void)diff_dst;
    return dnnl_v2_create(pd, engine, st, &desc, forward, attr);
}

/* Of the two algorithms, the logarithm is the one that is used here. */
static inline dnnl_status_t dnnl_softmax_forward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_prop_kind_t prop, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t src, const_dnnl_memory_desc_t dst, int axis,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_logsoftmax_desc_t desc;
    const dnnl_status_t st = alg == dnnl_softmax_log
                                 ? dnnl_logsoftmax_forward_desc_init(&desc, prop, src, axis)
                                 : dnnl_unimplemented;

    (void)dst;
    return dnnl_v2_create(pd, engine, st, &desc, NULL, attr);
}

static inline dnnl_status_t dnnl_softmax_backward_primitive_desc_create(
    dnnl_primitive_desc_t *pd, dnnl_engine_t engine, dnnl_alg_kind_t alg,
    const_dnnl_memory_desc_t diff_src, const_dnnl_memory_desc_t diff_dst,
    const_dnnl_memory_desc_t dst, int axis, const_dnnl_primitive_desc_t forward,
    const_dnnl_primitive_attr_t attr)
{
    dnnl_logsoftmax_desc_t desc;
    const dnnl_status_t st = alg == dnnl_softmax_log
                                 ? dnnl_logsoftmax_backward_desc_init(&desc, diff_src, dst, axis)
                                 : dnnl_unimplemented;

    (void)diff_dst;
    return dnnl_v2_create(pd, engine, st, &desc, forward, attr);
}

static inline dnnl_status_t
dnnl_binary_primitive_desc_create(dnnl_primitive_desc_t *pd, dnnl_engine_t engine,
                                  dnnl_alg_kind_t alg, const_dnnl_memory_desc_t a,
                                  const_dnnl_memory_desc_t b, const_dnnl_memory_desc_t dst,
                                  const_dnnl_primitive_attr_t attr)
{
    dnnl_binary_desc_t desc;
    const dnnl_status_t st = dnnl_binary_desc_init(&desc, alg, a, b, dst);

    return dnnl_v2_create(pd, engine, st, &desc, NULL, attr);
}

#endif
