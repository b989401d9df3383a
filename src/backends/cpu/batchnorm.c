/*
 * batchnorm.c - batch norm in blocks of channels. Each block is measured, normalised, and in
 * backward reduced and applied while it is in the caches; ReLU and add are fused. Rows of whole
 * blocks are read as they are, other layouts from a copy in blocks, and their results put back.
 *
 * Blocks are processed in groups that fit the caches, sample by sample: the blocks of a sample are
 * contiguous, and contiguous ranges below some 50 KB are read slowly. Sums are over one plane, or
 * several small ones, and are combined in sample order, so that neither groups nor the number of
 * threads change the bits.
 */
#include <math.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/norm_epilogue.h"
#include "core/parallel.h"
#include "kernels/batchnorm/batchnorm.h"

#define NORM_MAX_GROUP 8 /* in blocks of channels */
/* Part of a core's L2 for data that is read twice; the rest is for streaming. */
#define NORM_GROUP_BYTES ((int64_t)512 << 10)
#define NORM_TOGETHER    256 /* in pixels; smaller planes are grouped */

enum { WEIGHT, BIAS, RUNNING_MEAN, RUNNING_VAR };

typedef struct norm {
    const norm_loops *loops;
    norm_tail tail;
    int64_t n, channels, plane;
    int64_t blocks;          /* of channels */
    int64_t together, parts; /* planes per partial sum; number of partial sums */
    size_t part_at[2];       /* in scratch: partial sums, forward and backward */
    co_layout layout;        /* in which the loops see all tensors */
    cpu_operand in[2], out;  /* in: forward and backward */
    cpu_operand grad_out, grad_out_extra, grad_in;
} norm;

/* Kept from forward for backward: mean and 1 / std, (2, blocks, lanes), then the mask. */
typedef struct norm_kept {
    float *mean, *inv_std;
    uint8_t *mask;
} norm_kept;

/* Planes of one block that share a partial sum. */
typedef struct norm_piece {
    int64_t block, part; /* index in the group; partial sum */
    int64_t at;          /* offset of the first value */
    norm_planes planes;
} norm_piece;

/* The loops for the tensor's type that this CPU can run, widest first, NULL at the end. */
static const norm_loops *const *norm_all_loops(const co_tensor *tensor)
{
    static const norm_loops *const all[] = {KERNELS_LIST(norm_loops, &norm_loops_basic, NULL)};

#ifdef CO_KERNELS_X86
    static const norm_loops *const halves[] = {&norm_loops_bf16_wide, &norm_loops_bf16, NULL};

    if (tensor->dtype == CO_BF16) /* cpu_takes has checked the CPU */
        return halves;
#endif
    return all + kernels_too_new();
}

/* Number of pixels of an image, or 1. */
static int64_t norm_plane(const co_tensor *tensor)
{
    return co_shape_count(&tensor->shape) / (tensor->shape.dim[0] * tensor->shape.dim[1]);
}

/* Whether the tensor's elements are where those of blocks of `lanes` channels are. */
static bool norm_is_blocked(const co_tensor *tensor, int lanes)
{
    if (tensor->layout.format == CO_FORMAT_PLAIN)
        return norm_plane(tensor) == 1 && tensor->shape.dim[1] % lanes == 0;
    return cpu_is_blocked(tensor, lanes);
}

/* The loops for the tensor's layout, or NULL: then the widest can read a copy. */
static const norm_loops *norm_find_loops(const co_tensor *tensor)
{
    const norm_loops *const *loops = norm_all_loops(tensor);

    while (*loops && !norm_is_blocked(tensor, (*loops)->lanes))
        loops++;
    return *loops;
}

static bool batchnorm_supports(const co_call *call, const char **why)
{
    *why = "its sums cannot be added up over ranks";
    return !call->over_ranks && cpu_takes(call, why) && cpu_reads_layout(call, why);
}

