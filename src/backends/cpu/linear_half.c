/*
 * linear_half.c - linear layers in bf16 by AMX, or by AVX-512 with BF16: products of matrices in
 * blocks, forward and backward, of rows as they are. Weights are rounded as they are packed.
 */
#include "backends/cpu/linear_half.h"
#include "core/isa.h"

/* With fewer rows packing the weight takes longer than the products save. */
#define LINEAR_HALF_ROWS     32
#define LINEAR_HALF_CHANNELS 16
#define LINEAR_HALF_OUTPUTS  32

/* Number of rows, outputs and inputs. */
typedef struct linear_half_size {
    int64_t n, out, in;
} linear_half_size;

static linear_half_size linear_half_measure(const co_call *call)
{
    const int64_t *weight = call->param[0].shape.dim;

    return (linear_half_size){co_shape_count(&call->in[0]->shape) / weight[1], weight[0],
                              weight[1]};
}

/* y = x w' + b */
static product_half linear_half_forward_product(const co_call *call)
{
    const linear_half_size size = linear_half_measure(call);

    return (product_half){.c = call->out[0]->data,
                          .a = {call->in[0]->data, size.n, size.in, false, false},
                          .b = {call->param[0].data, size.out, size.in, false, true},
                          .k = size.in,
                          .half = true,
                          .bias = call->n_param > 1 ? call->param[1].data : NULL};
}

/* dw (+)= dy' x, db (+)= the sums of dy */
static product_half linear_half_weight_product(const co_call *call, bool add)
{
    const linear_half_size size = linear_half_measure(call);

    return (product_half){.c = call->grad_param[0].data,
                          .a = {call->grad_out[0]->data, size.out, size.out, true, false},
                          .b = {call->in[0]->data, size.in, size.in, true, false},
                          .k = size.n,
                          .add = add,
                          .sums = call->n_param > 1 ? call->grad_param[1].data : NULL,
                          .add_sums = add};
}

/* dx = dy w */
static product_half linear_half_input_product(const co_call *call)
{
    const linear_half_size size = linear_half_measure(call);

    return (product_half){.c = call->grad_in[0]->data,
                          .a = {call->grad_out[0]->data, size.n, size.out, false, false},
                          .b = {call->param[0].data, size.in, size.in, true, true},
                          .k = size.out,
                          .half = true};
}

/* --- the kernel --- */

static void linear_half_need(co_call *call, product_half *p)
{
    const linear_half *self = call->self;

    p->loops = self->loops;
    cpu_need_scratch(call, product_half_room_bytes(p), product_half_own_bytes(p));
}

co_status linear_half_plan_with(co_call *call, const gemm_half_loops *loops)
{
    linear_half *self = call->self;
    product_half y = linear_half_forward_product(call);

    self->loops = loops;
    linear_half_need(call, &y);
    return CO_OK;
}

co_status linear_half_plan_backward(co_call *call)
{
    product_half dw = linear_half_weight_product(call, false);

    linear_half_need(call, &dw);
    if (call->grad_in[0]) {
        product_half dx = linear_half_input_product(call);

        linear_half_need(call, &dx);
    }
    return CO_OK;
}

static void linear_half_multiply(const co_call *call, product_half *p)
{
    const linear_half *self = call->self;

    p->loops = self->loops;
    p->threads = cpu_threads(call);
    product_half_run(p, call->scratch, call->thread_scratch, call->thread_scratch_step);
}

co_status linear_half_forward(co_call *call, const co_run *run)
{
    product_half y = linear_half_forward_product(call);

    (void)run;
    linear_half_multiply(call, &y);
    return CO_OK;
}

co_status linear_half_backward(co_call *call, const co_run *run)
{
    product_half dw = linear_half_weight_product(call, run->accumulate);

    linear_half_multiply(call, &dw);
    if (call->grad_in[0]) {
        product_half dx = linear_half_input_product(call);

        linear_half_multiply(call, &dx);
    }
    return CO_OK;
}

static co_status linear_half_plan(co_call *call)
{
    return linear_half_plan_with(call, product_half_choose());
}

static bool linear_half_supports(const co_call *call, const char **why)
{
    const linear_half_size size = linear_half_measure(call);

    *why = "its tensors are not bf16";
    if (call->in[0]->dtype != CO_BF16 || call->out[0]->dtype != CO_BF16)
        return false;
    *why = "its rows are few or short";
    if (size.n < LINEAR_HALF_ROWS || size.in < LINEAR_HALF_CHANNELS ||
        size.out < LINEAR_HALF_OUTPUTS)
        return false;
    return cpu_takes(call, why);
}

static bool linear_amx_supports(const co_call *call, const char **why)
{
    *why = "this CPU has no AMX";
    if (!co_isa_has(CO_ISA_AMX))
        return false;
    *why = "its weight is large, and read for few samples";
    if (co_cpu_linear.prefers_fp32(call))
        return false;
    return linear_half_supports(call, why);
}

/* The kernel has two places in the order: before oneDNN's with AMX, */
const co_kernel co_cpu_linear_amx = {
    .op = "linear",
    .name = "amx",
    .self_size = sizeof(linear_half),
    .half = CPU_HALF,
    .supports = linear_amx_supports,
    .plan = linear_half_plan,
    .plan_backward = linear_half_plan_backward,
    .forward = linear_half_forward,
    .backward = linear_half_backward,
};

/* and after them. */
const co_kernel co_cpu_linear_half = {
    .op = "linear",
    .name = "bf16",
    .self_size = sizeof(linear_half),
    .half = CPU_HALF,
    .supports = linear_half_supports,
    .plan = linear_half_plan,
    .plan_backward = linear_half_plan_backward,
    .forward = linear_half_forward,
    .backward = linear_half_backward,
};
