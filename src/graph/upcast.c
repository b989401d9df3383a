/*
 * upcast.c - upcast: an fp32 kernel run on 16-bit tensors.
 *
 * Inputs are widened into scratch memory, the kernel runs there, and its results are rounded: any
 * kernel of any backend serves, in whatever layout it likes. So every op has every type on every
 * CPU, and what it gives is the definition for kernels that compute with 16 bits themselves.
 * Independent of ops, backends and layouts.
 */
#include "core/half.h"
#include "device/device.h"
#include "graph/plan_internal.h"

#define WIDE_ALIGN 64
#define WIDE_MAX   (2 * (CO_OP_MAX_IN + CO_OP_MAX_OUT) + CO_OP_MAX_PARAM)

struct plan_upcast {
    co_call inner; /* in floats */
    co_tensor in[CO_OP_MAX_IN], out[CO_OP_MAX_OUT];
    co_tensor grad_in[CO_OP_MAX_IN], grad_out[CO_OP_MAX_OUT];
    co_dtype low;
    plan_convert_fn convert;
    const co_vector_ops *vector; /* of a device; NULL: the host */
    int n_place;
    struct {
        co_tensor *tensor;
        size_t offset; /* in scratch memory, after the kernel's own */
    } place[WIDE_MAX];
};

/* ---- while a plan chooses kernels ---- */

static co_dtype upcast_low(const co_call *call)
{
    co_dtype low = CO_F32;

    for (int i = 0; i < call->n_in; i++)
        low = co_dtype_is_half(call->in[i]->dtype) ? call->in[i]->dtype : low;
    for (int i = 0; i < call->n_out; i++)
        low = co_dtype_is_half(call->out[i]->dtype) ? call->out[i]->dtype : low;
    return low;
}

bool plan_is_half(const co_call *call)
{
    return upcast_low(call) != CO_F32;
}

bool plan_kernel_takes(const co_kernel *kernel, const co_call *call)
{
    const co_dtype low = upcast_low(call);
    const bool rounds = call->in[0]->dtype == CO_F32 && co_dtype_is_half(call->out[0]->dtype);

    return low == CO_F32 || ((rounds ? kernel->rounds : kernel->half) >> low & 1);
}

/* The tensor that the kernel sees for `tensor`: `own`, or that one itself. */
static co_tensor *upcast_see(co_tensor *own, co_tensor *tensor)
{
    if (!tensor || !co_dtype_is_half(tensor->dtype))
        return tensor;
    *own = *tensor;
    own->dtype = CO_F32;
    own->bytes = tensor->bytes * sizeof(float) / co_dtype_size(tensor->dtype);
    return own;
}

co_status plan_upcast_prepare(plan_call *pc, co_plan *plan)
{
    const co_call *call = &pc->call;
    plan_upcast *w = co_arena_alloc(plan->arena, 1, sizeof(*w));

    pc->upcast = w;
    if (!w)
        return CO_E_NOMEM;
    w->inner = *call;
    w->low = upcast_low(call);
    w->convert = plan_find_convert(plan->store, &plan->options);
    w->vector = co_device_is_host(plan->store->device) ? NULL : plan->store->vector;
    w->inner.round_params = 0; /* they come rounded */
    for (int i = 0; i < call->n_in; i++)
        w->inner.in[i] = upcast_see(&w->in[i], call->in[i]);
    for (int i = 0; i < call->n_out; i++)
        w->inner.out[i] = upcast_see(&w->out[i], call->out[i]);
    return CO_OK;
}

co_call *plan_upcast_call(plan_upcast *upcast)
{
    return &upcast->inner;
}

co_status plan_upcast_use(plan_call *pc, co_plan *plan, const co_kernel *kernel)
{
    plan_upcast *w = pc->upcast;

    w->inner.kernel = kernel;
    w->inner.self = co_arena_alloc(plan->arena, 1, kernel->self_size ? kernel->self_size : 1);
    return w->inner.self ? CO_OK : CO_E_NOMEM;
}

/* ---- the life of a kernel ---- */

/* What the kernel has settled on holds for the 16-bit tensor too. */
static void upcast_adopt(co_tensor *tensor, const co_tensor *own)
{
    if (!tensor || tensor == own)
        return;
    tensor->layout = own->layout;
    tensor->bytes = own->bytes / sizeof(float) * co_dtype_size(tensor->dtype);
}

static void upcast_lay(plan_upcast *w, size_t *at, co_tensor *tensor)
{
    w->place[w->n_place].tensor = tensor;
    w->place[w->n_place++].offset = *at;
    *at += (tensor->bytes + WIDE_ALIGN - 1) / WIDE_ALIGN * WIDE_ALIGN;
}

/* Everything in a place of its own; called again when the backward pass has been planned. */
static void upcast_lay_out(plan_upcast *w, co_call *call)
{
    size_t at = (w->inner.scratch_bytes + WIDE_ALIGN - 1) / WIDE_ALIGN * WIDE_ALIGN;

    w->n_place = 0;
    for (int i = 0; i < call->n_param; i++)
        if (call->round_params >> i & 1)
            upcast_lay(w, &at, &w->inner.param[i]);
    for (int i = 0; i < call->n_in; i++) {
        if (w->inner.in[i] == &w->in[i])
            upcast_lay(w, &at, &w->in[i]);
        if (w->inner.grad_in[i] && w->inner.grad_in[i] == &w->grad_in[i])
            upcast_lay(w, &at, &w->grad_in[i]);
    }
    for (int i = 0; i < call->n_out; i++) {
        if (w->inner.out[i] == &w->out[i])
            upcast_lay(w, &at, &w->out[i]);
        if (w->inner.grad_out[i] && w->inner.grad_out[i] == &w->grad_out[i])
            upcast_lay(w, &at, &w->grad_out[i]);
    }
    call->scratch_bytes = at;
    call->thread_scratch_bytes = w->inner.thread_scratch_bytes;
}

