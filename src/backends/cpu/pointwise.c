/*
 * pointwise.c - relu, gelu, tanh, scale, add and log_softmax, and flatten, which has no work but to
 * change a layout.
 */
#include "kernels/pointwise/pointwise.h"
#include "backends/cpu/cpu.h"
#include "core/parallel.h"
#include "kernels/gelu/gelu.h"
#include "kernels/softmax/softmax.h"

#define POINTWISE_PIECE (1 << 16) /* bytes that a thread takes at once */

static const pointwise_loops *pointwise_find_loops(const co_tensor *tensor)
{
#ifdef CO_KERNELS_X86
    if (tensor->dtype == CO_BF16)
        return &pointwise_loops_bf16;
#else
    (void)tensor;
#endif
    return pointwise_choose();
}

/* Numbers of the piece that begins at byte `i`. */
static int64_t pointwise_count(const co_tensor *tensor, size_t i)
{
    const size_t rest = tensor->bytes - i, bytes = rest < POINTWISE_PIECE ? rest : POINTWISE_PIECE;

    return (int64_t)(bytes / co_dtype_size(tensor->dtype));
}

/* --- functions of one input, element by element --- */

typedef struct unary {
    cpu_operand grad_out; /* as the output is */
} unary;

static co_status unary_plan(co_call *call)
{
    cpu_like(call->out[0], call->in[0]);
    return CO_OK;
}

static co_status unary_plan_backward(co_call *call)
{
    unary *self = call->self;
    size_t used = 0;

    if (!call->grad_in[0])
        return CO_OK;
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], call->out[0]->layout);
    cpu_like(call->grad_in[0], call->out[0]);
    return CO_OK;
}

static co_status unary_forward(co_call *call, void (*value)(void *y, const void *x, int64_t n))
{
    const int threads = cpu_threads(call);
    const char *x = call->in[0]->data;
    char *y = call->out[0]->data;

    CO_PARALLEL_FOR(threads)
    for (size_t i = 0; i < call->out[0]->bytes; i += POINTWISE_PIECE)
        value(y + i, x + i, pointwise_count(call->out[0], i));
    return CO_OK;
}

/* `saved`: the input or the output, of which `gradient` is a function. */
static co_status unary_backward(co_call *call, const co_tensor *saved,
                                void (*gradient)(void *dx, const void *s, const void *dy,
                                                 int64_t n))
{
    const unary *self = call->self;
    const int threads = cpu_threads(call);
    const char *s = saved->data, *dy;
    char *dx;

    if (!call->grad_in[0])
        return CO_OK;
    cpu_bring(&self->grad_out, call, threads);
    dy = cpu_address(&self->grad_out, call);
    dx = call->grad_in[0]->data;
    CO_PARALLEL_FOR(threads)
    for (size_t i = 0; i < saved->bytes; i += POINTWISE_PIECE)
        gradient(dx + i, s + i, dy + i, pointwise_count(saved, i));
    return CO_OK;
}

/* Of kernels for floats and BF16. */
static bool unary_supports(const co_call *call, const char **why)
{
    return cpu_takes(call, why) && cpu_reads_layout(call, why);
}

/* --- relu and tanh --- */

/* Their gradients are functions of the output. */
#define POINTWISE_KERNEL(f)                                                                        \
    static co_status f##_forward(co_call *call, const co_run *run)                                 \
    {                                                                                              \
        (void)run;                                                                                 \
        return unary_forward(call, pointwise_find_loops(call->out[0])->f);                         \
    }                                                                                              \
                                                                                                   \
    static co_status f##_backward(co_call *call, const co_run *run)                                \
    {                                                                                              \
        (void)run;                                                                                 \
        return unary_backward(call, call->out[0],                                                  \
                              pointwise_find_loops(call->out[0])->f##_gradient);                   \
    }                                                                                              \
                                                                                                   \
    const co_kernel co_cpu_##f = {                                                                 \
        .op = #f,                                                                                  \
        .name = "any-layout",                                                                      \
        .reads = CPU_READS,                                                                        \
        .self_size = sizeof(unary),                                                                \
        .half = CPU_HALF,                                                                          \
        .supports = unary_supports,                                                                \
        .plan = unary_plan,                                                                        \
        .plan_backward = unary_plan_backward,                                                      \
        .forward = f##_forward,                                                                    \
        .backward = f##_backward,                                                                  \
        .in_place = true,                                                                          \
    }

