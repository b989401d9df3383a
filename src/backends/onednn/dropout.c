/*
 * dropout.c - drop random elements (dropout) or whole channels (dropout2d), with the random
 * numbers of ops.h, in place of the tensor's layout.
 *
 * oneDNN has no dropout. Its layouts of images differ in where channels lie, which is all that
 * the loops here have to know.
 */
#include <string.h>

#include "backends/onednn/onednn.h"
#include "core/rng.h"

/* Element (n, c, s), s = place in the (H, W) plane, lies at
   n * sample + c / block * group + c % block + s * pixel. */
typedef struct dropout_place {
    int64_t n, c, plane;
    int64_t block, sample, group, pixel;
} dropout_place;

static dropout_place dropout_find_place(const dnnl_memory_desc_t *md)
{
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;
    const bool image = md->ndims == 4;

    return (dropout_place){
        .n = md->dims[0],
        .c = md->dims[1],
        .plane = image ? md->dims[2] * md->dims[3] : 1,
        .block = b->inner_nblks ? b->inner_blks[0] : 1,
        .sample = b->strides[0],
        .group = b->strides[1],
        .pixel = image ? b->strides[3] : 1,
    };
}

static bool dropout_knows(const dnnl_memory_desc_t *md)
{
    const dnnl_blocking_desc_t *b = &md->format_desc.blocking;

    if (md->format_kind != dnnl_blocked || b->inner_nblks > 1 || md->offset0 != 0)
        return false;
    if (b->inner_nblks == 1 && b->inner_idxs[0] != 1)
        return false;
    return md->ndims == 2 || b->strides[2] == b->strides[3] * md->dims[3];
}

static bool dropout_supports(const co_call *call, const char **why)
{
    const co_layout *layout = &call->in[0]->layout;

    *why = "its input lies in a layout that the kernel cannot read";
    return layout->format != CO_FORMAT_OPAQUE || dropout_knows(layout->descriptor);
}

static bool dropout_drops_channels(const co_call *call)
{
    return call->op == &co_op_dropout2d;
}

static co_status dropout_plan(co_call *call)
{
    const onednn_operand x = onednn_tensor(call->in[0]);
    const dropout_place p = dropout_find_place(&x.md);

    CO_TRY(onednn_begin(call));
    onednn_like(call->out[0], call->in[0]);
    call->scratch_bytes =
        (size_t)(dropout_drops_channels(call) ? p.c : p.c * p.plane) * sizeof(float);
    return CO_OK;
}

/* Where the gradient has another layout, it changes its layout first. */
static co_status dropout_plan_backward(co_call *call)
{
    onednn_self *self = call->self;
    const onednn_operand y = onednn_tensor(call->out[0]), dy = onednn_tensor(call->grad_out[0]);
    onednn_operand dx;

    if (!call->grad_in[0])
        return CO_OK;
    if (onednn_same(&dy.md, &y.md)) {
        onednn_like(call->grad_in[0], call->grad_out[0]);
        return CO_OK;
    }
    onednn_like(call->grad_in[0], call->out[0]);
    dx = onednn_tensor(call->grad_in[0]);
    return onednn_add_reorder(self, &self->backward, ONEDNN_ALWAYS, &dy, &dx, false);
}

/* u: (C, H W), or (C) where whole channels are dropped. Rows of x and y are one sample. */
static void dropout_mask(float *y, const float *x, const dropout_place *p, const float *u,
                         const co_call *call)
{
    const co_dropout_attr *a = call->attr;
    const bool channels = dropout_drops_channels(call);
    const float scale = (float)(1 / (1 - a->p));

    for (int64_t c = 0; c < p->c; c++) {
        const int64_t at = c / p->block * p->group + c % p->block;

        for (int64_t s = 0; s < p->plane; s++) {
            const float draw = channels ? u[c] : u[c * p->plane + s];
            const int64_t e = at + s * p->pixel;

            y[e] = (double)draw < a->p ? 0 : x[e] * scale;
        }
    }
}

static void dropout_apply(co_tensor *to, const co_tensor *from, const co_call *call,
                          const co_run *run)
{
    const onednn_operand x = onednn_tensor(to);
    const dropout_place p = dropout_find_place(&x.md);
    const int64_t draws = dropout_drops_channels(call) ? p.c : p.c * p.plane;
    float *u = call->scratch;

    /* Channels that only pad the layout stay zero. */
    if (to->data != from->data && p.c % p.block)
        memcpy(to->data, from->data, to->bytes);
    for (int64_t n = 0; n < p.n; n++) {
        const co_rng rng = {run->seed, CO_RNG_DROPOUT | call->node << 8, run->values->given.step,
                            run->sample[n]};

        co_rng_uniform(u, &rng, 0, (uint64_t)draws);
        dropout_mask((float *)to->data + n * p.sample, (const float *)from->data + n * p.sample, &p,
                     u, call);
    }
}

static co_status dropout_forward(co_call *call, const co_run *run)
{
    if (call->training)
        dropout_apply(call->out[0], call->in[0], call, run);
    else
        memmove(call->out[0]->data, call->in[0]->data, call->in[0]->bytes);
    return CO_OK;
}

static co_status dropout_backward(co_call *call, const co_run *run)
{
    const onednn_self *self = call->self;
    co_tensor *dx = call->grad_in[0];

    if (!dx)
        return CO_OK;
    CO_TRY(onednn_backward(call, run));
    dropout_apply(dx, self->backward.n ? dx : call->grad_out[0], call, run);
    return CO_OK;
}

const co_kernel co_onednn_dropout = {
    .op = "dropout",
    .reads = ONEDNN_READS,
    .self_size = sizeof(onednn_self),
    .supports = dropout_supports,
    .plan = dropout_plan,
    .plan_backward = dropout_plan_backward,
    .bind = onednn_bind,
    .forward = dropout_forward,
    .backward = dropout_backward,
    .fini = onednn_fini,
    .in_place = true,
};

const co_kernel co_onednn_dropout2d = {
    .op = "dropout2d",
    .reads = ONEDNN_READS,
    .self_size = sizeof(onednn_self),
    .supports = dropout_supports,
    .plan = dropout_plan,
    .plan_backward = dropout_plan_backward,
    .bind = onednn_bind,
    .forward = dropout_forward,
    .backward = dropout_backward,
    .fini = onednn_fini,
    .in_place = true,
};
