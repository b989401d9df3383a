/*
 * winograd43.c - 3x3 convolution of stride 1 with the loops of kernels/winograd43: blocking for the
 * caches, and the order of the stages.
 *
 * With few channels, tiles are processed in chunks whose transforms and products stay in L2. With
 * many channels there are few tiles, and weights are transformed a group of channels at a time,
 * right before use. Each sum is computed by one thread in one order, so the number of threads does
 * not change the bits.
 */
#include <string.h>

#include "backends/cpu/conv2d_rules.h"
#include "backends/cpu/cpu.h"
#include "core/isa.h"
#include "core/parallel.h"
#include "kernels/winograd43/winograd43.h"

/* Approximate size of V and M of a chunk: half of a typical L2 cache. */
#define WINOGRAD43_CHUNK_BYTES (1 << 19)
#define WINOGRAD43_MIN_CHUNK   28 /* in tiles: two rows of a product */
/* From this size of the weights on, U is computed in groups of about WINOGRAD43_GROUP_BYTES, and V
   and M may take WINOGRAD43_FAR_BYTES, because a group needs all tiles. */
#define WINOGRAD43_MAX_WEIGHT  (1 << 24)
#define WINOGRAD43_GROUP_BYTES (1 << 22)
#define WINOGRAD43_FAR_BYTES   (3 << 23)

#define WINOGRAD43_HALF_CHANNELS 64 /* input and output, for bf16 tensors */

/* How a product is split to fit the caches, and its scratch memory; offsets in floats. */
typedef struct winograd43_cut {
    int64_t tiles, chunk;              /* in total, and per chunk */
    int64_t blocks, group;             /* of output channels: in total, and per group */
    int64_t v_apart, m_apart, u_apart; /* floats between points; M also for dy's tiles */
    int64_t v, m, u, work;             /* offsets */
    int64_t floats;
} winograd43_cut;

typedef struct winograd43 {
    const winograd43_loops *loops;
    int64_t in_blocks, out_blocks;
    winograd43_grid patches, outputs;         /* forward: on the input, on the output */
    winograd43_grid back_patches, back_tiles; /* input gradient: on dy, on dx */
    winograd43_cut forward, back, weight;
    cpu_operand src, back_src, grad_out; /* in blocks */
    size_t forward_at, backward_at;      /* in scratch */
} winograd43;

/* Measured: AVX-512's bf16 instructions multiply twice as fast as fp32, and direct kernels still
   take 1.05 to 1.5 times as long. With AMX they do not. */
static bool winograd43_pays_half(const co_call *call)
{
    return !co_isa_has(CO_ISA_AMX) && call->in[0]->shape.dim[1] >= WINOGRAD43_HALF_CHANNELS &&
           call->out[0]->shape.dim[1] >= WINOGRAD43_HALF_CHANNELS;
}

static bool winograd43_supports(const co_call *call, const char **why)
{
    const co_conv2d_attr *a = call->attr;
    const int lanes = co_isa_has(CO_ISA_AVX512) ? 16 : 8;

    *why = "this CPU has no AVX2";
    if (!co_isa_has(CO_ISA_AVX2) || !cpu_takes(call, why) || !conv2d_suits_winograd(call, why))
        return false;
    *why = "its channels do not fill vectors";
    if (call->in[0]->shape.dim[1] % lanes || call->out[0]->shape.dim[1] % lanes)
        return false;
    *why = "its padding is larger than its kernel's reach";
    if (a->p[0] > 2 || a->p[1] > 2)
        return false;
    *why = "direct convolution in bf16 is faster here";
    return call->in[0]->dtype == CO_F32 || winograd43_pays_half(call);
}

static const winograd43_loops *winograd43_find_loops(co_dtype dtype)
{
#ifdef CO_KERNELS_X86
    if (dtype == CO_BF16)
        return &winograd43_loops_bf16;
    return co_isa_has(CO_ISA_AVX512) ? &winograd43_loops_avx512 : &winograd43_loops_avx2;
#else
    (void)dtype;
    return NULL;
#endif
}

/* --- planning --- */

static int64_t winograd43_divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* Tiles that cover `outputs` on an image of `shape`; the first starts at (-top, -left). */
static winograd43_grid winograd43_lay_grid(const co_shape *shape, const co_shape *outputs,
                                           int64_t top, int64_t left)
{
    const int64_t h = shape->dim[2], w = shape->dim[3];

    return (winograd43_grid){.h = h,
                             .w = w,
                             .top = -top,
                             .left = -left,
                             .rows = winograd43_divide_up(outputs->dim[2], WINOGRAD43_TILE),
                             .columns = winograd43_divide_up(outputs->dim[3], WINOGRAD43_TILE),
                             .image = shape->dim[1] * h * w};
}

