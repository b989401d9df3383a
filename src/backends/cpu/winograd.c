/*
 * winograd.c - 3x3 and 5x5 convolution of stride 1 with the loops of kernels/winograd: blocking for
 * the caches, and the order of the stages.
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
#include "kernels/winograd/winograd.h"

/* Approximate size of V and M of a chunk: half of a typical L2 cache. */
#define WINOGRAD_CHUNK_BYTES (1 << 19)
#define WINOGRAD_MIN_CHUNK   28 /* in tiles: two rows of a product */
/* From this size of the weights on, U is computed in groups of about WINOGRAD_GROUP_BYTES, of
   which there are WINOGRAD_DEPTH_BYTES at a time, and V and M may take WINOGRAD_FAR_BYTES,
   because a group needs all tiles. */
#define WINOGRAD_MAX_WEIGHT  (1 << 24)
#define WINOGRAD_GROUP_BYTES (1 << 22)
#define WINOGRAD_DEPTH_BYTES (1 << 19)
#define WINOGRAD_FAR_BYTES   (3 << 23)

#define WINOGRAD_MIN_LARGE     8  /* tiles of more than 4 x 4 outputs, in a batch */
#define WINOGRAD_HALF_CHANNELS 64 /* input and output, for bf16 tensors */

/* How a product is split to fit the caches, and its scratch memory; offsets in floats. */
typedef struct winograd_cut {
    int64_t tiles, chunk;              /* in total, and per chunk */
    int64_t blocks, group;             /* of output channels: in total, and per group */
    int64_t depth;                     /* blocks of input channels whose U is there at a time */
    int64_t v_apart, m_apart, u_apart; /* floats between points; M also for dy's tiles */
    int64_t points;                    /* of a tile */
    int64_t v, m, u, work;             /* offsets */
    int64_t floats;
} winograd_cut;

typedef struct winograd {
    const winograd_loops *loops;
    int64_t in_blocks, out_blocks;
    winograd_grid patches, outputs;         /* forward: on the input, on the output */
    winograd_grid back_patches, back_tiles; /* input gradient: on dy, on dx */
    winograd_cut forward, back, weight;
    cpu_operand src, back_src, grad_out; /* in blocks */
    size_t forward_at, backward_at;      /* in scratch */
} winograd;

/* Measured: AVX-512's bf16 instructions multiply twice as fast as fp32, and direct kernels still
   take 1.05 to 1.5 times as long. With AMX they do not. */
static bool winograd_pays_half(const co_call *call)
{
    return !co_isa_has(CO_ISA_AMX) && call->in[0]->shape.dim[1] >= WINOGRAD_HALF_CHANNELS &&
           call->out[0]->shape.dim[1] >= WINOGRAD_HALF_CHANNELS;
}

static bool winograd_supports(const co_call *call, const char **why)
{
    const co_conv2d_attr *a = call->attr;
    const winograd_loops *loops = KERNELS_CHOOSE(winograd_loops, NULL);

    *why = KERNELS_LACK;
    if (!loops || !cpu_takes(call, why) || !conv2d_suits_winograd(call, why))
        return false;
    *why = "its channels do not fill vectors";
    if (call->in[0]->shape.dim[1] % loops->lanes || call->out[0]->shape.dim[1] % loops->lanes)
        return false;
    *why = "its padding is larger than its kernel's reach";
    if (a->p[0] >= a->k[0] || a->p[1] >= a->k[1])
        return false;
    *why = "direct convolution in bf16 is faster here";
    return call->in[0]->dtype == CO_F32 || winograd_pays_half(call);
}

static int64_t winograd_divide_up(int64_t n, int64_t by)
{
    return (n + by - 1) / by;
}

/* Of a kernel. */
static int64_t winograd_taps(const winograd_loops *loops)
{
    return (int64_t)loops->side * loops->side;
}

