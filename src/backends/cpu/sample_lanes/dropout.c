/*
 * dropout.c - drops random elements (dropout) or channels (dropout2d), with the random numbers of
 * ops.h. Also handles plain tensors, by converting the marks to the plain layout.
 */
#include <math.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/sample_lanes/kernels.h"

/* Adjacent elements of a sample that share a random number. */
static int64_t dropout_span(const co_call *call)
{
    const int64_t *dim = call->in[0]->shape.dim;

    return call->op == &co_op_dropout2d ? dim[2] * dim[3] : 1;
}

static int64_t dropout_draws(const co_call *call)
{
    return sample_lanes_count(call->in[0]) / dropout_span(call);
}

static bool dropout_is_plain(const co_call *call)
{
    return call->in[0]->layout.format == CO_FORMAT_PLAIN;
}

/* False before a layer of this backend, whose gradient is in blocks. */
static bool dropout_gradient_is_plain(const co_call *call)
{
    return dropout_is_plain(call) && call->grad_out[0]->layout.format == CO_FORMAT_PLAIN;
}

static bool dropout_supports(const co_call *call, const char **why)
{
    *why = "a sample of a sequence has so many elements that its random numbers need no others'";
    if (dropout_is_plain(call) && call->in[0]->shape.ndim == 3)
        return false;
    return dropout_is_plain(call) || sample_lanes_supports_blocked(call, why);
}

/* Bytes of the marks of a block, (draws, lanes). */
static size_t dropout_mark_bytes(const co_call *call)
{
    return (size_t)dropout_draws(call) * LANES_MOST * sizeof(int32_t);
}

/* Bytes of what is kept of a block, (draws, lanes): to draw again takes longer than to read. */
static size_t dropout_kept_bytes(const co_call *call)
{
    return (size_t)(dropout_draws(call) * lanes_choose()->lanes);
}

/* Scratch per thread: marks in lanes; for the plain layout, also marks in that. */
static co_status dropout_plan(co_call *call)
{
    if (call->training)
        call->workspace_bytes = (size_t)sample_lanes_blocks(call->in[0]) * dropout_kept_bytes(call);
    call->thread_scratch_bytes = dropout_mark_bytes(call) * (dropout_is_plain(call) ? 2 : 1);
    return dropout_is_plain(call) ? CO_OK : sample_lanes_plan_alike(call);
}

static co_status dropout_plan_backward(co_call *call)
{
    return dropout_gradient_is_plain(call) ? CO_OK : sample_lanes_plan_backward_alike(call);
}

/* Only 24 bits of a random number count, so u < p is an integer comparison. */
static void dropout_draw(int32_t *drop, uint8_t *kept, const co_call *call, const co_run *run,
                         int64_t block)
{
    const co_dropout_attr *a = call->attr;
    const co_rng rng = {run->seed, CO_RNG_DROPOUT | call->node << 8, run->values->given.step, 0};
    const int64_t lanes = lanes_choose()->lanes, n = call->in[0]->shape.dim[0];
    uint32_t sample[LANES_MOST] = {0};

    for (int64_t l = 0; l < lanes && block * lanes + l < n; l++)
        sample[l] = run->sample[block * lanes + l];
    lanes_choose()->mark(drop, kept, &rng, sample, (uint32_t)ceil(a->p * 16777216.0),
                         dropout_draws(call));
}

/* drop (draws, lanes): marks what the samples of this block lose. `run` NULL: what they lost in the
   forward pass. */
static void dropout_mark(int32_t *drop, const co_call *call, const co_run *run, int64_t block)
{
    uint8_t *kept = (uint8_t *)call->workspace + (size_t)block * dropout_kept_bytes(call);

    if (run)
        dropout_draw(drop, kept, call, run, block);
    else
        lanes_choose()->mark_again(drop, kept, dropout_draws(call));
}

/* `drop` is room for the marks. */
static void dropout_apply_block(float *y, const float *x, int32_t *drop, const co_call *call,
                                const co_run *run, int64_t b)
{
    const co_dropout_attr *a = call->attr;
    const lanes_loops *lanes = lanes_choose();
    const int64_t draws = dropout_draws(call), span = dropout_span(call);
    const int64_t at = b * draws * span * lanes->lanes;

    dropout_mark(drop, call, run, b);
    lanes->drop(y + at, x + at, drop, (float)(1 / (1 - a->p)), draws, span);
}

/* The same for the plain layout. */
static void dropout_apply_rows(float *y, const float *x, int32_t *drop, const co_call *call,
                               const co_run *run, int64_t b)
{
    const co_dropout_attr *a = call->attr;
    const lanes_loops *lanes = lanes_choose();
    const int64_t draws = dropout_draws(call), left = call->in[0]->shape.dim[0] - b * lanes->lanes;
    const int64_t rows = left < lanes->lanes ? left : lanes->lanes, at = b * lanes->lanes * draws;
    int32_t *plain = drop + draws * LANES_MOST;

    dropout_mark(drop, call, run, b);
    lanes->unpack((float *)(void *)plain, (float *)(void *)drop, rows, draws);
    lanes->drop_each(y + at, x + at, plain, (float)(1 / (1 - a->p)), rows * draws);
}

static void dropout_apply(float *y, const float *x, const co_call *call, const co_run *run,
                          bool rows)
{
    const int threads = sample_lanes_threads(call);

    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range part = co_parallel_part(sample_lanes_blocks(call->in[0]), t, threads);
        int32_t *drop = cpu_own_scratch(call, t);

        for (int64_t b = part.begin; b < part.end; b++)
            if (rows)
                dropout_apply_rows(y, x, drop, call, run, b);
            else
                dropout_apply_block(y, x, drop, call, run, b);
    }
}

static co_status dropout_forward(co_call *call, const co_run *run)
{
    if (call->training)
        dropout_apply(call->out[0]->data, call->in[0]->data, call, run, dropout_is_plain(call));
    else
        memmove(call->out[0]->data, call->in[0]->data, call->in[0]->bytes);
    return CO_OK;
}

static co_status dropout_backward(co_call *call, const co_run *run)
{
    const bool rows = dropout_gradient_is_plain(call);

    (void)run;
    if (call->grad_in[0])
        dropout_apply(call->grad_in[0]->data,
                      rows ? call->grad_out[0]->data : sample_lanes_grad_out(call), call, NULL,
                      rows);
    return CO_OK;
}

const co_kernel co_cpu_lanes_dropout = {
    .op = "dropout",
    .name = "sample-lanes",
    .reads = CO_READS(CO_FORMAT_SAMPLE_LANES),
    .supports = dropout_supports,
    .plan = dropout_plan,
    .plan_backward = dropout_plan_backward,
    .forward = dropout_forward,
    .backward = dropout_backward,
    .in_place = true,
};

const co_kernel co_cpu_lanes_dropout2d = {
    .op = "dropout2d",
    .name = "sample-lanes",
    .reads = CO_READS(CO_FORMAT_SAMPLE_LANES),
    .supports = sample_lanes_supports_blocked,
    .plan = dropout_plan,
    .plan_backward = dropout_plan_backward,
    .forward = dropout_forward,
    .backward = dropout_backward,
    .in_place = true,
};