/* An odd number of vectors, so that the 36 points of a tile do not map to the same cache
   set. */
static int64_t winograd43_apart(int64_t vectors, int64_t lanes)
{
    return (vectors | 1) * lanes;
}

/* Split a product from `in` to `out` blocks over `tiles` tiles. `all`: M holds the tiles of all
   outputs. `work` holds a row of weights per block. */
static winograd43_cut winograd43_cut_product(int64_t lanes, int64_t tiles, int64_t in, int64_t out,
                                             bool all)
{
    const int64_t line = WINOGRAD43_POINTS * lanes * (int64_t)sizeof(float);
    const int64_t weight = line * in * lanes;
    const bool far =
        weight * out > WINOGRAD43_MAX_WEIGHT && line * (in + out) * tiles <= WINOGRAD43_FAR_BYTES;
    const int64_t most = WINOGRAD43_CHUNK_BYTES / (line * (in + out)),
                  group = WINOGRAD43_GROUP_BYTES / weight;
    winograd43_cut cut = {.tiles = tiles, .chunk = tiles, .blocks = out, .group = out};

    if (far)
        cut.group = group > 2 ? group / 2 * 2 : 2;
    else
        cut.chunk = winograd43_divide_up(
            tiles,
            winograd43_divide_up(tiles, most > WINOGRAD43_MIN_CHUNK ? most : WINOGRAD43_MIN_CHUNK));
    if (cut.group > out)
        cut.group = out;
    cut.v_apart = winograd43_apart(in * cut.chunk, lanes);
    cut.m_apart = winograd43_apart((all ? out : cut.group) * cut.chunk, lanes);
    cut.u_apart = winograd43_apart(cut.group * in * lanes, lanes);
    cut.m = cut.v + WINOGRAD43_POINTS * cut.v_apart;
    cut.u = cut.m + WINOGRAD43_POINTS * cut.m_apart;
    cut.work = cut.u + WINOGRAD43_POINTS * cut.u_apart;
    cut.floats = cut.work + cut.group * in * lanes * lanes * WINOGRAD43_TAPS;
    return cut;
}

static size_t winograd43_take_scratch(co_call *call, size_t *used, int64_t floats)
{
    return cpu_take_scratch(call, used, (size_t)floats * sizeof(float));
}

static co_status winograd43_plan(co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const co_shape *in = &call->in[0]->shape, *out = &call->out[0]->shape;
    winograd43 *self = call->self;
    co_layout blocked;
    size_t used = 0;
    int lanes;

    self->loops = winograd43_find_loops(call->in[0]->dtype);
    lanes = self->loops->lanes;
    blocked = cpu_blocks(lanes);
    self->in_blocks = in->dim[1] / lanes;
    self->out_blocks = out->dim[1] / lanes;
    self->patches = winograd43_lay_grid(in, out, a->p[0], a->p[1]);
    self->outputs = winograd43_lay_grid(out, out, 0, 0);
    self->src = cpu_plan_operand(call, &used, call->in[0], blocked);
    cpu_set_layout(call->out[0], blocked);
    self->forward =
        winograd43_cut_product(lanes, in->dim[0] * self->outputs.rows * self->outputs.columns,
                               self->in_blocks, self->out_blocks, false);
    self->forward_at = winograd43_take_scratch(call, &used, self->forward.floats);
    return CO_OK;
}

static co_status winograd43_plan_backward(co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const co_shape *in = &call->in[0]->shape, *out = &call->out[0]->shape;
    winograd43 *self = call->self;
    const int lanes = self->loops->lanes;
    const co_layout blocked = cpu_blocks(lanes);
    size_t used = 0;
    int64_t floats;

    self->back_src = cpu_plan_operand(call, &used, call->in[0], blocked);
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], blocked);
    self->weight =
        winograd43_cut_product(lanes, self->forward.tiles, self->in_blocks, self->out_blocks, true);
    floats = self->weight.floats;
    if (call->grad_in[0]) {
        cpu_set_layout(call->grad_in[0], blocked);
        self->back_patches = winograd43_lay_grid(out, in, 2 - a->p[0], 2 - a->p[1]);
        self->back_tiles = winograd43_lay_grid(in, in, 0, 0);
        self->back = winograd43_cut_product(
            lanes, in->dim[0] * self->back_tiles.rows * self->back_tiles.columns, self->out_blocks,
            self->in_blocks, false);
        if (floats < self->back.floats)
            floats = self->back.floats;
    }
    self->backward_at = winograd43_take_scratch(call, &used, floats);
    return CO_OK;
}

/* --- running --- */

