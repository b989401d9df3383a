/*
 * compile.c - the forward calls of a plan, and which layout each tensor has.
 *
 * Layouts stay as the producer left them; only where the next kernel does not read one does a step
 * unpack the tensor to the plain layout.
 */
#include "graph/plan_internal.h"

#include "core/half.h"
#include "core/mem.h"

static void compile_unpack_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                                const void *attr)
{
    (void)in, (void)out_shape, (void)attr;
    *out = (co_op_work){0, 0, 0};
}

static const co_op compile_unpack_op = {
    .name = "unpack", .n_in = 1, .n_out = 1, .work = compile_unpack_work};

static size_t compile_plain_bytes(const co_tensor *t)
{
    return (size_t)co_shape_count(&t->shape) * co_dtype_size(t->dtype);
}

plan_tensor *plan_new_tensor(co_plan *plan, const co_shape *shape, co_dtype dtype)
{
    plan_tensor *t = co_arena_alloc(plan->arena, 1, sizeof(*t));

    if (!t)
        return NULL;
    t->tensor.shape = *shape;
    t->tensor.shape.dim[0] = plan->options.batch;
    t->tensor.dtype = dtype;
    t->tensor.bytes = compile_plain_bytes(&t->tensor);
    t->block = plan->node_block;
    t->life = t->again = (plan_life){-1, -1};
    t->next = plan->tensors;
    plan->tensors = t;
    return t;
}

co_status plan_add_step(co_plan *plan, plan_call *pc, bool backward, size_t ready_end)
{
    if (plan->n_step == plan->cap_step) {
        int cap = plan->cap_step ? plan->cap_step * 2 : 64;
        plan_step *grown = co_realloc(plan->step, (size_t)cap, sizeof(*grown));

        if (!grown)
            return CO_E_NOMEM;
        plan->step = grown;
        plan->cap_step = cap;
    }
    plan->step[plan->n_step++] = (plan_step){
        .pc = pc, .backward = backward, .ready_end = ready_end, .block = plan->node_block};
    return CO_OK;
}

static co_call compile_describe_call(const co_plan *plan, const co_call *init, const co_tensor *out)
{
    co_call call = *init;

    call.unfused_shape = out->shape;
    call.training = plan->options.training;
    call.threads = plan->options.threads;
    call.direct_convolution = plan->options.direct_convolution;
    call.decode = plan->options.decode;
    call.over_ranks = plan->options.training && plan->options.over_ranks;
    call.queue = plan->store->queue;
    call.n_in = init->op->n_in + plan_count_added(init);
    call.n_out = init->op->n_out;
    return call;
}

static co_status compile_new_call(plan_call **out, co_plan *plan, const co_call *init)
{
    plan_call *pc = co_arena_alloc(plan->arena, 1, sizeof(*pc));

    if (!pc)
        return CO_E_NOMEM;
    pc->call = compile_describe_call(plan, init, init->out[0]);
    pc->next = plan->calls;
    plan->calls = pc;
    *out = pc;
    return CO_OK;
}

/* The kernel is chosen: let it plan, and append its forward step. */
static co_status compile_plan_call(co_plan *plan, plan_call *pc, const co_kernel *kernel)
{
    co_call *call = &pc->call;

    call->kernel = pc->kernel = kernel;
    if (pc->upcast) {
        CO_TRY(plan_upcast_use(pc, plan, kernel));
        call->kernel = kernel = &plan_upcast_kernel;
        call->self = pc->upcast;
    } else {
        call->self = co_arena_alloc(plan->arena, 1, kernel->self_size ? kernel->self_size : 1);
    }
    if (!call->self)
        return CO_E_NOMEM;
    pc->live = true;
    if (kernel->plan)
        CO_TRY(kernel->plan(call));
    if (call->workspace_bytes) {
        const co_shape bytes = {1, {0}};

        pc->workspace = plan_new_tensor(plan, &bytes, CO_U8);
        if (!pc->workspace)
            return CO_E_NOMEM;
        pc->workspace->tensor.bytes = call->workspace_bytes;
    }
    return plan_add_step(plan, pc, false, 0);
}

