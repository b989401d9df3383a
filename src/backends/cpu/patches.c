/*
 * patches.c - images as sequences: patches, which is a change of layout, class_token and first. All
 * move rows.
 */
#include <string.h>

#include "backends/cpu/cpu.h"
#include "core/parallel.h"

/* --- patches: rows of a sequence are the pixels of an image whose channels come last --- */

typedef struct patches {
    cpu_operand grad_out; /* plain */
} patches;

static bool patches_reads(const co_call *call, const char **why)
{
    return cpu_reads_layout(call, why) && cpu_takes_floats(call, why);
}

static co_layout patches_last(void)
{
    return (co_layout){.format = CO_FORMAT_CHANNELS_LAST};
}

static co_status patches_plan_backward(co_call *call)
{
    patches *self = call->self;
    size_t used = 0;

    if (!call->grad_in[0])
        return CO_OK;
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], cpu_plain());
    cpu_like(call->grad_in[0], call->in[0]);
    return CO_OK;
}

static co_status patches_forward(co_call *call, const co_run *run)
{
    (void)run;
    cpu_reorder(call->out[0]->data, patches_last(), call->in[0], cpu_threads(call));
    return CO_OK;
}

static co_status patches_backward(co_call *call, const co_run *run)
{
    const patches *self = call->self;
    co_tensor image;

    (void)run;
    if (!call->grad_in[0])
        return CO_OK;
    cpu_bring(&self->grad_out, call, cpu_threads(call));
    image = *call->grad_in[0];
    image.layout = patches_last();
    image.data = cpu_address(&self->grad_out, call);
    cpu_reorder(call->grad_in[0]->data, call->grad_in[0]->layout, &image, cpu_threads(call));
    return CO_OK;
}

const co_kernel co_cpu_patches = {
    .op = "patches",
    .name = "any-layout",
    .reads = CPU_READS,
    .self_size = sizeof(patches),
    .supports = patches_reads,
    .plan_backward = patches_plan_backward,
    .forward = patches_forward,
    .backward = patches_backward,
};

/* --- class_token --- */

static co_status class_token_forward(co_call *call, const co_run *run)
{
    const int64_t *in = call->in[0]->shape.dim, sample = in[1] * in[2];
    const float *x = call->in[0]->data, *row = call->param[0].data;
    float *y = call->out[0]->data;
    const int threads = cpu_threads(call);

    (void)run;
    CO_PARALLEL_FOR(threads)
    for (int64_t n = 0; n < in[0]; n++) {
        float *to = y + n * (sample + in[2]);

        memcpy(to, row, (size_t)in[2] * sizeof(*to));
        memcpy(to + in[2], x + n * sample, (size_t)sample * sizeof(*to));
    }
    return CO_OK;
}

/* The gradient of the row is a sum over few samples, in their order. */
static co_status class_token_backward(co_call *call, const co_run *run)
{
    const int64_t *in = call->in[0]->shape.dim, sample = in[1] * in[2], each = sample + in[2];
    const float *dy = call->grad_out[0]->data;
    float *dw = call->grad_param[0].data, *dx = call->grad_in[0] ? call->grad_in[0]->data : NULL;
    const int threads = cpu_threads(call);

    if (!run->accumulate)
        memset(dw, 0, (size_t)in[2] * sizeof(*dw));
    for (int64_t n = 0; n < in[0]; n++)
        for (int64_t f = 0; f < in[2]; f++)
            dw[f] += dy[n * each + f];
    if (!dx)
        return CO_OK;
    CO_PARALLEL_FOR(threads)
    for (int64_t n = 0; n < in[0]; n++)
        memcpy(dx + n * sample, dy + n * each + in[2], (size_t)sample * sizeof(*dx));
    return CO_OK;
}

const co_kernel co_cpu_class_token = {
    .op = "class_token",
    .name = "rows",
    .supports = cpu_takes_floats,
    .forward = class_token_forward,
    .backward = class_token_backward,
};

/* --- first --- */

static co_status first_forward(co_call *call, const co_run *run)
{
    const int64_t *in = call->in[0]->shape.dim;
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;

    (void)run;
    for (int64_t n = 0; n < in[0]; n++)
        memcpy(y + n * in[2], x + n * in[1] * in[2], (size_t)in[2] * sizeof(*y));
    return CO_OK;
}

static co_status first_backward(co_call *call, const co_run *run)
{
    const int64_t *in = call->in[0]->shape.dim;
    const float *dy = call->grad_out[0]->data;
    float *dx = call->grad_in[0] ? call->grad_in[0]->data : NULL;
    const int threads = cpu_threads(call);

    (void)run;
    if (!dx)
        return CO_OK;
    CO_PARALLEL_FOR(threads)
    for (int64_t n = 0; n < in[0]; n++) {
        float *to = dx + n * in[1] * in[2];

        memcpy(to, dy + n * in[2], (size_t)in[2] * sizeof(*to));
        memset(to + in[2], 0, (size_t)((in[1] - 1) * in[2]) * sizeof(*to));
    }
    return CO_OK;
}

const co_kernel co_cpu_first = {
    .op = "first",
    .name = "rows",
    .supports = cpu_takes_floats,
    .forward = first_forward,
    .backward = first_backward,
};