static co_status upcast_plan(co_call *call)
{
    plan_upcast *w = call->self;

    for (int i = 0; i < call->n_in; i++) /* unpacked since plan_upcast_prepare, perhaps */
        w->inner.in[i] = upcast_see(&w->in[i], call->in[i]);
    for (int i = 0; i < call->n_out; i++) /* of another shape, perhaps, with ops fused */
        w->inner.out[i] = upcast_see(&w->out[i], call->out[i]);
    if (w->inner.kernel->plan)
        CO_TRY(w->inner.kernel->plan(&w->inner));
    for (int i = 0; i < call->n_out; i++)
        upcast_adopt(call->out[i], w->inner.out[i]);
    call->workspace_bytes = w->inner.workspace_bytes;
    upcast_lay_out(w, call);
    return CO_OK;
}

static co_status upcast_plan_backward(co_call *call)
{
    plan_upcast *w = call->self;

    if (!w->inner.kernel->backward)
        return co_fail(CO_E_UNSUPPORTED, "layer %s: the kernel of %s has no backward", call->name,
                       call->op->name);
    for (int i = 0; i < call->n_in; i++)
        w->inner.grad_in[i] = upcast_see(&w->grad_in[i], call->grad_in[i]);
    for (int i = 0; i < call->n_out; i++)
        w->inner.grad_out[i] = upcast_see(&w->grad_out[i], call->grad_out[i]);
    if (w->inner.kernel->plan_backward)
        CO_TRY(w->inner.kernel->plan_backward(&w->inner));
    for (int i = 0; i < call->n_in; i++)
        upcast_adopt(call->grad_in[i], w->inner.grad_in[i]);
    upcast_lay_out(w, call);
    return CO_OK;
}

static co_status upcast_bind(co_call *call)
{
    plan_upcast *w = call->self;

    w->inner.workspace = call->workspace;
    w->inner.scratch = call->scratch;
    w->inner.thread_scratch = call->thread_scratch;
    w->inner.thread_scratch_step = call->thread_scratch_step;
    for (int i = 0; i < w->n_place; i++)
        w->place[i].tensor->data = (char *)call->scratch + w->place[i].offset;
    return w->inner.kernel->bind ? w->inner.kernel->bind(&w->inner) : CO_OK;
}

static void upcast_round_params(const plan_upcast *w, const co_call *call)
{
    for (int i = 0; i < call->n_param; i++) {
        const size_t n = call->param[i].bytes / sizeof(float);
        float *to = w->inner.param[i].data;

        if (!(call->round_params >> i & 1))
            continue;
        if (w->vector) {
            w->vector->copy(call->queue, to, call->param[i].data, n);
            w->vector->round_nearest(call->queue, to, n, w->low);
        } else {
            co_half_nearest(to, call->param[i].data, n, w->low);
        }
    }
}

static co_status upcast_bring(const plan_upcast *w, co_tensor *to, const co_tensor *from)
{
    return to && to != from ? plan_convert(w->convert, w->inner.queue, to, from) : CO_OK;
}

static co_status upcast_forward(co_call *call, const co_run *run)
{
    plan_upcast *w = call->self;

    upcast_round_params(w, call);
    for (int i = 0; i < call->n_in; i++)
        CO_TRY(upcast_bring(w, w->inner.in[i], call->in[i]));
    CO_TRY(w->inner.kernel->forward(&w->inner, run));
    for (int i = 0; i < call->n_out; i++)
        CO_TRY(upcast_bring(w, call->out[i], w->inner.out[i]));
    return CO_OK;
}

static co_status upcast_backward(co_call *call, const co_run *run)
{
    plan_upcast *w = call->self;

    upcast_round_params(w, call);
    for (int i = 0; i < call->op->n_in && (call->op->saves & CO_SAVES_IN); i++)
        CO_TRY(upcast_bring(w, w->inner.in[i], call->in[i]));
    for (int i = 0; i < call->n_out; i++) {
        if (call->op->saves & CO_SAVES_OUT)
            CO_TRY(upcast_bring(w, w->inner.out[i], call->out[i]));
        CO_TRY(upcast_bring(w, w->inner.grad_out[i], call->grad_out[i]));
    }
    CO_TRY(w->inner.kernel->backward(&w->inner, run));
    for (int i = 0; i < call->n_in; i++)
        CO_TRY(upcast_bring(w, call->grad_in[i], w->inner.grad_in[i]));
    return CO_OK;
}

static void upcast_fini(co_call *call)
{
    plan_upcast *w = call->self;

    if (w->inner.kernel->fini)
        w->inner.kernel->fini(&w->inner);
}

/* Sources are read into scratch memory before results are written: they may share one place. */
const co_kernel plan_upcast_kernel = {
    .op = "wide",
    .plan = upcast_plan,
    .plan_backward = upcast_plan_backward,
    .bind = upcast_bind,
    .forward = upcast_forward,
    .backward = upcast_backward,
    .fini = upcast_fini,
    .in_place = true,
};