_Static_assert((int)NORM_RELU_ADD == (int)CO_NORM_EPILOGUE_RELU_ADD &&
                   (int)NORM_TAILS == (int)CO_NORM_EPILOGUE_COUNT,
               "one number for each");

static norm_tail norm_read_tail(const co_call *call)
{
    return (norm_tail)co_norm_epilogue_of(call);
}

/* The addend must have the input's layout, and be read in it. */
static bool batchnorm_fuses(const co_call *call)
{
    const co_tensor *other = call->n_in > 1 ? call->in[1] : NULL;

    if (norm_read_tail(call) == NORM_TAILS)
        return false;
    if (!other)
        return true;
    return other->dtype == call->in[0]->dtype && norm_find_loops(call->in[0]) &&
           co_layout_same(&other->layout, &call->in[0]->layout);
}

static bool norm_has_relu(const norm *self)
{
    return self->tail == NORM_RELU || self->tail == NORM_ADD_RELU || self->tail == NORM_RELU_ADD;
}

static size_t norm_take_parts(co_call *call, size_t *used)
{
    const norm *self = call->self;
    const int64_t group = self->blocks < NORM_MAX_GROUP ? self->blocks : NORM_MAX_GROUP;

    return cpu_take_scratch(call, used, (size_t)(group * self->parts) * sizeof(norm_part));
}

/* A result has the input's layout, or is put back from the loops'. */
static void norm_set_result(const norm *self, co_tensor *result, const co_tensor *in)
{
    if (co_layout_same(&self->layout, &in->layout))
        cpu_like(result, in);
    else
        cpu_set_layout(result, cpu_plain());
}

static co_status batchnorm_plan(co_call *call)
{
    const int64_t *dim = call->in[0]->shape.dim;
    norm *self = call->self;
    size_t used = 0;

    self->loops = norm_find_loops(call->in[0]);
    self->layout = call->in[0]->layout;
    if (!self->loops) {
        self->loops = *norm_all_loops(call->in[0]);
        self->layout = cpu_blocks(self->loops->lanes);
    }
    self->tail = norm_read_tail(call);
    self->n = dim[0];
    self->channels = dim[1];
    self->blocks = (dim[1] + self->loops->lanes - 1) / self->loops->lanes;
    self->plane = norm_plane(call->in[0]);
    self->together = self->plane < NORM_TOGETHER ? NORM_TOGETHER / self->plane : 1;
    self->parts = (self->n + self->together - 1) / self->together;
    call->adds_gradients = true;
    self->in[0] = cpu_plan_operand(call, &used, call->in[0], self->layout);
    norm_set_result(self, call->out[0], call->in[0]);
    self->out = cpu_plan_operand(call, &used, call->out[0], self->layout);
    if (!call->training)
        return CO_OK;
    self->part_at[0] = norm_take_parts(call, &used);
    call->workspace_bytes = (size_t)(2 * self->blocks * self->loops->lanes) * sizeof(float);
    if (norm_has_relu(self))
        call->workspace_bytes += (size_t)norm_mask_bytes(
            self->n * self->blocks * self->plane * self->loops->lanes, self->loops->lanes);
    return CO_OK;
}

static co_status batchnorm_plan_backward(co_call *call)
{
    norm *self = call->self;
    size_t used = 0;

    self->in[1] = cpu_plan_operand(call, &used, call->in[0], self->layout);
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], self->layout);
    if (call->grad_out_extra)
        self->grad_out_extra = cpu_plan_operand(call, &used, call->grad_out_extra, self->layout);
    self->part_at[1] = norm_take_parts(call, &used);
    for (int i = 0; i < call->n_in; i++)
        if (call->grad_in[i])
            norm_set_result(self, call->grad_in[i], call->in[0]);
    if (call->grad_in[0])
        self->grad_in = cpu_plan_operand(call, &used, call->grad_in[0], self->layout);
    return CO_OK;
}