static int64_t winograd_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#ifdef CO_KERNELS_X86
/* Larger tiles where they save a tenth of the products: they round more, and transform more. */
static const winograd_loops *winograd_find_half(const co_shape *out)
{
    static const winograd_loops *const all[] = {&winograd_loops_bf16, &winograd_loops_bf16_7,
                                                &winograd_loops_bf16_8};
    const winograd_loops *best = NULL;
    int64_t least = 0;

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        const int64_t tiles = winograd_divide_up(out->dim[2], all[i]->tile) *
                              winograd_divide_up(out->dim[3], all[i]->tile);
        const int64_t products = tiles * all[i]->points;

        if (!best || (products * 10 < least * 9 && tiles * out->dim[0] >= WINOGRAD_MIN_LARGE)) {
            least = products;
            best = all[i];
        }
    }
    return best;
}
#endif

static const winograd_loops *winograd_find_loops(const co_call *call)
{
    const bool wide = ((const co_conv2d_attr *)call->attr)->k[0] == 5;

#ifdef CO_KERNELS_X86
    if (call->in[0]->dtype == CO_BF16)
        return wide ? &winograd5x5_loops_bf16 : winograd_find_half(&call->out[0]->shape);
#endif
    return wide ? KERNELS_CHOOSE(winograd5x5_loops, NULL) : KERNELS_CHOOSE(winograd_loops, NULL);
}

/* --- planning --- */

/* Tiles that cover `outputs` on an image of `shape`; the first starts at (-top, -left). */
static winograd_grid winograd_lay_grid(const winograd_loops *loops, const co_shape *shape,
                                       const co_shape *outputs, int64_t top, int64_t left)
{
    const int64_t h = shape->dim[2], w = shape->dim[3];

    return (winograd_grid){.h = h,
                           .w = w,
                           .top = -top,
                           .left = -left,
                           .rows = winograd_divide_up(outputs->dim[2], loops->tile),
                           .columns = winograd_divide_up(outputs->dim[3], loops->tile),
                           .image = shape->dim[1] * h * w};
}

/* An odd number of vectors, so that the points of a tile do not map to the same cache set. */
static int64_t winograd_apart(int64_t vectors, int64_t lanes)
{
    return (vectors | 1) * lanes;
}

/* Split a product from `in` to `out` blocks over `tiles` tiles. `all`: M holds the tiles of all
   outputs. `work` holds a row of weights per block. */
static winograd_cut winograd_cut_product(const winograd_loops *loops, int64_t tiles, int64_t in,
                                         int64_t out, bool all)
{
    const int64_t lanes = loops->lanes, points = loops->points;
    const int64_t line = points * lanes * (int64_t)sizeof(float);
    const int64_t weight = line * in * lanes;
    const bool far =
        weight * out > WINOGRAD_MAX_WEIGHT && line * (in + out) * tiles <= WINOGRAD_FAR_BYTES;
    const int64_t most = WINOGRAD_CHUNK_BYTES / (line * (in + out)),
                  group = WINOGRAD_GROUP_BYTES / weight;
    winograd_cut cut = {
        .tiles = tiles, .chunk = tiles, .blocks = out, .group = out, .depth = in, .points = points};

    if (far) {
        cut.group = group > 2 ? group / 2 * 2 : 2;
        cut.depth = winograd_divide_up(WINOGRAD_DEPTH_BYTES, line * lanes * cut.group);
    } else
        cut.chunk = winograd_divide_up(
            tiles,
            winograd_divide_up(tiles, most > WINOGRAD_MIN_CHUNK ? most : WINOGRAD_MIN_CHUNK));
    cut.depth = winograd_least(cut.depth, in);
    cut.group = winograd_least(cut.group, out);
    cut.v_apart = winograd_apart(in * cut.chunk, lanes);
    cut.m_apart = winograd_apart((all ? out : cut.group) * cut.chunk, lanes);
    cut.u_apart = winograd_apart(cut.group * cut.depth * lanes, lanes);
    cut.m = cut.v + points * cut.v_apart;
    cut.u = cut.m + points * cut.m_apart;
    cut.work = cut.u + points * cut.u_apart;
    cut.floats = cut.work + cut.group * cut.depth * lanes * lanes * winograd_taps(loops);
    return cut;
}