co_status plan_add_kernel(plan_call **out, co_plan *plan, const co_call *init,
                          const co_kernel *kernel, const co_backend *backend)
{
    const char *why;

    CO_TRY(compile_new_call(out, plan, init));
    (*out)->backend = backend;
    if (!plan_kernel_takes(kernel, &(*out)->call) ||
        !plan_kernel_supports(kernel, &(*out)->call, &why))
        CO_TRY(plan_upcast_prepare(*out, plan));
    return compile_plan_call(plan, *out, kernel);
}

static bool compile_reads(const co_kernel *kernel, const co_backend *backend,
                          const co_layout *layout)
{
    if (layout->format == CO_FORMAT_PLAIN)
        return true;
    return kernel && (kernel->reads & CO_READS(layout->format)) &&
           (layout->format != CO_FORMAT_OPAQUE || layout->owner == backend);
}

/* The first backend, in order of preference, that unpacks the layout. */
static const co_backend *compile_find_unpacker(const co_plan *plan, const co_layout *layout)
{
    const co_backend *const *b = plan->options.backends;

    while (*b && !compile_reads((*b)->unpack, *b, layout))
        b++;
    return *b;
}

co_status plan_make_readable(plan_tensor **tensor, co_plan *plan, const co_kernel *kernel,
                             const co_backend *backend)
{
    co_tensor *from = &(*tensor)->tensor;
    co_call init = {.op = &compile_unpack_op, .name = "unpack", .in = {from}};
    const co_backend *unpacker;
    plan_tensor *to;
    plan_call *pc;

    if (compile_reads(kernel, backend, &from->layout))
        return CO_OK;
    unpacker = compile_find_unpacker(plan, &from->layout);
    if (!unpacker)
        return co_fail(CO_E_UNSUPPORTED, "no backend of this plan reads a layout that one writes");
    to = plan_new_tensor(plan, &from->shape, from->dtype);
    if (!to)
        return CO_E_NOMEM;
    init.out[0] = &to->tensor;
    CO_TRY(plan_add_kernel(&pc, plan, &init, unpacker->unpack, unpacker));
    *tensor = to;
    return CO_OK;
}

/* The same for an input of a node, of which several nodes may need the plain copy. */
static co_status compile_read_input(co_tensor **in, co_plan *plan, const co_kernel *kernel,
                                    const co_backend *backend)
{
    plan_tensor *t = (plan_tensor *)*in;
    int var = -1;

    for (int i = 0; i < plan->graph->n_var && var < 0; i++)
        if (plan->value[i] == t)
            var = i;
    if (var >= 0 && plan->plain[var] && !compile_reads(kernel, backend, &t->tensor.layout)) {
        *in = &plan->plain[var]->tensor;
        return CO_OK;
    }
    CO_TRY(plan_make_readable(&t, plan, kernel, backend));
    if (var >= 0 && *in != &t->tensor)
        plan->plain[var] = t;
    *in = &t->tensor;
    return CO_OK;
}

co_status plan_add_call(plan_call **out, co_plan *plan, const co_call *init)
{
    plan_call *pc;

    CO_TRY(compile_new_call(&pc, plan, init));
    CO_TRY(plan_choose_kernel(pc, plan));
    plan_limit_fusion(plan, pc, pc->kernel);
    for (int i = 0; i < pc->call.n_in; i++)
        CO_TRY(compile_read_input(&pc->call.in[i], plan, pc->kernel, pc->backend));
    CO_TRY(compile_plan_call(plan, pc, pc->kernel));
    *out = pc;
    return CO_OK;
}

