/*
 * convolve_graph.c - convolutions as cuDNN's graphs: one operation, or two with a bias.
 */
#include "device/cuda/convolve_graph.h"

cudnnStatus_t conv_describe(conv_desc *out, const conv_calls *call,
                            cudnnBackendDescriptorType_t type, const conv_attribute *attribute,
                            size_t n)
{
    conv_desc desc = NULL;
    cudnnStatus_t result = call->cudnnBackendCreateDescriptor(type, &desc);

    for (size_t i = 0; i < n && result == CUDNN_STATUS_SUCCESS; i++)
        result = call->cudnnBackendSetAttribute(desc, attribute[i].name, attribute[i].type,
                                                attribute[i].n, attribute[i].value);
    if (result == CUDNN_STATUS_SUCCESS)
        result = call->cudnnBackendFinalize(desc);
    if (result == CUDNN_STATUS_SUCCESS)
        *out = desc;
    else if (desc)
        (void)call->cudnnBackendDestroyDescriptor(desc);
    return result;
}

/* The same for one that the convolution keeps. */
static cudnnStatus_t conv_keep(conv_desc *out, cuda_conv *c, cudnnBackendDescriptorType_t type,
                               const conv_attribute *attribute, size_t n)
{
    const cudnnStatus_t result = conv_describe(out, &c->device->dnn->call, type, attribute, n);

    if (result == CUDNN_STATUS_SUCCESS)
        c->own[c->n_own++] = *out;
    return result;
}

#define CONV_KEEP(out, c, type, attributes)                                                        \
    conv_keep(out, c, type, attributes, sizeof(attributes) / sizeof((attributes)[0]))

/* CONV_SUMS is passed on within the graph. */
static cudnnStatus_t conv_describe_tensor(conv_desc *out, cuda_conv *c, int64_t id,
                                          const int64_t dim[4], co_dtype dtype)
{
    const bool within = id == CONV_SUMS;
    const cudnnDataType_t type = dtype == CO_BF16  ? CUDNN_DATA_BFLOAT16
                                 : dtype == CO_F16 ? CUDNN_DATA_HALF
                                                   : CUDNN_DATA_FLOAT;
    const int64_t stride[] = {dim[1] * dim[2] * dim[3], 1, dim[3] * dim[1], dim[1]};
    const int64_t align = CO_DEVICE_ALIGN;
    const conv_attribute set[] = {{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id},
                                  {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
                                  {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align},
                                  {CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &within},
                                  {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim},
                                  {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride}};

    return CONV_KEEP(out, c, CUDNN_BACKEND_TENSOR_DESCRIPTOR, set);
}

static cudnnStatus_t conv_describe_windows(conv_desc *out, cuda_conv *c)
{
    const cuda_conv_shape *s = &c->shape;
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t dims = 2;
    const conv_attribute set[] = {
        {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, s->padding},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, s->padding},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, s->stride},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, s->dilation}};

    return CONV_KEEP(out, c, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, set);
}

/* The operation of each kind, and its attributes. */
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
} conv_kinds[CUDA_CONV_COUNT] = {
    [CUDA_CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [CUDA_CONV_INPUT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [CUDA_CONV_WEIGHT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static cudnnStatus_t conv_describe_operands(conv_desc out[CONV_OPERANDS], cuda_conv *c)
{
    const cuda_conv_shape *s = &c->shape;
    const int64_t *const dim[] = {s->x, s->w, s->y};
    static const cuda_conv_kind writes[] = {CUDA_CONV_INPUT, CUDA_CONV_WEIGHT, CUDA_CONV_FORWARD};
    cudnnStatus_t result = CUDNN_STATUS_SUCCESS;

    for (int i = 0; i < CONV_OPERANDS && result == CUDNN_STATUS_SUCCESS; i++)
        result =
            conv_describe_tensor(&out[i], c, i + 1, dim[i], s->kind == writes[i] ? s->out : s->in);
    return result;
}

static cudnnStatus_t conv_describe_product(conv_desc *out, cuda_conv *c,
                                           const conv_desc operand[CONV_OPERANDS])
{
    const cuda_conv_kind kind = c->shape.kind;
    const float one = 1, zero = 0;
    conv_desc windows = NULL;
    const conv_attribute set[] = {
        {conv_kinds[kind].x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operand[0]},
        {conv_kinds[kind].w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operand[1]},
        {conv_kinds[kind].y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operand[2]},
        {conv_kinds[kind].conv, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &windows},
        {conv_kinds[kind].alpha, CUDNN_TYPE_FLOAT, 1, &one},
        {conv_kinds[kind].beta, CUDNN_TYPE_FLOAT, 1, &zero}};
    const cudnnStatus_t result = conv_describe_windows(&windows, c);

    return result == CUDNN_STATUS_SUCCESS ? CONV_KEEP(out, c, conv_kinds[kind].type, set) : result;
}

/* `to` = `sums` + one number for each channel; without a rounding between. */
static cudnnStatus_t conv_describe_bias(conv_desc *out, cuda_conv *c, conv_desc sums, conv_desc to)
{
    const cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const int64_t dim[] = {1, c->shape.y[1], 1, 1};
    conv_desc bias = NULL, addition = NULL;
    const conv_attribute of_addition[] = {
        {CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode},
        {CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &type}};
    const conv_attribute set[] = {
        {CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &addition},
        {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &sums},
        {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &bias},
        {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &to}};
    cudnnStatus_t result = conv_describe_tensor(&bias, c, CONV_BIAS, dim, c->shape.bias_type);

    if (result == CUDNN_STATUS_SUCCESS)
        result = CONV_KEEP(&addition, c, CUDNN_BACKEND_POINTWISE_DESCRIPTOR, of_addition);
    if (result == CUDNN_STATUS_SUCCESS)
        result = CONV_KEEP(out, c, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, set);
    return result;
}

cudnnStatus_t conv_describe_graph(conv_desc *out, cuda_conv *c)
{
    conv_desc operand[CONV_OPERANDS] = {NULL}, result_of = NULL, operation[2] = {NULL};
    const conv_attribute set[] = {
        {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &c->device->dnn->handle},
        {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, c->shape.bias ? 2 : 1,
         operation}};
    cudnnStatus_t result = conv_describe_operands(operand, c);

    if (result == CUDNN_STATUS_SUCCESS && c->shape.bias) {
        result_of = operand[2];
        result = conv_describe_tensor(&operand[2], c, CONV_SUMS, c->shape.y, CO_F32);
    }
    if (result == CUDNN_STATUS_SUCCESS)
        result = conv_describe_product(&operation[0], c, operand);
    if (result == CUDNN_STATUS_SUCCESS && c->shape.bias)
        result = conv_describe_bias(&operation[1], c, operand[2], result_of);
    return result == CUDNN_STATUS_SUCCESS
               ? CONV_KEEP(out, c, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, set)
               : result;
}