/* Bytes per block of channels of an image. */
static int64_t winograd43_plane(const winograd43_loops *loops, const winograd43_grid *grid)
{
    return grid->h * grid->w * loops->lanes * (int64_t)loops->cell;
}

/* y = x * w, forward; or backward, with the weight rotated by 180 degrees (`turned`). */
typedef struct winograd43_convolution {
    const winograd43_loops *loops;
    const winograd43_cut *cut;
    const winograd43_grid *from, *to;
    int64_t in_blocks;
    const char *x;
    const float *w, *bias;
    char *y;
    float *scratch;
    bool turned;
    int threads;
} winograd43_convolution;

static void winograd43_transform_weights(const winograd43_convolution *c, int64_t begin,
                                         int64_t end)
{
    const winograd43_cut *cut = c->cut;
    const int64_t lanes = c->loops->lanes, in = c->in_blocks * lanes;

    CO_PARALLEL_FOR(c->threads)
    for (int64_t b = begin; b < end; b++) {
        float *u = c->scratch + cut->u + (b - begin) * in * lanes;

        if (c->turned)
            c->loops->spread_turned(u, cut->u_apart, c->w + b * lanes * WINOGRAD43_TAPS,
                                    cut->blocks * lanes, in);
        else
            c->loops->spread_weight(u, cut->u_apart,
                                    c->scratch + cut->work +
                                        (b - begin) * in * lanes * WINOGRAD43_TAPS,
                                    c->w + b * in * lanes * WINOGRAD43_TAPS, in);
    }
}

/* Output channels [begin, end) of tiles whose patches are in V. */
static void winograd43_convolve_group(const winograd43_convolution *c, int64_t begin, int64_t end,
                                      int64_t first, int64_t last)
{
    const winograd43_cut *cut = c->cut;
    const int64_t tiles = last - first, lanes = c->loops->lanes;

    CO_PARALLEL_FOR(c->threads)
    for (int64_t e = 0; e < WINOGRAD43_POINTS; e++)
        c->loops->multiply(
            c->scratch + cut->m + e * cut->m_apart, c->scratch + cut->v + e * cut->v_apart,
            c->scratch + cut->u + e * cut->u_apart, tiles, c->in_blocks, end - begin);
    CO_PARALLEL_FOR(c->threads)
    for (int64_t b = begin; b < end; b++)
        c->loops->gather_tile(c->y + b * winograd43_plane(c->loops, c->to), c->to,
                              c->scratch + cut->m + (b - begin) * tiles * lanes, cut->m_apart,
                              c->bias ? c->bias + b * lanes : NULL, first, last);
}

static void winograd43_convolve(const winograd43_convolution *c)
{
    const winograd43_cut *cut = c->cut;

    for (int64_t first = 0; first < cut->tiles; first += cut->chunk) {
        const int64_t last = first + cut->chunk < cut->tiles ? first + cut->chunk : cut->tiles;

        CO_PARALLEL_FOR(c->threads)
        for (int64_t b = 0; b < c->in_blocks; b++)
            c->loops->spread_patch(c->scratch + cut->v + b * (last - first) * c->loops->lanes,
                                   cut->v_apart, c->x + b * winograd43_plane(c->loops, c->from),
                                   c->from, first, last);
        for (int64_t begin = 0; begin < cut->blocks; begin += cut->group) {
            const int64_t end = begin + cut->group < cut->blocks ? begin + cut->group : cut->blocks;

            if (first == 0)
                winograd43_transform_weights(c, begin, end);
            winograd43_convolve_group(c, begin, end, first, last);
        }
    }
}

static co_status winograd43_forward(co_call *call, const co_run *run)
{
    const co_conv2d_attr *a = call->attr;
    const winograd43 *self = call->self;
    winograd43_convolution c = {.loops = self->loops,
                                .cut = &self->forward,
                                .from = &self->patches,
                                .to = &self->outputs,
                                .in_blocks = self->in_blocks,
                                .x = cpu_address(&self->src, call),
                                .w = call->param[0].data,
                                .bias = a->bias ? call->param[1].data : NULL,
                                .y = call->out[0]->data,
                                .scratch = (float *)((char *)call->scratch + self->forward_at),
                                .threads = cpu_threads(call)};

    (void)run;
    cpu_bring(&self->src, call, c.threads);
    winograd43_convolve(&c);
    return CO_OK;
}

