/*
 * matmul.c - linear by cuBLASLt (device/cuda/matmul.h), in fp32 and in 16 bits. Weights of 16 bits
 * are rounded in forward, and kept for backward.
 *
 * In 16 bits GELU is applied within the product, if it is the form with tanh: what it is applied to
 * is kept beside the weights. Its gradient is applied within a product, too, where the next layer
 * is of this kernel; else by a kernel of our own. ReLU is not: the library makes 0 of a NaN.
 */
#include "device/cuda/matmul.h"

#include "backends/cuda/cuda.h"
#include "core/half.h"
#include "kernels/cuda/pointwise.h"

typedef enum matmul_product {
    MATMUL_FORWARD, /* y = x W^T + b */
    MATMUL_INPUT,   /* dx = dy W */
    MATMUL_WEIGHT,  /* dW = dy^T x */
    MATMUL_COUNT
} matmul_product;

typedef struct matmul_self {
    cuda_matmul *product[MATMUL_COUNT];
} matmul_self;

static bool matmul_is_half(const co_call *call)
{
    return co_dtype_is_half(call->in[0]->dtype);
}

static cuda_matmul_shape matmul_shape(const co_call *call, matmul_product product)
{
    const cuda_linear_size s = cuda_linear_sizes(call);
    cuda_matmul_shape shape = {.in = call->in[0]->dtype, .out = call->in[0]->dtype};

    if (product == MATMUL_WEIGHT) {
        shape.m = s.out;
        shape.n = s.in;
        shape.k = s.n;
        shape.a_transposed = true;
        shape.out = CO_F32;
    } else {
        shape.m = s.n;
        shape.n = product == MATMUL_FORWARD ? s.out : s.in;
        shape.k = product == MATMUL_FORWARD ? s.in : s.out;
        shape.b_transposed = product == MATMUL_FORWARD;
        shape.bias = product == MATMUL_FORWARD && call->n_param > 1;
    }
    return shape;
}

static bool matmul_supports(const co_call *call, const char **why)
{
    const char *refusal = NULL;

    if (!cuda_fits(call, why))
        return false;
    for (int p = 0; p < (call->training ? MATMUL_COUNT : MATMUL_INPUT) && !refusal; p++) {
        const cuda_matmul_shape shape = matmul_shape(call, (matmul_product)p);

        refusal = cuda_matmul_refuses(call->queue->device, &shape);
    }
    if (refusal)
        *why = refusal;
    return !refusal;
}

static cuda_matmul_shape matmul_shape_with_gelu(const co_call *call, matmul_product product)
{
    cuda_matmul_shape shape = matmul_shape(call, product);

    if (product == MATMUL_FORWARD && call->fused[0])
        shape.gelu = call->training ? CUDA_MATMUL_GELU_KEEP : CUDA_MATMUL_GELU;
    if (product == MATMUL_INPUT && call->chained)
        shape.gelu = CUDA_MATMUL_GELU_GRADIENT;
    return shape;
}

/* In fp32 nobody says how exact the library's tanh is. */
static bool matmul_fuses(const co_call *call)
{
    const co_gelu_attr *gelu = call->fused_attr[0];
    cuda_matmul_shape shape;

    if (call->fused[0] != &co_op_gelu || call->fused[1] || gelu->approximate != CO_GELU_TANH ||
        !matmul_is_half(call))
        return false;
    shape = matmul_shape_with_gelu(call, MATMUL_FORWARD);
    return !cuda_matmul_refuses(call->queue->device, &shape);
}

/* Adds to the scratch memory what the product needs. */
static co_status matmul_plan_product(co_call *call, matmul_product product)
{
    matmul_self *self = call->self;
    const cuda_matmul_shape shape = matmul_shape_with_gelu(call, product);
    size_t workspace;

    CO_TRY(cuda_matmul_create(&self->product[product], call->queue->device, &shape));
    workspace = cuda_matmul_workspace(self->product[product]);
    if (workspace > call->scratch_bytes)
        call->scratch_bytes = workspace;
    return CO_OK;
}

static size_t matmul_rounded_bytes(const co_tensor *tensor)
{
    const size_t bytes = cuda_count_of(tensor) * sizeof(uint16_t);

    return (bytes + CO_DEVICE_ALIGN - 1) / CO_DEVICE_ALIGN * CO_DEVICE_ALIGN;
}

static co_status matmul_plan(co_call *call)
{
    for (int i = 0; i < call->n_param && matmul_is_half(call); i++)
        call->workspace_bytes += matmul_rounded_bytes(&call->param[i]);
    if (call->fused[0] && call->training)
        call->workspace_bytes += matmul_rounded_bytes(call->out[0]);
    return matmul_plan_product(call, MATMUL_FORWARD);
}

/* Whether backward begins with the gradient of GELU. */
static bool matmul_has_own_gradient(const co_call *call)
{
    return call->fused[0] && !call->grad_chained;
}