POINTWISE_KERNEL(relu);
POINTWISE_KERNEL(tanh);

/* --- gelu --- */

static bool gelu_by_tanh(const co_call *call)
{
    return ((const co_gelu_attr *)call->attr)->approximate == CO_GELU_TANH;
}

static const gelu_loops *gelu_find_loops(const co_call *call)
{
#ifdef CO_KERNELS_X86
    if (call->in[0]->dtype == CO_BF16)
        return &gelu_loops_bf16;
#else
    (void)call;
#endif
    return KERNELS_CHOOSE(gelu_loops, &gelu_loops_basic);
}

static co_status gelu_forward(co_call *call, const co_run *run)
{
    const gelu_loops *loops = gelu_find_loops(call);

    (void)run;
    return unary_forward(call, gelu_by_tanh(call) ? loops->tanh : loops->exact);
}

static co_status gelu_backward(co_call *call, const co_run *run)
{
    const gelu_loops *loops = gelu_find_loops(call);

    (void)run;
    return unary_backward(call, call->in[0],
                          gelu_by_tanh(call) ? loops->tanh_gradient : loops->exact_gradient);
}

const co_kernel co_cpu_gelu = {
    .op = "gelu",
    .name = "any-layout",
    .reads = CPU_READS,
    .self_size = sizeof(unary),
    .half = CPU_HALF,
    .supports = unary_supports,
    .plan = unary_plan,
    .plan_backward = unary_plan_backward,
    .forward = gelu_forward,
    .backward = gelu_backward,
};

/* --- scale --- */

/* The gradient keeps its layout: nothing else is read. */
static co_status scale_plan_backward(co_call *call)
{
    if (call->grad_in[0])
        cpu_like(call->grad_in[0], call->grad_out[0]);
    return CO_OK;
}

static void scale_run(const co_tensor *to, const co_tensor *from, const co_call *call)
{
    const double factor = ((const co_scale_attr *)call->attr)->factor;
    const pointwise_loops *loops = pointwise_find_loops(to);
    const int threads = cpu_threads(call);
    const char *x = from->data;
    char *y = to->data;

    CO_PARALLEL_FOR(threads)
    for (size_t i = 0; i < to->bytes; i += POINTWISE_PIECE)
        loops->scale(y + i, x + i, factor, pointwise_count(to, i));
}

static co_status scale_forward(co_call *call, const co_run *run)
{
    (void)run;
    scale_run(call->out[0], call->in[0], call);
    return CO_OK;
}

static co_status scale_backward(co_call *call, const co_run *run)
{
    (void)run;
    if (call->grad_in[0])
        scale_run(call->grad_in[0], call->grad_out[0], call);
    return CO_OK;
}

const co_kernel co_cpu_scale = {
    .op = "scale",
    .name = "any-layout",
    .reads = CPU_READS,
    .half = CPU_HALF,
    .supports = unary_supports,
    .plan = unary_plan,
    .plan_backward = scale_plan_backward,
    .forward = scale_forward,
    .backward = scale_backward,
    .in_place = true,
};

/* --- add --- */

typedef struct add {
    cpu_operand addend[2]; /* as the output is */
} add;

/* The result is in blocks if one of the inputs is. */
static co_status add_plan(co_call *call)
{
    add *self = call->self;
    size_t used = 0;

    cpu_like(call->out[0], call->in[call->in[0]->layout.format == CO_FORMAT_PLAIN]);
    for (int i = 0; i < 2; i++)
        self->addend[i] = cpu_plan_operand(call, &used, call->in[i], call->out[0]->layout);
    return CO_OK;
}

static co_status add_plan_backward(co_call *call)
{
    for (int i = 0; i < 2; i++)
        if (call->grad_in[i])
            cpu_like(call->grad_in[i], call->grad_out[0]);
    return CO_OK;
}