static size_t winograd_take_scratch(co_call *call, size_t *used, int64_t floats)
{
    return cpu_take_scratch(call, used, (size_t)floats * sizeof(float));
}

static co_status winograd_plan(co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const co_shape *in = &call->in[0]->shape, *out = &call->out[0]->shape;
    winograd *self = call->self;
    co_layout blocked;
    size_t used = 0;
    int lanes;

    self->loops = winograd_find_loops(call);
    lanes = self->loops->lanes;
    blocked = cpu_blocks(lanes);
    self->in_blocks = in->dim[1] / lanes;
    self->out_blocks = out->dim[1] / lanes;
    self->patches = winograd_lay_grid(self->loops, in, out, a->p[0], a->p[1]);
    self->outputs = winograd_lay_grid(self->loops, out, out, 0, 0);
    self->src = cpu_plan_operand(call, &used, call->in[0], blocked);
    cpu_set_layout(call->out[0], blocked);
    self->forward =
        winograd_cut_product(self->loops, in->dim[0] * self->outputs.rows * self->outputs.columns,
                             self->in_blocks, self->out_blocks, false);
    self->forward_at = winograd_take_scratch(call, &used, self->forward.floats);
    return CO_OK;
}

static co_status winograd_plan_backward(co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const co_shape *in = &call->in[0]->shape, *out = &call->out[0]->shape;
    winograd *self = call->self;
    const co_layout blocked = cpu_blocks(self->loops->lanes);
    size_t used = 0;
    int64_t floats;

    self->back_src = cpu_plan_operand(call, &used, call->in[0], blocked);
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], blocked);
    self->weight = winograd_cut_product(self->loops, self->forward.tiles, self->in_blocks,
                                        self->out_blocks, true);
    floats = self->weight.floats;
    if (call->grad_in[0]) {
        cpu_set_layout(call->grad_in[0], blocked);
        self->back_patches =
            winograd_lay_grid(self->loops, out, in, a->k[0] - 1 - a->p[0], a->k[1] - 1 - a->p[1]);
        self->back_tiles = winograd_lay_grid(self->loops, in, in, 0, 0);
        self->back = winograd_cut_product(
            self->loops, in->dim[0] * self->back_tiles.rows * self->back_tiles.columns,
            self->out_blocks, self->in_blocks, false);
        if (floats < self->back.floats)
            floats = self->back.floats;
    }
    self->backward_at = winograd_take_scratch(call, &used, floats);
    return CO_OK;
}

/* --- running --- */

/* Bytes per block of channels of an image. */
static int64_t winograd_plane(const winograd_loops *loops, const winograd_grid *grid)
{
    return grid->h * grid->w * loops->lanes * (int64_t)loops->cell;
}

/* y = x * w, forward; or backward, with the weight rotated by 180 degrees (`turned`). */
typedef struct winograd_convolution {
    const winograd_loops *loops;
    const winograd_cut *cut;
    const winograd_grid *from, *to;
    int64_t in_blocks;
    const char *x;
    const float *w, *bias;
    char *y;
    float *scratch;
    bool turned;
    int threads;
} winograd_convolution;

/* Input channels [from, to) of output channels [begin, end). */
static void winograd_transform_weights(const winograd_convolution *c, int64_t begin, int64_t end,
                                       int64_t from, int64_t to)
{
    const winograd_cut *cut = c->cut;
    const int64_t lanes = c->loops->lanes, taps = lanes * winograd_taps(c->loops),
                  in = (to - from) * lanes;
    const int64_t row = (c->turned ? cut->blocks : c->in_blocks) * taps;

    CO_PARALLEL_FOR(c->threads)
    for (int64_t b = begin; b < end; b++) {
        float *u = c->scratch + cut->u + (b - begin) * in * lanes;

        if (c->turned)
            c->loops->spread_turned(u, cut->u_apart, c->w + b * taps + from * lanes * row, row, in);
        else
            c->loops->spread_weight(u, cut->u_apart,
                                    c->scratch + cut->work + (b - begin) * in * taps,
                                    c->w + b * lanes * row + from * taps, row, in);
    }
}