/* Parameters and their gradients as views into the flat store. */
static void compile_set_params(co_call *call, const co_plan *plan, const co_node *node)
{
    call->n_param = node->n_param;
    for (int i = 0; i < node->n_param; i++) {
        const co_param *param = &plan->graph->param[node->param[i]];
        co_tensor view = {.shape = param->spec.shape, .dtype = CO_F32};

        view.bytes = compile_plain_bytes(&view);
        call->param[i] = call->grad_param[i] = view;
        call->param[i].data =
            (param->spec.buffer ? plan->store->buffer : plan->store->param) + param->offset;
        if (plan->options.training && !param->spec.buffer)
            call->grad_param[i].data = plan->store->grad + param->offset;
    }
}

/* The node's call with all tensors of numbers of one type, but for losses, for kernels to inspect.
 */
static co_call compile_imagine(co_tensor *room, const co_plan *plan, const co_call *init,
                               co_dtype dtype)
{
    const co_node *node = &plan->graph->node[init->node];
    const co_tensor *out = room + node->op->n_in;
    co_call call = *init;

    for (int i = 0; i < node->op->n_in; i++, room++) {
        *room = plan->value[node->in[i]]->tensor;
        room->dtype = room->dtype == CO_I32 ? CO_I32 : dtype;
        call.in[i] = room;
    }
    for (int i = 0; i < node->op->n_out; i++, room++) {
        *room = (co_tensor){.shape = plan->graph->var[node->out[i]].shape,
                            .dtype = node->op->is_loss ? CO_F32 : dtype};
        room->shape.dim[0] = plan->options.batch;
        call.out[i] = room;
    }
    return compile_describe_call(plan, &call, out);
}

/* Whether tensors of the node stay in fp32 although they could have 16 bits. */
static bool compile_stays_wide(const co_plan *plan, const co_call *init, co_dtype low)
{
    co_tensor narrow_room[CO_OP_MAX_IN + CO_OP_MAX_OUT], wide_room[CO_OP_MAX_IN + CO_OP_MAX_OUT];
    const co_call narrow = compile_imagine(narrow_room, plan, init, low);
    const co_call wide = compile_imagine(wide_room, plan, init, CO_F32);

    return plan_prefers_wide(plan, &narrow, &wide);
}

/* What a node reads its first input as: its own type; but a loss, which is fp32, reads tensors of
   16 bits as they are, with the same result, where its kernel can. */
static co_dtype compile_input_type(const co_plan *plan, const co_call *init, co_dtype dtype)
{
    const co_node *node = &plan->graph->node[init->node];
    co_tensor narrow_room[CO_OP_MAX_IN + CO_OP_MAX_OUT], wide_room[CO_OP_MAX_IN + CO_OP_MAX_OUT];
    const co_dtype is = plan->value[node->in[0]]->tensor.dtype;
    co_call narrow, wide;

    if (!node->op->is_loss || !co_dtype_is_half(is))
        return dtype;
    narrow = compile_imagine(narrow_room, plan, init, is);
    wide = compile_imagine(wide_room, plan, init, dtype);
    return plan_takes_half(plan, &narrow, &wide) ? is : dtype;
}

co_call plan_describe_node(co_dtype *dtype, const co_plan *plan, int index)
{
    const co_node *node = &plan->graph->node[index];
    co_call init = {.op = node->op, .name = node->name, .attr = node->attr};

    *dtype = plan_node_dtype(plan, node);
    init.node = (uint32_t)index;
    compile_set_params(&init, plan, node);
    if (co_dtype_is_half(*dtype) && !plan->options.precision.everything &&
        node->op->precision == CO_PRECISION_LOW && compile_stays_wide(plan, &init, *dtype))
        *dtype = CO_F32;
    init.round_params = plan_rounded_params(plan, node, *dtype);
    return init;
}

/* The node that alone reads what `node` makes; -1: there is none. */
static int compile_find_reader(const co_graph *graph, int node)
{
    const int var = graph->node[node].out[0];

    for (int i = node + 1; i < graph->n_node; i++)
        for (int k = 0; k < graph->node[i].op->n_in; k++)
            if (graph->node[i].in[k] == var)
                return plan_reads_alone(graph, i, var) ? i : -1;
    return -1;
}