static co_status add_forward(co_call *call, const co_run *run)
{
    const add *self = call->self;
    const pointwise_loops *loops = pointwise_find_loops(call->out[0]);
    const int threads = cpu_threads(call);
    const char *a = cpu_address(&self->addend[0], call), *b = cpu_address(&self->addend[1], call);
    char *y = call->out[0]->data;

    (void)run;
    for (int i = 0; i < 2; i++)
        cpu_bring(&self->addend[i], call, threads);
    CO_PARALLEL_FOR(threads)
    for (size_t i = 0; i < call->out[0]->bytes; i += POINTWISE_PIECE)
        loops->add(y + i, a + i, b + i, pointwise_count(call->out[0], i));
    return CO_OK;
}

const co_kernel co_cpu_add = {
    .op = "add",
    .name = "any-layout",
    .reads = CPU_READS,
    .self_size = sizeof(add),
    .half = CPU_HALF,
    .supports = cpu_takes,
    .plan = add_plan,
    .plan_backward = add_plan_backward,
    .forward = add_forward,
    .backward = co_copy_backward,
    .in_place = true,
};

/* --- flatten --- */

typedef struct flatten {
    cpu_operand grad_out; /* plain */
} flatten;

/* The gradient gets the layout of the input, in which the layers before compute. */
static co_status flatten_plan_backward(co_call *call)
{
    flatten *self = call->self;
    size_t used = 0;

    if (!call->grad_in[0])
        return CO_OK;
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], cpu_plain());
    cpu_like(call->grad_in[0], call->in[0]);
    return CO_OK;
}

static void flatten_move(const co_tensor *to, const co_tensor *from, int threads)
{
    if (co_layout_same(&to->layout, &from->layout))
        co_copy_tensor(to, from);
    else
        cpu_reorder(to->data, to->layout, from, threads);
}

static co_status flatten_forward(co_call *call, const co_run *run)
{
    (void)run;
    flatten_move(call->out[0], call->in[0], cpu_threads(call));
    return CO_OK;
}

static co_status flatten_backward(co_call *call, const co_run *run)
{
    const flatten *self = call->self;
    co_tensor image;

    (void)run;
    if (!call->grad_in[0])
        return CO_OK;
    cpu_bring(&self->grad_out, call, cpu_threads(call));
    image = *call->grad_in[0];
    image.layout = cpu_plain();
    image.data = (void *)cpu_address(&self->grad_out, call);
    flatten_move(call->grad_in[0], &image, cpu_threads(call));
    return CO_OK;
}

const co_kernel co_cpu_flatten = {
    .op = "flatten",
    .name = "any-layout",
    .reads = CPU_READS,
    .self_size = sizeof(flatten),
    .half = 1u << CO_BF16 | 1u << CO_F16,
    .supports = cpu_reads_layout,
    .plan_backward = flatten_plan_backward,
    .forward = flatten_forward,
    .backward = flatten_backward,
    .in_place = true,
};

/* --- log_softmax --- */

static co_status log_softmax_forward(co_call *call, const co_run *run)
{
    const softmax_loops *loops = softmax_choose();
    const int64_t *dim = call->in[0]->shape.dim;
    const int threads = cpu_threads(call);
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;

    (void)run;
    CO_PARALLEL_FOR(threads)
    for (int64_t n = 0; n < dim[0]; n++)
        loops->log_softmax(y + n * dim[1], x + n * dim[1], dim[1]);
    return CO_OK;
}

static co_status log_softmax_backward(co_call *call, const co_run *run)
{
    const softmax_loops *loops = softmax_choose();
    const int64_t *dim = call->out[0]->shape.dim;
    const int threads = cpu_threads(call);
    const float *y = call->out[0]->data, *dy = call->grad_out[0]->data;
    float *dx;

    (void)run;
    if (!call->grad_in[0])
        return CO_OK;
    dx = call->grad_in[0]->data;
    CO_PARALLEL_FOR(threads)
    for (int64_t n = 0; n < dim[0]; n++)
        loops->log_softmax_gradient(dx + n * dim[1], y + n * dim[1], dy + n * dim[1], dim[1]);
    return CO_OK;
}

const co_kernel co_cpu_log_softmax = {
    .op = "log_softmax",
    .name = "rows",
    .supports = cpu_takes_floats,
    .forward = log_softmax_forward,
    .backward = log_softmax_backward,
    .in_place = true,
};