static void winograd43_find_gradient(const winograd43 *self, const co_call *call)
{
    const winograd43_convolution c = {.loops = self->loops,
                                      .cut = &self->back,
                                      .from = &self->back_patches,
                                      .to = &self->back_tiles,
                                      .in_blocks = self->out_blocks,
                                      .x = cpu_address(&self->grad_out, call),
                                      .w = call->param[0].data,
                                      .y = call->grad_in[0]->data,
                                      .scratch =
                                          (float *)((char *)call->scratch + self->backward_at),
                                      .turned = true,
                                      .threads = cpu_threads(call)};

    winograd43_convolve(&c);
}

/* Transform the input's tiles of a chunk into V, and dy's into M. */
static void winograd43_transform_chunk(const winograd43 *self, const co_call *call, float *scratch,
                                       int64_t first, int64_t last, int threads)
{
    const co_conv2d_attr *a = call->attr;
    float *bias = a->bias ? call->grad_param[1].data : NULL;
    const winograd43_cut *cut = &self->weight;
    const int64_t ins = self->in_blocks, lanes = self->loops->lanes, line = (last - first) * lanes;
    const char *x = cpu_address(&self->back_src, call), *dy = cpu_address(&self->grad_out, call);

    CO_PARALLEL_FOR(threads)
    for (int64_t b = 0; b < ins + self->out_blocks; b++) {
        if (b < ins)
            self->loops->spread_patch(scratch + cut->v + b * line, cut->v_apart,
                                      x + b * winograd43_plane(self->loops, &self->patches),
                                      &self->patches, first, last);
        else
            self->loops->spread_tile(scratch + cut->m + (b - ins) * line, cut->m_apart,
                                     bias ? bias + (b - ins) * lanes : NULL,
                                     dy + (b - ins) * winograd43_plane(self->loops, &self->outputs),
                                     &self->outputs, first, last);
    }
}

static void winograd43_correlate_group(const winograd43 *self, const co_call *call, float *scratch,
                                       int64_t begin, int64_t end, int64_t first, int64_t last,
                                       bool accumulate, int threads)
{
    const winograd43_cut *cut = &self->weight;
    const int64_t lanes = self->loops->lanes;
    const int64_t in = self->in_blocks * lanes, line = (last - first) * lanes;
    float *dw = call->grad_param[0].data;

    CO_PARALLEL_FOR(threads)
    for (int64_t e = 0; e < WINOGRAD43_POINTS; e++)
        self->loops->correlate(scratch + cut->u + e * cut->u_apart,
                               scratch + cut->v + e * cut->v_apart,
                               scratch + cut->m + e * cut->m_apart + begin * line, last - first,
                               self->in_blocks, end - begin, first > 0);
    if (last < cut->tiles)
        return;
    CO_PARALLEL_FOR(threads)
    for (int64_t b = begin; b < end; b++)
        self->loops->gather_weight(dw + b * in * lanes * WINOGRAD43_TAPS,
                                   scratch + cut->u + (b - begin) * in * lanes, cut->u_apart,
                                   scratch + cut->work + (b - begin) * in * lanes * WINOGRAD43_TAPS,
                                   in, accumulate);
}

static void winograd43_find_weight(const winograd43 *self, const co_call *call, bool accumulate)
{
    const winograd43_cut *cut = &self->weight;
    float *scratch = (float *)((char *)call->scratch + self->backward_at);
    const int threads = cpu_threads(call);

    if (call->n_param > 1 && !accumulate)
        memset(call->grad_param[1].data, 0, call->grad_param[1].bytes);
    for (int64_t first = 0; first < cut->tiles; first += cut->chunk) {
        const int64_t last = first + cut->chunk < cut->tiles ? first + cut->chunk : cut->tiles;

        winograd43_transform_chunk(self, call, scratch, first, last, threads);
        for (int64_t begin = 0; begin < cut->blocks; begin += cut->group)
            winograd43_correlate_group(self, call, scratch, begin,
                                       begin + cut->group < cut->blocks ? begin + cut->group
                                                                        : cut->blocks,
                                       first, last, accumulate, threads);
    }
}

static co_status winograd43_backward(co_call *call, const co_run *run)
{
    const winograd43 *self = call->self;
    const int threads = cpu_threads(call);

    cpu_bring(&self->back_src, call, threads);
    cpu_bring(&self->grad_out, call, threads);
    winograd43_find_weight(self, call, run->accumulate);
    if (call->grad_in[0])
        winograd43_find_gradient(self, call);
    return CO_OK;
}

const co_kernel co_cpu_winograd = {
    .op = "conv2d",
    .name = "winograd",
    .reads = CPU_READS,
    .self_size = sizeof(winograd43),
    .half = CPU_HALF,
    .supports = winograd43_supports,
    .plan = winograd43_plan,
    .plan_backward = winograd43_plan_backward,
    .forward = winograd43_forward,
    .backward = winograd43_backward,
    .yields_half = true,
};