/* Whether a node's kernel can round what it makes from floats, of which it has one result. */
static bool compile_rounds(const co_plan *plan, const co_call *init, co_dtype low)
{
    co_tensor room[CO_OP_MAX_IN + CO_OP_MAX_OUT];
    co_call wide;

    if (init->op->n_out != 1 || init->in[0]->dtype != CO_F32 || init->out[0]->dtype != CO_F32)
        return false;
    wide = compile_imagine(room, plan, init, CO_F32);
    return plan_rounds(plan, &wide, low);
}

/* What a node in fp32 makes has 16 bits at once where the one op that reads it would round it, and
   its kernel can do that. The call's inputs and outputs are known. */
static void compile_round_output(co_plan *plan, const co_call *init)
{
    const co_dtype low = plan->options.precision.low;
    const co_op *op;
    co_dtype is;
    int reader;

    if (low == CO_F32 || !compile_rounds(plan, init, low))
        return;
    reader = compile_find_reader(plan->graph, (int)init->node);
    op = reader < 0 ? NULL : plan->graph->node[reader].op;
    if (!op || op->precision != CO_PRECISION_LOW || op->n_in != 1)
        return;
    (void)plan_describe_node(&is, plan, reader);
    if (is != low)
        return;
    init->out[0]->dtype = low;
    init->out[0]->bytes = compile_plain_bytes(init->out[0]);
}

static co_status compile_node(co_plan *plan, int index)
{
    const co_graph *graph = plan->graph;
    const co_node *node = &graph->node[index];
    co_dtype dtype;
    co_call init = plan_describe_node(&dtype, plan, index);

    plan->node_block = node->block;
    for (int i = 0; i < node->op->n_in; i++)
        CO_TRY(plan_cast_input(&init.in[i], plan, node->in[i],
                               i == 0 ? compile_input_type(plan, &init, dtype) : dtype));
    for (int i = 0; i < node->op->n_out; i++) {
        const co_var *var = &graph->var[node->out[i]];
        plan_tensor *t = plan_new_tensor(plan, &var->shape, dtype);

        if (!t)
            return CO_E_NOMEM;
        t->tensor.read = var->read;
        plan->value[node->out[i]] = t;
        init.out[i] = &t->tensor;
    }
    compile_round_output(plan, &init);
    plan_offer_fusion(&init, plan);
    CO_TRY(plan_add_call(&plan->node_call[index], plan, &init));
    plan_settle_fusion(plan, plan->node_call[index]);
    return CO_OK;
}

/* Tensors that the caller accesses between calls are plain and pinned. */
static co_status compile_pin(co_plan *plan, int var)
{
    plan_tensor *t = plan->plain[var] ? plan->plain[var] : plan->value[var];

    CO_TRY(plan_cast(&t, plan, plan->graph->var[var].dtype));
    CO_TRY(plan_make_readable(&t, plan, NULL, NULL));
    plan->plain[var] = t;
    t->pinned = true;
    return CO_OK;
}

co_status plan_compile_forward(co_plan *plan)
{
    const co_graph *graph = plan->graph;
    const bool parts = plan_has_parts(plan);

    for (int i = 0; i < graph->n_input; i++) {
        const int var = graph->input[i].var;
        plan_tensor *t = plan_new_tensor(plan, &graph->var[var].shape, graph->var[var].dtype);

        if (!t)
            return CO_E_NOMEM;
        plan->value[var] = t;
        CO_TRY(compile_pin(plan, var));
    }
    for (int i = 0; i < graph->n_node - (parts ? 2 : 0); i++)
        if (!plan->node_call[i])
            CO_TRY(compile_node(plan, i));
    plan->node_block = 0;
    if (parts)
        CO_TRY(plan_compile_parts(plan));
    else
        CO_TRY(compile_pin(plan, graph->output));
    CO_TRY(compile_pin(plan, graph->loss));
    plan->n_forward = plan->n_step;
    return CO_OK;
}
