/*
 * cast.c - which type each tensor of a plan has under mixed precision, and the steps
 * that change it.
 *
 * What an op likes is its own matter (co_op.precision); a plan follows it, or lets everything but
 * the loss be in half precision. A change of type goes element by element and so leaves the layout
 * alone, padding included.
 */
#include "graph/plan_internal.h"

#include "core/half.h"
#include "device/device.h"

static const co_op cast_op = {.name = "cast", .n_in = 1, .n_out = 1};
static const co_backend cast_backend = {.name = "cast", .summary = "changes of type"};

static co_status cast_plan(co_call *call)
{
    const co_tensor *from = call->in[0];
    co_tensor *to = call->out[0];

    to->layout = from->layout;
    to->bytes = from->bytes / co_dtype_size(from->dtype) * co_dtype_size(to->dtype);
    return CO_OK;
}

static co_status cast_on_host(co_queue *queue, void *to, co_dtype to_type, const void *from,
                              co_dtype from_type, size_t n)
{
    (void)queue;
    if (co_dtype_is_half(from_type))
        co_half_widen(to, from, n, from_type);
    else
        co_half_round(to, from, n, to_type);
    return CO_OK;
}

plan_convert_fn plan_find_convert(const co_store *store, const co_plan_options *options)
{
    for (const co_backend *const *b = options->backends; *b; b++)
        if ((*b)->convert)
            return (*b)->convert;
    return co_device_is_host(store->device) ? cast_on_host : NULL;
}

co_status plan_convert(plan_convert_fn convert, co_queue *queue, co_tensor *to,
                       const co_tensor *from)
{
    return convert(queue, to->data, to->dtype, from->data, from->dtype,
                   from->bytes / co_dtype_size(from->dtype));
}

/* The kernel's own. */
typedef struct cast_self {
    plan_convert_fn convert;
} cast_self;

static co_status cast_forward(co_call *call, const co_run *run)
{
    const cast_self *self = call->self;

    (void)run;
    return plan_convert(self->convert, call->queue, call->out[0], call->in[0]);
}

#define CAST_HALF (1u << CO_BF16 | 1u << CO_F16)

static const co_kernel cast_kernel = {.op = "cast",
                                      .self_size = sizeof(cast_self),
                                      .plan = cast_plan,
                                      .forward = cast_forward,
                                      .half = CAST_HALF,
                                      .rounds = CAST_HALF};

co_status plan_cast(plan_tensor **tensor, co_plan *plan, co_dtype dtype)
{
    co_tensor *from = &(*tensor)->tensor;
    co_call init = {.op = &cast_op, .name = "cast", .in = {from}};
    plan_tensor *to;
    plan_call *pc;

    if (from->dtype == dtype)
        return CO_OK;
    to = plan_new_tensor(plan, &from->shape, dtype);
    if (!to)
        return CO_E_NOMEM;
    init.out[0] = &to->tensor;
    CO_TRY(plan_add_kernel(&pc, plan, &init, &cast_kernel, &cast_backend));
    ((cast_self *)pc->call.self)->convert = plan_find_convert(plan->store, &plan->options);
    *tensor = to;
    return CO_OK;
}

static bool cast_is_float(co_dtype dtype)
{
    return dtype == CO_F32 || co_dtype_is_half(dtype);
}

co_status plan_cast_input(co_tensor **in, co_plan *plan, int var, co_dtype dtype)
{
    plan_tensor *t = plan->value[var];

    *in = &t->tensor;
    if (!cast_is_float(t->tensor.dtype) || t->tensor.dtype == dtype)
        return CO_OK;
    /* Only two types are ever in play, so a tensor has one other form, made once. */
    if (!plan->cast[var]) {
        CO_TRY(plan_cast(&t, plan, dtype));
        plan->cast[var] = t;
    }
    *in = &plan->cast[var]->tensor;
    return CO_OK;
}

co_dtype plan_node_dtype(const co_plan *plan, const co_node *node)
{
    const co_plan_precision *precision = &plan->options.precision;

    if (precision->low == CO_F32 || node->op->is_loss)
        return CO_F32;
    if (precision->everything || node->op->precision == CO_PRECISION_LOW)
        return precision->low;
    if (node->op->precision == CO_PRECISION_WIDE)
        return CO_F32;
    for (int i = 0; i < node->op->n_in; i++)
        if (plan->value[node->in[i]]->tensor.dtype == CO_F32)
            return CO_F32;
    return precision->low;
}

unsigned plan_rounded_params(const co_plan *plan, const co_node *node, co_dtype dtype)
{
    unsigned mask = 0;

    if (!co_dtype_is_half(dtype) || (node->op->is_norm && !plan->options.precision.norm_params))
        return 0;
    for (int i = 0; i < node->n_param; i++)
        if (!plan->graph->param[node->param[i]].spec.buffer)
            mask |= 1u << i;
    return mask;
}
