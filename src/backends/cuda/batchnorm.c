/*
 * batchnorm.c - batch norm, with the statistics of this rank's batch or of all ranks', in the
 * layout and the type of the input; a sum and a ReLU after it are done in the same pass.
 *
 * Forward reads the input twice. Backward makes the sums of the gradient first, and writes what
 * goes to the addend on the way; the second pass reads that.
 */
#include "kernels/cuda/batchnorm.h"

#include "backends/cuda/cuda.h"
#include "backends/norm_epilogue.h"

enum { WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR };

typedef struct batchnorm_self {
    cuda_epilogue epilogue;
    size_t mask; /* where it is in the workspace; 0: nowhere */
    cuda_operand dy, more;
} batchnorm_self;

/* ---- what follows in the same pass ---- */

_Static_assert((int)CUDA_EPILOGUE_RELU_ADD == (int)CO_NORM_EPILOGUE_RELU_ADD &&
                   (int)CUDA_EPILOGUE_COUNT == (int)CO_NORM_EPILOGUE_COUNT,
               "one number for each");

static cuda_epilogue batchnorm_epilogue(const co_call *call)
{
    return (cuda_epilogue)co_norm_epilogue_of(call);
}

/* Elements that a thread takes. */
static uint32_t batchnorm_together(const co_tensor *x)
{
    const cuda_extent size = cuda_extent_of(x);
    const uint32_t line = size.plane == 1 ? size.channels : size.plane;

    return line % CUDA_TOGETHER == 0 ? CUDA_TOGETHER : 1;
}

/* A thread that writes a byte of the mask has all of its elements. */
static bool batchnorm_fuses(const co_call *call)
{
    const cuda_epilogue epilogue = batchnorm_epilogue(call);
    const co_tensor *x = call->in[0], *add = call->n_in > 1 ? call->in[1] : NULL;

    if (epilogue == CUDA_EPILOGUE_COUNT ||
        (epilogue == CUDA_EPILOGUE_ADD_RELU && batchnorm_together(x) == 1))
        return false;
    return !add || (add->dtype == x->dtype && cuda_is_last(add) == cuda_is_last(x));
}

/* ---- planning ---- */

static size_t batchnorm_stat_bytes(const co_call *call)
{
    return (size_t)call->in[0]->shape.dim[1] * sizeof(cuda_stat);
}

static size_t batchnorm_sums_room(const co_call *call)
{
    const cuda_extent s = cuda_extent_of(call->in[0]);

    return cuda_sums_room(s.n, s.channels, s.plane);
}

/* Of all ranks: two sums of each channel, and a count. */
static size_t batchnorm_total_room(const co_call *call)
{
    return call->over_ranks ? 2 * (size_t)call->in[0]->shape.dim[1] + 1 : 0;
}

/* Scratch: means of the gradient or statistics in evaluation, then parts of sums, then totals. */
static size_t batchnorm_scratch(const co_call *call)
{
    const size_t sums = batchnorm_sums_room(call) + batchnorm_total_room(call);

    return batchnorm_stat_bytes(call) + (call->training ? sums * sizeof(double) : 0);
}

static co_status batchnorm_plan(co_call *call)
{
    batchnorm_self *self = call->self;

    self->epilogue = batchnorm_epilogue(call);
    call->out[0]->layout = call->in[0]->layout;
    call->scratch_bytes = batchnorm_scratch(call);
    call->adds_gradients = call->training;
    if (!call->training)
        return CO_OK;
    call->workspace_bytes = batchnorm_stat_bytes(call);
    if (self->epilogue == CUDA_EPILOGUE_ADD_RELU) {
        self->mask = call->workspace_bytes;
        call->workspace_bytes += cuda_count_of(call->in[0]) / 8;
    }
    return CO_OK;
}

static co_status batchnorm_plan_backward(co_call *call)
{
    batchnorm_self *self = call->self;
    size_t used =
        (batchnorm_scratch(call) + CO_DEVICE_ALIGN - 1) / CO_DEVICE_ALIGN * CO_DEVICE_ALIGN;

    self->dy = cuda_plan_operand(call, &used, call->grad_out[0], call->in[0]);
    self->more = cuda_plan_operand(call, &used, call->grad_out_extra, call->in[0]);
    for (int i = 0; i < call->n_in; i++)
        if (call->grad_in[i])
            call->grad_in[i]->layout = call->in[0]->layout;
    return CO_OK;
}

/* ---- running ---- */

/* What both passes have in common; statistics are kept from forward to backward. */
static cuda_batchnorm batchnorm_args(const co_call *call)
{
    const batchnorm_self *self = call->self;
    const cuda_extent size = cuda_extent_of(call->in[0]);

    return (cuda_batchnorm){.x = call->in[0]->data,
                            .weight = call->param[WEIGHT].data,
                            .bias = call->param[BIAS].data,
                            .stat = call->training ? call->workspace : call->scratch,
                            .n = size.n,
                            .channels = size.channels,
                            .plane = size.plane,
                            .together = batchnorm_together(call->in[0]),
                            .type = cuda_number_of(call->in[0]->dtype),
                            .epilogue = self->epilogue,
                            .rounded = call->round_params != 0};
}