/* What a training step keeps. */
static norm_kept norm_find_kept(const co_call *call)
{
    const norm *self = call->self;
    const int64_t channels = self->blocks * self->loops->lanes;
    float *mean = call->workspace, *inv_std = mean + channels;

    return (norm_kept){mean, inv_std, norm_has_relu(self) ? (uint8_t *)(inv_std + channels) : NULL};
}

static norm_part *norm_find_parts(const co_call *call, bool backward)
{
    const norm *self = call->self;

    return (norm_part *)((char *)call->scratch + self->part_at[backward]);
}

static norm_planes norm_part_planes(const norm *self, int64_t part)
{
    const int64_t rest = self->n - part * self->together;

    return (norm_planes){.n = self->plane,
                         .count = rest < self->together ? rest : self->together,
                         .step = self->blocks * self->plane * self->loops->lanes};
}

/* Piece i of a group of blocks, in memory order. */
static norm_piece norm_find_piece(const norm *self, int64_t first, int64_t end, int64_t i)
{
    const int64_t block = i % (end - first), part = i / (end - first);
    const int64_t before = part * self->together * self->blocks + first + block;

    return (norm_piece){.block = block,
                        .part = block * self->parts + part,
                        .at = before * self->plane * self->loops->lanes,
                        .planes = norm_part_planes(self, part)};
}

static void *norm_place(const norm *self, const void *base, int64_t at)
{
    return base ? (char *)base + (size_t)at * self->loops->cell : NULL;
}

/* Number of channels in a block; the other lanes are padding. */
static int norm_lanes(const norm *self, int64_t block)
{
    const int64_t left = self->channels - block * self->loops->lanes;

    return (int)(left < self->loops->lanes ? left : self->loops->lanes);
}

/* Blocks of `tensors` tensors that stay in a core's caches between the two passes. */
static int64_t norm_group(const norm *self, int tensors, int threads)
{
    const int64_t most = self->blocks < NORM_MAX_GROUP ? self->blocks : NORM_MAX_GROUP;
    const int64_t bytes = self->n * self->plane * self->loops->lanes * (int64_t)self->loops->cell;
    const int64_t fit = NORM_GROUP_BYTES / (bytes * tensors);

    return threads > 1 || fit > most ? most : fit > 1 ? fit : 1;
}

/* Combine the parts' moments into the block's mean and standard deviation; updates the running
   statistics. */
static void norm_join(const co_call *call, const norm_part *part, int64_t block)
{
    const norm *self = call->self;
    const co_batchnorm_attr *a = call->attr;
    const norm_kept kept = norm_find_kept(call);
    const int64_t first = block * self->loops->lanes;
    const double all = (double)self->plane * (double)self->n;
    float *running_mean = (float *)call->param[RUNNING_MEAN].data + first;
    float *running_var = (float *)call->param[RUNNING_VAR].data + first;

    for (int l = 0; l < norm_lanes(self, block); l++) {
        double mean = 0, squares = 0, count = 0;

        for (int64_t p = 0; p < self->parts; p++) {
            const norm_planes planes = norm_part_planes(self, p);
            const double more = (double)(planes.count * planes.n), d = part[p].a[l] - mean;

            mean += d * more / (count + more);
            squares += part[p].b[l] + d * d * more * count / (count + more);
            count += more;
        }
        kept.mean[first + l] = (float)mean;
        kept.inv_std[first + l] = (float)(1 / sqrt(squares / all + a->eps));
        running_mean[l] += (float)(a->momentum * (mean - (double)running_mean[l]));
        squares /= all > 1 ? all - 1 : all;
        running_var[l] += (float)(a->momentum * (squares - (double)running_var[l]));
    }
}