/* Output channels [begin, end) of tiles whose patches are in V. */
static void winograd_convolve_group(const winograd_convolution *c, int64_t begin, int64_t end,
                                    int64_t first, int64_t last)
{
    const winograd_cut *cut = c->cut;
    const int64_t tiles = last - first, lanes = c->loops->lanes;

    for (int64_t from = 0; from < c->in_blocks; from += cut->depth) {
        const int64_t to = winograd_least(from + cut->depth, c->in_blocks);

        if (first == 0)
            winograd_transform_weights(c, begin, end, from, to);
        CO_PARALLEL_FOR(c->threads)
        for (int64_t e = 0; e < cut->points; e++)
            c->loops->multiply(c->scratch + cut->m + e * cut->m_apart,
                               c->scratch + cut->v + e * cut->v_apart + from * tiles * lanes,
                               c->scratch + cut->u + e * cut->u_apart, tiles, to - from,
                               end - begin, from > 0);
    }
    CO_PARALLEL_FOR(c->threads)
    for (int64_t b = begin; b < end; b++)
        c->loops->gather_tile(c->y + b * winograd_plane(c->loops, c->to), c->to,
                              c->scratch + cut->m + (b - begin) * tiles * lanes, cut->m_apart,
                              c->bias ? c->bias + b * lanes : NULL, first, last);
}

static void winograd_convolve(const winograd_convolution *c)
{
    const winograd_cut *cut = c->cut;

    for (int64_t first = 0; first < cut->tiles; first += cut->chunk) {
        const int64_t last = winograd_least(first + cut->chunk, cut->tiles);

        CO_PARALLEL_FOR(c->threads)
        for (int64_t b = 0; b < c->in_blocks; b++)
            c->loops->spread_patch(c->scratch + cut->v + b * (last - first) * c->loops->lanes,
                                   cut->v_apart, c->x + b * winograd_plane(c->loops, c->from),
                                   c->from, first, last);
        for (int64_t begin = 0; begin < cut->blocks; begin += cut->group)
            winograd_convolve_group(c, begin, winograd_least(begin + cut->group, cut->blocks),
                                    first, last);
    }
}

