/*
 * linear_sequences.c - linear layers over sequences of rows, which are many, and large ones with
 * many samples: products of matrices in blocks, forward and backward.
 */
#include "backends/cpu/cpu.h"
#include "backends/cpu/linear.h"
#include "backends/cpu/product.h"

#define LINEAR_ROWS 32 /* with fewer, packing the weight takes longer than the product saves */

typedef struct linear_sequences {
    const gemm_loops *loops;
    cpu_operand src, back_src, grad_out; /* plain */
    size_t forward_at, backward_at;      /* in scratch */
} linear_sequences;

/* Number of rows, outputs and inputs. */
typedef struct linear_size {
    int64_t n, out, in;
} linear_size;

static linear_size linear_measure(const co_call *call)
{
    const int64_t *weight = call->param[0].shape.dim;

    return (linear_size){co_shape_count(&call->in[0]->shape) / weight[1], weight[0], weight[1]};
}

static bool linear_supports(const co_call *call, const char **why)
{
    const linear_size size = linear_measure(call);

    if (!cpu_takes_floats(call, why))
        return false;
    *why = "its input is no sequence of rows, and its samples or its weight are not worth packing";
    if (call->in[0]->shape.ndim < 3 && !linear_suits_blocks(size.n, size.in, size.out))
        return false;
    *why = "its rows are few";
    if (size.n < LINEAR_ROWS)
        return false;
    *why = KERNELS_LACK;
    return KERNELS_CHOOSE(gemm_loops, NULL) != NULL;
}

static size_t linear_most(size_t a, size_t b)
{
    return a > b ? a : b;
}

static co_status linear_plan(co_call *call)
{
    linear_sequences *self = call->self;
    const linear_size size = linear_measure(call);
    size_t used = 0;

    self->loops = KERNELS_CHOOSE(gemm_loops, NULL);
    self->src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    self->forward_at =
        cpu_take_scratch(call, &used, product_room_bytes(self->loops, size.out, size.in));
    cpu_need_scratch(call, 0, product_own_bytes(self->loops, size.in));
    return CO_OK;
}

static co_status linear_plan_backward(co_call *call)
{
    linear_sequences *self = call->self;
    const linear_size size = linear_measure(call);
    size_t used = 0;

    self->back_src = cpu_plan_operand(call, &used, call->in[0], cpu_plain());
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], cpu_plain());
    self->backward_at =
        cpu_take_scratch(call, &used,
                         linear_most(product_room_bytes(self->loops, size.in, size.n),
                                     product_room_bytes(self->loops, size.in, size.out)));
    cpu_need_scratch(call, 0,
                     linear_most(product_own_bytes(self->loops, size.n),
                                 product_own_bytes(self->loops, size.out)));
    return CO_OK;
}

static void linear_multiply(const co_call *call, product *p, size_t at)
{
    const linear_sequences *self = call->self;

    p->loops = self->loops;
    p->threads = cpu_threads(call);
    product_run(p, (char *)call->scratch + at, call->thread_scratch, call->thread_scratch_step);
}

/* y = x w' + b */
static co_status linear_forward(co_call *call, const co_run *run)
{
    const linear_sequences *self = call->self;
    const linear_size size = linear_measure(call);
    product y = {.c = call->out[0]->data,
                 .b = {call->param[0].data, size.out, size.in, false},
                 .k = size.in,
                 .bias = call->n_param > 1 ? call->param[1].data : NULL};

    (void)run;
    cpu_bring(&self->src, call, cpu_threads(call));
    y.a = (product_side){cpu_address(&self->src, call), size.n, size.in, false};
    linear_multiply(call, &y, self->forward_at);
    return CO_OK;
}

/* dw (+)= dy' x, db (+)= the sums of dy, dx = dy w */
static co_status linear_backward(co_call *call, const co_run *run)
{
    const linear_sequences *self = call->self;
    const linear_size size = linear_measure(call);
    const float *dy;
    product dw = {.c = call->grad_param[0].data,
                  .k = size.n,
                  .add = run->accumulate,
                  .sums = call->n_param > 1 ? call->grad_param[1].data : NULL,
                  .add_sums = run->accumulate};

    cpu_bring(&self->back_src, call, cpu_threads(call));
    cpu_bring(&self->grad_out, call, cpu_threads(call));
    dy = cpu_address(&self->grad_out, call);
    dw.a = (product_side){dy, size.out, size.out, true};
    dw.b = (product_side){cpu_address(&self->back_src, call), size.in, size.in, true};
    linear_multiply(call, &dw, self->backward_at);
    if (call->grad_in[0]) {
        product dx = {.c = call->grad_in[0]->data,
                      .a = {dy, size.n, size.out, false},
                      .b = {call->param[0].data, size.in, size.in, true},
                      .k = size.out};

        linear_multiply(call, &dx, self->backward_at);
    }
    return CO_OK;
}

const co_kernel co_cpu_linear_sequences = {
    .op = "linear",
    .name = "blocks",
    .reads = CPU_READS,
    .self_size = sizeof(linear_sequences),
    .supports = linear_supports,
    .plan = linear_plan,
    .plan_backward = linear_plan_backward,
    .forward = linear_forward,
    .backward = linear_backward,
    .yields_half = true,
};