/* The affine map of a block's values; zero for padding channels. */
static void norm_forward_line(norm_line *line, const co_call *call, int64_t block)
{
    const norm *self = call->self;
    const co_batchnorm_attr *a = call->attr;
    const norm_kept kept = call->training ? norm_find_kept(call) : (norm_kept){NULL, NULL, NULL};
    const float *weight = call->param[WEIGHT].data, *bias = call->param[BIAS].data;
    const float *mean = call->param[RUNNING_MEAN].data, *var = call->param[RUNNING_VAR].data;

    memset(line, 0, sizeof(*line));
    for (int l = 0; l < norm_lanes(self, block); l++) {
        const int64_t c = block * self->loops->lanes + l;
        const float inv_std =
            call->training ? kept.inv_std[c] : (float)(1 / sqrt((double)var[c] + a->eps));

        line->mean[l] = call->training ? kept.mean[c] : mean[c];
        line->scale[l] = weight[c] * inv_std;
        line->shift[l] = bias[c];
    }
}

static void norm_measure_group(const co_call *call, norm_part *part, int64_t first, int64_t end,
                               int threads)
{
    const norm *self = call->self;
    const void *x = cpu_address(&self->in[0], call);
    const int64_t parts = (end - first) * self->parts;

    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < parts; i++) {
        const norm_piece p = norm_find_piece(self, first, end, i);

        self->loops->measure(&part[p.part], norm_place(self, x, p.at), &p.planes);
    }
    for (int64_t b = first; b < end; b++)
        norm_join(call, part + (b - first) * self->parts, b);
}

static co_status batchnorm_forward(co_call *call, const co_run *run)
{
    const norm *self = call->self;
    uint8_t *mask = call->training ? norm_find_kept(call).mask : NULL;
    const void *x = cpu_address(&self->in[0], call);
    const void *other = call->n_in > 1 ? call->in[1]->data : NULL;
    void *y = cpu_address(&self->out, call);
    norm_part *part = norm_find_parts(call, false);
    int threads;
    int64_t group;

    (void)run;
    threads = cpu_threads(call);
    group = norm_group(self, 1, threads);
    cpu_bring(&self->in[0], call, threads);
    for (int64_t first = 0; first < self->blocks; first += group) {
        const int64_t end = first + group < self->blocks ? first + group : self->blocks;
        const int64_t parts = (end - first) * self->parts;
        norm_line line[NORM_MAX_GROUP];

        if (call->training)
            norm_measure_group(call, part, first, end, threads);
        for (int64_t b = first; b < end; b++)
            norm_forward_line(&line[b - first], call, b);
        CO_PARALLEL_FOR(threads)
        for (int64_t i = 0; i < parts; i++) {
            const norm_piece p = norm_find_piece(self, first, end, i);

            self->loops->apply(norm_place(self, y, p.at),
                               mask ? mask + norm_mask_bytes(p.at, self->loops->lanes) : NULL,
                               norm_place(self, x, p.at), norm_place(self, other, p.at),
                               &line[p.block], self->tail, &p.planes);
        }
    }
    cpu_put_back(&self->out, call, threads);
    return CO_OK;
}

static void norm_put(float *to, double value, bool add)
{
    *to = add ? *to + (float)value : (float)value;
}

/* The parameters' gradients of a block, and the affine map of the input's gradient: dx = scale (d -
   sum d / M - z sum (d z) / M), z = (x - mean) / std. */
static void norm_backward_line(norm_line *line, const co_call *call, const norm_part *part,
                               int64_t block, bool add)
{
    const norm *self = call->self;
    const norm_kept kept = norm_find_kept(call);
    const int64_t first = block * self->loops->lanes;
    const double count = (double)self->plane * (double)self->n;

    for (int l = 0; l < norm_lanes(self, block); l++) {
        const double inv_std = (double)kept.inv_std[first + l], scale = (double)line->scale[l];
        double sum = 0, products = 0;

        for (int64_t p = 0; p < self->parts; p++) {
            sum += part[p].a[l];
            products += part[p].b[l];
        }
        products *= inv_std;
        norm_put((float *)call->grad_param[WEIGHT].data + first + l, products, add);
        norm_put((float *)call->grad_param[BIAS].data + first + l, sum, add);
        line->slope[l] = (float)(-scale * inv_std * products / count);
        line->shift[l] = (float)(-scale * sum / count);
    }
}