static co_status winograd_forward(co_call *call, const co_run *run)
{
    const co_conv2d_attr *a = call->attr;
    const winograd *self = call->self;
    winograd_convolution c = {.loops = self->loops,
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
    winograd_convolve(&c);
    return CO_OK;
}

static void winograd_find_gradient(const winograd *self, const co_call *call)
{
    const winograd_convolution c = {.loops = self->loops,
                                    .cut = &self->back,
                                    .from = &self->back_patches,
                                    .to = &self->back_tiles,
                                    .in_blocks = self->out_blocks,
                                    .x = cpu_address(&self->grad_out, call),
                                    .w = call->param[0].data,
                                    .y = call->grad_in[0]->data,
                                    .scratch = (float *)((char *)call->scratch + self->backward_at),
                                    .turned = true,
                                    .threads = cpu_threads(call)};

    winograd_convolve(&c);
}

/* Transform the input's tiles of a chunk into V, and dy's into M. */
static void winograd_transform_chunk(const winograd *self, const co_call *call, float *scratch,
                                     int64_t first, int64_t last, int threads)
{
    const co_conv2d_attr *a = call->attr;
    float *bias = a->bias ? call->grad_param[1].data : NULL;
    const winograd_cut *cut = &self->weight;
    const int64_t ins = self->in_blocks, lanes = self->loops->lanes, line = (last - first) * lanes;
    const char *x = cpu_address(&self->back_src, call), *dy = cpu_address(&self->grad_out, call);

    CO_PARALLEL_FOR(threads)
    for (int64_t b = 0; b < ins + self->out_blocks; b++) {
        if (b < ins)
            self->loops->spread_patch(scratch + cut->v + b * line, cut->v_apart,
                                      x + b * winograd_plane(self->loops, &self->patches),
                                      &self->patches, first, last);
        else
            self->loops->spread_tile(scratch + cut->m + (b - ins) * line, cut->m_apart,
                                     bias ? bias + (b - ins) * lanes : NULL,
                                     dy + (b - ins) * winograd_plane(self->loops, &self->outputs),
                                     &self->outputs, first, last);
    }
}

/* Blocks of inputs [from, to) and of outputs [begin, end), tiles [first, last). */
typedef struct winograd_part {
    int64_t from, to, begin, end, first, last;
} winograd_part;

static void winograd_correlate_part(const winograd *self, const co_call *call, float *scratch,
                                    const winograd_part *part, bool accumulate)
{
    const winograd_cut *cut = &self->weight;
    const int threads = cpu_threads(call);
    const int64_t lanes = self->loops->lanes, taps = lanes * winograd_taps(self->loops);
    const int64_t in = (part->to - part->from) * lanes, row = self->in_blocks * taps;
    const int64_t line = (part->last - part->first) * lanes;
    float *dw = call->grad_param[0].data;

    CO_PARALLEL_FOR(threads)
    for (int64_t e = 0; e < cut->points; e++)
        self->loops->correlate(scratch + cut->u + e * cut->u_apart,
                               scratch + cut->v + e * cut->v_apart + part->from * line,
                               scratch + cut->m + e * cut->m_apart + part->begin * line,
                               part->last - part->first, part->to - part->from,
                               part->end - part->begin, part->first > 0);
    if (part->last < cut->tiles)
        return;
    CO_PARALLEL_FOR(threads)
    for (int64_t b = part->begin; b < part->end; b++)
        self->loops->gather_weight(dw + b * lanes * row + part->from * taps,
                                   scratch + cut->u + (b - part->begin) * in * lanes, cut->u_apart,
                                   scratch + cut->work + (b - part->begin) * in * taps, row, in,
                                   accumulate);
}

static void winograd_find_weight(const winograd *self, const co_call *call, bool accumulate)
{
    const winograd_cut *cut = &self->weight;
    float *scratch = (float *)((char *)call->scratch + self->backward_at);
    const int threads = cpu_threads(call);
    winograd_part part;

    if (call->n_param > 1 && !accumulate)
        memset(call->grad_param[1].data, 0, call->grad_param[1].bytes);
    for (part.first = 0; part.first < cut->tiles; part.first = part.last) {
        part.last = winograd_least(part.first + cut->chunk, cut->tiles);
        winograd_transform_chunk(self, call, scratch, part.first, part.last, threads);
        for (part.begin = 0; part.begin < cut->blocks; part.begin = part.end) {
            part.end = winograd_least(part.begin + cut->group, cut->blocks);
            for (part.from = 0; part.from < self->in_blocks; part.from = part.to) {
                part.to = winograd_least(part.from + cut->depth, self->in_blocks);
                winograd_correlate_part(self, call, scratch, &part, accumulate);
            }
        }
    }
}

static co_status winograd_backward(co_call *call, const co_run *run)
{
    const winograd *self = call->self;
    const int threads = cpu_threads(call);

    cpu_bring(&self->back_src, call, threads);
    cpu_bring(&self->grad_out, call, threads);
    winograd_find_weight(self, call, run->accumulate);
    if (call->grad_in[0])
        winograd_find_gradient(self, call);
    return CO_OK;
}

const co_kernel co_cpu_winograd = {
    .op = "conv2d",
    .name = "winograd",
    .reads = CPU_READS,
    .self_size = sizeof(winograd),
    .half = CPU_HALF,
    .supports = winograd_supports,
    .plan = winograd_plan,
    .plan_backward = winograd_plan_backward,
    .forward = winograd_forward,
    .backward = winograd_backward,
    .yields_half = true,
};
