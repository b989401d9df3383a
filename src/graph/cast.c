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

void plan_convert(co_tensor *to, const co_tensor *from)
{
    const size_t n = from->bytes / co_dtype_size(from->dtype);

    if (co_dtype_is_half(from->dtype))
        co_half_widen(to->data, from->data, n, from->dtype);
    else
        co_half_round(to->data, from->data, n, to->dtype);
}

static co_status cast_forward(co_call *call, const co_run *run)
{
    (void)run;
    plan_convert(call->out[0], call->in[0]);
    return CO_OK;
}

static const co_kernel cast_kernel = {
    .op = "cast", .plan = cast_plan, .forward = cast_forward, .half = 1u << CO_BF16 | 1u << CO_F16};

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
