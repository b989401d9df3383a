/* adaptive_avgpool.c - adaptive_avgpool for any layout of the input. */
#include "backends/cpu/cpu.h"
#include "core/parallel.h"
#include "kernels/adaptive_pool/adaptive_pool.h"

#define ADAPTIVE_IMAGES 16 /* images per task of a thread */

typedef struct adaptive {
    int64_t images, lanes; /* images, and contiguous values per pixel of each */
    size_t count_at[2];    /* in scratch: pixels per window, forward and backward */
    cpu_operand grad_out;  /* in the output's layout */
} adaptive;

static bool adaptive_supports(const co_call *call, const char **why)
{
    return cpu_takes(call, why) && cpu_reads_layout(call, why);
}

static size_t adaptive_take_count(co_call *call, size_t *used)
{
    const int64_t *out = call->out[0]->shape.dim;

    return cpu_take_scratch(call, used, (size_t)(out[2] * out[3]) * sizeof(float));
}

static co_status adaptive_plan(co_call *call)
{
    adaptive *self = call->self;
    const co_layout layout = call->in[0]->layout;
    const int64_t *dim = call->in[0]->shape.dim;
    size_t used = 0;

    self->lanes = layout.format == CO_FORMAT_CHANNEL_BLOCKS  ? layout.block
                  : layout.format == CO_FORMAT_CHANNELS_LAST ? dim[1]
                                                             : 1;
    self->images = dim[0] * ((dim[1] + self->lanes - 1) / self->lanes);
    cpu_set_layout(call->out[0], layout);
    self->count_at[0] = adaptive_take_count(call, &used);
    return CO_OK;
}

/* A gradient with another layout is reordered first. */
static co_status adaptive_plan_backward(co_call *call)
{
    adaptive *self = call->self;
    size_t used = 0;

    if (!call->grad_in[0])
        return CO_OK;
    cpu_like(call->grad_in[0], call->in[0]);
    self->count_at[1] = adaptive_take_count(call, &used);
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], call->out[0]->layout);
    return CO_OK;
}

static void adaptive_make(const co_call *call, const adaptive_pool_work *work)
{
    const adaptive *self = call->self;
    const int threads = cpu_threads(call);

    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < self->images; i += ADAPTIVE_IMAGES)
        adaptive_pool_make(work, i,
                           i + ADAPTIVE_IMAGES < self->images ? i + ADAPTIVE_IMAGES : self->images);
}

/* Pixels per window, (OH, OW), in scratch. */
static const float *adaptive_count(const co_call *call, bool backward)
{
    const adaptive *self = call->self;
    float *count = (float *)(void *)((char *)call->scratch + self->count_at[backward]);

    adaptive_pool_count(count, call->in[0]->shape.dim + 2, call->out[0]->shape.dim + 2);
    return count;
}

static co_status adaptive_forward(co_call *call, const co_run *run)
{
    const adaptive_pool_work work = {.from = {call->in[0]->data, call->in[0]->shape.dim + 2},
                                     .to = {call->out[0]->data, call->out[0]->shape.dim + 2},
                                     .lanes = ((const adaptive *)call->self)->lanes,
                                     .dtype = call->in[0]->dtype,
                                     .count = adaptive_count(call, false)};

    (void)run;
    adaptive_make(call, &work);
    return CO_OK;
}

static co_status adaptive_backward(co_call *call, const co_run *run)
{
    const adaptive *self = call->self;
    adaptive_pool_work work = {.lanes = self->lanes, .dtype = call->in[0]->dtype, .backward = true};

    (void)run;
    if (!call->grad_in[0])
        return CO_OK;
    cpu_bring(&self->grad_out, call, cpu_threads(call));
    work.from.data = (void *)cpu_address(&self->grad_out, call);
    work.from.size = call->out[0]->shape.dim + 2;
    work.to = (adaptive_pool_side){call->grad_in[0]->data, call->in[0]->shape.dim + 2};
    work.count = adaptive_count(call, true);
    adaptive_make(call, &work);
    return CO_OK;
}

const co_kernel co_cpu_adaptive_avgpool = {
    .op = "adaptive_avgpool",
    .name = "windows",
    .reads = CPU_READS,
    .self_size = sizeof(adaptive),
    .half = CPU_HALF,
    .supports = adaptive_supports,
    .plan = adaptive_plan,
    .plan_backward = adaptive_plan_backward,
    .forward = adaptive_forward,
    .backward = adaptive_backward,
};