static cuda_sums batchnorm_sums(const cuda_batchnorm *args, cuda_sum_kind kind)
{
    return (cuda_sums){.x = args->x,
                       .in = args->in,
                       .stat = args->stat,
                       .weight = args->weight,
                       .bias = args->bias,
                       .n = args->n,
                       .channels = args->channels,
                       .plane = args->plane,
                       .kind = kind,
                       .type = args->type,
                       .rounded = args->rounded};
}

static double *batchnorm_parts(const co_call *call)
{
    return (double *)(void *)((char *)call->scratch + batchnorm_stat_bytes(call));
}

/* The sums of this rank become those of all ranks, and then `kernel` is launched. */
static co_status batchnorm_over_ranks(const co_call *call, const co_run *run, cuda_settle *settle,
                                      cuda_kernel kernel)
{
    settle->total = batchnorm_parts(call) + batchnorm_sums_room(call);
    cuda_launch(call->queue, CUDA_sums_totals, settle->channels, settle);
    CO_TRY(run->reduce(run->reduce_arg, settle->total, batchnorm_total_room(call)));
    cuda_launch(call->queue, kernel, settle->channels, settle);
    return CO_OK;
}

static co_status batchnorm_measure(const co_call *call, const co_run *run, cuda_sums *sums,
                                   cuda_settle *settle)
{
    if (!call->over_ranks) {
        cuda_sum_channels(call, sums, CUDA_sums_settle_moments, settle, batchnorm_parts(call));
        return CO_OK;
    }
    sums->shift = settle->running_mean;
    settle->phantom = run->phantom;
    cuda_sum_parts(call, sums, settle, batchnorm_parts(call));
    return batchnorm_over_ranks(call, run, settle, CUDA_sums_settle_moments);
}

static co_status batchnorm_forward(co_call *call, const co_run *run)
{
    const co_batchnorm_attr *a = call->attr;
    const batchnorm_self *self = call->self;
    cuda_batchnorm args = batchnorm_args(call);
    cuda_settle settle = {.channels = args.channels,
                          .x = args.x,
                          .type = args.type,
                          .stat = call->training ? call->workspace : call->scratch,
                          .running_mean = call->param[RUNNING_MEAN].data,
                          .running_var = call->param[RUNNING_VAR].data,
                          .eps = a->eps,
                          .momentum = a->momentum};
    cuda_sums sums = batchnorm_sums(&args, CUDA_MOMENTS);

    if (call->training)
        CO_TRY(batchnorm_measure(call, run, &sums, &settle));
    else
        cuda_launch(call->queue, CUDA_sums_recall, args.channels, &settle);
    args.out = call->out[0]->data;
    args.add = call->n_in > 1 ? call->in[1]->data : NULL;
    args.mask = self->mask ? (uint8_t *)call->workspace + self->mask : NULL;
    cuda_launch(call->queue, CUDA_batchnorm_forward, cuda_count_of(call->out[0]) / args.together,
                &args);
    return CO_OK;
}

/* How the gradient arrives in the first pass. */
static cuda_incoming batchnorm_incoming(const co_call *call)
{
    const batchnorm_self *self = call->self;
    const bool adds = call->n_in > 1 && call->grad_in[1];

    return (cuda_incoming){
        .dy = cuda_bring_operand(call, &self->dy),
        .more = cuda_bring_operand(call, &self->more),
        .mask = self->mask ? (const uint8_t *)call->workspace + self->mask : NULL,
        .sum = adds ? call->grad_in[1]->data : NULL,
        .relu = self->epilogue == CUDA_EPILOGUE_RELU || self->epilogue == CUDA_EPILOGUE_RELU_ADD};
}

static co_status batchnorm_backward(co_call *call, const co_run *run)
{
    cuda_batchnorm args = batchnorm_args(call);
    cuda_settle settle = {.dw = call->grad_param[WEIGHT].data,
                          .db = call->grad_param[BIAS].data,
                          .mean = call->scratch,
                          .phantom = run->phantom,
                          .accumulate = run->accumulate};
    cuda_sums sums;

    args.in = batchnorm_incoming(call);
    sums = batchnorm_sums(&args, CUDA_GRADIENTS);
    cuda_sum_channels(call, &sums, CUDA_sums_settle_gradients, &settle, batchnorm_parts(call));
    if (call->over_ranks)
        CO_TRY(batchnorm_over_ranks(call, run, &settle, CUDA_sums_settle_means));
    if (!call->grad_in[0])
        return CO_OK;
    args.out = call->grad_in[0]->data;
    if (run->phantom)
        return call->queue->device->ops->fill(call->queue, args.out, 0, call->grad_in[0]->bytes);
    if (args.in.sum)
        args.in = (cuda_incoming){.dy = args.in.sum, .relu = args.in.relu};
    args.mean = settle.mean;
    cuda_launch(call->queue, CUDA_batchnorm_backward,
                cuda_count_of(call->grad_in[0]) / args.together, &args);
    return CO_OK;
}

/* Each thread reads its elements before it writes them: the result may be where an operand is. */
const co_kernel co_cuda_batchnorm = {.op = "batchnorm",
                                     .reads = CUDA_READS,
                                     .half = CUDA_HALF,
                                     .self_size = sizeof(batchnorm_self),
                                     .supports = cuda_fits,
                                     .fuses = batchnorm_fuses,
                                     .plan = batchnorm_plan,
                                     .plan_backward = batchnorm_plan_backward,
                                     .forward = batchnorm_forward,
                                     .backward = batchnorm_backward,
                                     .in_place = true};