/* Operands of the backward pass from offset `at`, in the first pass or (`again`) in the second,
   after intermediate results have been stored. Two parts of a gradient are added once; dx stores
   the sum unless the addend's gradient does. */
static norm_back norm_find_back(const co_call *call, int64_t at, bool again)
{
    const norm *self = call->self;
    const norm_kept kept = norm_find_kept(call);
    const void *more = cpu_address(&self->grad_out_extra, call);
    void *other = call->n_in > 1 && call->grad_in[1] ? call->grad_in[1]->data : NULL;
    void *dx = cpu_address(&self->grad_in, call);
    void *sum = other ? other : more ? dx : NULL;
    norm_back back = {.x = norm_place(self, cpu_address(&self->in[1], call), at),
                      .dy = norm_place(self, cpu_address(&self->grad_out, call), at),
                      .more = norm_place(self, more, at),
                      .sum = norm_place(self, sum, at),
                      .mask =
                          kept.mask ? kept.mask + norm_mask_bytes(at, self->loops->lanes) : NULL,
                      .mask_sum = self->tail == NORM_ADD_RELU || !other};

    if (again && sum) {
        back.dy = back.sum;
        back.more = back.sum = NULL;
        back.mask = back.mask_sum ? NULL : back.mask;
    }
    return back;
}

static void norm_back_group(const co_call *call, const co_run *run, int64_t first, int64_t end,
                            int threads)
{
    const norm *self = call->self;
    void *dx = cpu_address(&self->grad_in, call);
    norm_part *part = norm_find_parts(call, true);
    const int64_t parts = (end - first) * self->parts;
    norm_line line[NORM_MAX_GROUP];

    for (int64_t b = first; b < end; b++)
        norm_forward_line(&line[b - first], call, b);
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < parts; i++) {
        const norm_piece p = norm_find_piece(self, first, end, i);
        const norm_back back = norm_find_back(call, p.at, false);

        self->loops->reduce(&part[p.part], &back, &line[p.block], &p.planes);
    }
    for (int64_t b = first; b < end; b++)
        norm_backward_line(&line[b - first], call, part + (b - first) * self->parts, b,
                           run->accumulate);
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < (dx ? parts : 0); i++) {
        const norm_piece p = norm_find_piece(self, first, end, i);
        const norm_back back = norm_find_back(call, p.at, true);

        self->loops->gradient(norm_place(self, dx, p.at), &back, &line[p.block], &p.planes);
    }
}

static co_status batchnorm_backward(co_call *call, const co_run *run)
{
    const norm *self = call->self;
    const int threads = cpu_threads(call);
    int64_t group;

    cpu_bring(&self->in[1], call, threads);
    cpu_bring(&self->grad_out, call, threads);
    cpu_bring(&self->grad_out_extra, call, threads);
    group = norm_group(self, 2, threads);
    for (int64_t first = 0; first < self->blocks; first += group) {
        const int64_t end = first + group < self->blocks ? first + group : self->blocks;

        norm_back_group(call, run, first, end, threads);
    }
    cpu_put_back(&self->grad_in, call, threads);
    return CO_OK;
}

const co_kernel co_cpu_batchnorm = {
    .op = "batchnorm",
    .name = "channel-blocks",
    .reads = CPU_READS,
    .self_size = sizeof(norm),
    .half = CPU_HALF,
    .supports = batchnorm_supports,
    .fuses = batchnorm_fuses,
    .plan = batchnorm_plan,
    .plan_backward = batchnorm_plan_backward,
    .forward = batchnorm_forward,
    .backward = batchnorm_backward,
    .in_place = true,
    .yields_half = true,
};