static co_status matmul_plan_backward(co_call *call)
{
    const cuda_linear_size s = cuda_linear_sizes(call);
    const size_t sums = cuda_sums_room(s.n, s.out, 1) * sizeof(double);

    if (call->n_param > 1 && sums > call->scratch_bytes)
        call->scratch_bytes = sums;
    if (call->chained) {
        const cuda_matmul_shape shape = matmul_shape_with_gelu(call, MATMUL_INPUT);

        if (cuda_matmul_refuses(call->queue->device, &shape))
            call->chained = NULL;
    }
    if (call->grad_in[0])
        CO_TRY(matmul_plan_product(call, MATMUL_INPUT));
    CO_TRY(matmul_plan_product(call, MATMUL_WEIGHT));
    if (matmul_has_own_gradient(call))
        call->scratch_bytes += matmul_rounded_bytes(call->out[0]);
    return CO_OK;
}

/* Parameter `i` as the products take it. */
static void *matmul_param(const co_call *call, int i)
{
    char *rounded = call->workspace;

    if (!matmul_is_half(call))
        return call->param[i].data;
    return i == 0 ? rounded : rounded + matmul_rounded_bytes(&call->param[0]);
}

/* What GELU is applied to. */
static void *matmul_kept(const co_call *call)
{
    char *kept = call->workspace;

    for (int i = 0; i < call->n_param; i++)
        kept += matmul_rounded_bytes(&call->param[i]);
    return kept;
}

static co_status matmul_run(const co_call *call, matmul_product product,
                            const cuda_matmul_operands *operands)
{
    const matmul_self *self = call->self;

    return cuda_matmul_run(self->product[product], call->queue, operands);
}

static co_status matmul_forward(co_call *call, const co_run *run)
{
    const co_dtype dtype = call->in[0]->dtype;
    cuda_matmul_operands o = {
        .d = call->out[0]->data, .a = call->in[0]->data, .workspace = call->scratch};

    (void)run;
    for (int i = 0; i < call->n_param && matmul_is_half(call); i++)
        CO_TRY(co_backend_cuda.convert(call->queue, matmul_param(call, i), dtype,
                                       call->param[i].data, CO_F32,
                                       cuda_count_of(&call->param[i])));
    o.b = matmul_param(call, 0);
    o.bias = call->n_param > 1 ? matmul_param(call, 1) : NULL;
    if (call->fused[0] && call->training)
        o.kept = matmul_kept(call);
    return matmul_run(call, MATMUL_FORWARD, &o);
}

/* The gradient of what GELU was applied to, at `to`. */
static void matmul_gelu_gradient(const co_call *call, void *to)
{
    cuda_pointwise args = {.out = to,
                           .x = call->grad_out[0]->data,
                           .y = matmul_kept(call),
                           .n = cuda_count_of(call->out[0]),
                           .type = cuda_number_of(call->out[0]->dtype),
                           .tanh = true};

    cuda_launch(call->queue, CUDA_pointwise_gelu_backward, CUDA_STEPS(args.n), &args);
}

static co_status matmul_backward(co_call *call, const co_run *run)
{
    const cuda_linear_size s = cuda_linear_sizes(call);
    char *scratch = call->scratch;
    cuda_matmul_operands o = {.a = call->grad_out[0]->data};

    if (matmul_has_own_gradient(call)) {
        matmul_gelu_gradient(call, scratch);
        o.a = scratch;
        scratch += matmul_rounded_bytes(call->out[0]);
    }
    o.workspace = scratch;
    if (call->grad_in[0]) {
        o.d = call->grad_in[0]->data;
        o.b = matmul_param(call, 0);
        o.kept = call->chained ? matmul_kept(call->chained) : NULL;
        CO_TRY(matmul_run(call, MATMUL_INPUT, &o));
    }
    o.d = call->grad_param[0].data;
    o.b = call->in[0]->data;
    o.accumulate = run->accumulate;
    CO_TRY(matmul_run(call, MATMUL_WEIGHT, &o));
    cuda_sum_bias(call, run, (cuda_extent){s.n, s.out, 1}, o.a, scratch);
    return CO_OK;
}

static void matmul_fini(co_call *call)
{
    matmul_self *self = call->self;

    for (int p = 0; p < MATMUL_COUNT; p++)
        cuda_matmul_destroy(self->product[p]);
}

const co_kernel co_cuda_linear_cublaslt = {.op = "linear",
                                           .name = "cublaslt",
                                           .self_size = sizeof(matmul_self),
                                           .supports = matmul_supports,
                                           .chains = true,
                                           .fuses = matmul_fuses,
                                           .plan = matmul_plan,
                                           .plan_backward = matmul_plan_backward,
                                           .forward = matmul_forward,
                                           .backward = matmul_backward,
                                           .fini = matmul_fini,
                                           .half = 1u << CO_BF16 | 1u << CO_F16};
