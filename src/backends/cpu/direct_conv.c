/*
 * direct_conv.c - convolution by its definition, of any stride, size of kernel, padding and
 * dilation, by the loops of kernels/direct_conv: how its work is cut for the caches and shared by
 * threads.
 *
 * Weights are plain in the flat store; each pass packs them into blocks of channels. Images that
 * need padding, or that a stride skips through, are copied a few samples at a time. Each sum is
 * taken by one thread in one order, so the number of threads changes no bit.
 */
#include "backends/cpu/direct_conv.h"

#include <string.h>

#include "core/half.h"
#include "core/isa.h"
#include "core/parallel.h"

#define DIRECT_MOST_STRIDE  16        /* a gradient has a part for each rest */
#define DIRECT_CHUNK_WORDS  (1 << 17) /* of an image, which stay in a second-level cache */
#define DIRECT_CHUNK_PIXELS 128       /* of x and dy, which stay in a first-level cache meanwhile */
#define DIRECT_LEAST_PIXELS 28

typedef struct direct {
    const direct_conv_loops *loops;
    direct_pass forward, data, pairs;
    cpu_operand src, back_src, grad_out;
    direct_conv_weight weight;
    int64_t panel;                             /* floats of a block of packed weights */
    size_t weight_at, bias_at, copy_at;        /* in scratch, forward */
    size_t gradient_at, back_copy_at, dy_at;   /* backward: the weight's */
    size_t packed_at, turned_at, grad_copy_at; /* and the input's */
} direct;

/* Measured: of small images as many products are with padding as bf16 could save. */
static bool direct_is_small(const co_call *call)
{
    co_tensor in = *call->in[0];
    co_call wide = *call;
    const char *why;

    if (in.dtype == CO_F32)
        return false;
    in.dtype = CO_F32;
    wide.in[0] = &in;
    return co_cpu_small_conv.supports(&wide, &why);
}

static bool direct_supports(const co_call *call, const char **why)
{
    const co_conv2d_attr *a = call->attr;

    if (!cpu_takes(call, why))
        return false;
    *why = "images as small as its are computed faster in fp32";
    if (direct_is_small(call))
        return false;
    *why = "its channels are in groups";
    if (a->groups != 1)
        return false;
    *why = "its stride is very large";
    return a->s[0] <= DIRECT_MOST_STRIDE && a->s[1] <= DIRECT_MOST_STRIDE;
}

/* --- planning --- */

static size_t direct_take(co_call *call, size_t *used, int64_t words)
{
    return cpu_take_scratch(call, used, (size_t)words * sizeof(float));
}

static int64_t direct_copy_size(const direct_pass *pass)
{
    return pass->image.copied ? pass->group * pass->image.sample : 0;
}

static int64_t direct_square(const direct *self)
{
    return (int64_t)self->loops->lanes * self->loops->lanes;
}

static bool direct_is_half(const direct *self)
{
    return self->loops->cell < sizeof(float);
}

static co_layout direct_source(const direct *self)
{
    return self->weight.blocks ? cpu_blocks(self->loops->lanes) : cpu_plain();
}

static const direct_conv_loops *direct_find_loops(co_dtype dtype)
{
#ifdef CO_KERNELS_X86
    if (dtype == CO_BF16)
        return &direct_conv_loops_bf16;
#else
    (void)dtype;
#endif
    return direct_conv_choose();
}

static co_status direct_plan(co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    direct *self = call->self;
    size_t used = 0;
    int lanes;

    self->loops = direct_find_loops(call->in[0]->dtype);
    lanes = self->loops->lanes;
    self->weight = (direct_conv_weight){.out = a->out,
                                        .in = call->in[0]->shape.dim[1],
                                        .taps = a->k[0] * a->k[1],
                                        .blocks = !direct_is_few(call, self->loops)};
    CO_TRY(direct_plan_forward(&self->forward, call, self->loops));
    self->panel = self->forward.steps * lanes * (self->weight.blocks ? lanes : 1);
    self->src = cpu_plan_operand(call, &used, call->in[0], direct_source(self));
    self->weight_at = direct_take(call, &used, self->forward.blocks * self->panel);
    self->bias_at = direct_take(call, &used, self->forward.blocks * lanes);
    self->copy_at = direct_take(call, &used, direct_copy_size(&self->forward));
    cpu_set_layout(call->out[0], cpu_blocks(lanes));
    return CO_OK;
}

/* The pass of the weight's gradient, which reads pairs of pixels or what forward has read. */
static const direct_pass *direct_weight_pass(const direct *self)
{
    return direct_is_half(self) && self->weight.blocks ? &self->pairs : &self->forward;
}

/* The gradient of the weight is computed first, then that of the input in the same memory. */
static co_status direct_plan_backward(co_call *call)
{
    direct *self = call->self;
    const int lanes = self->loops->lanes;
    const direct_pass *weight = direct_weight_pass(self);
    size_t used = 0, mark;
    int64_t all;

    if (weight == &self->pairs)
        CO_TRY(direct_plan_pairs(&self->pairs, call, self->loops));
    self->back_src = cpu_plan_operand(call, &used, call->in[0], direct_source(self));
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], cpu_blocks(lanes));
    mark = used;
    self->gradient_at = direct_take(call, &used, weight->blocks * (self->panel + lanes));
    self->back_copy_at = direct_take(call, &used, direct_copy_size(weight));
    self->dy_at =
        direct_take(call, &used, direct_is_half(self) ? weight->group * weight->y_sample : 0);
    if (!call->grad_in[0])
        return CO_OK;
    cpu_set_layout(call->grad_in[0], cpu_blocks(lanes));
    CO_TRY(direct_plan_data(&self->data, call, self->loops));
    all = self->data.blocks * self->data.steps * direct_square(self);
    used = mark;
    self->packed_at = direct_take(call, &used,
                                  self->data.blocks * self->data.image.planes * self->weight.taps *
                                      direct_square(self));
    self->turned_at = direct_take(call, &used, all);
    self->grad_copy_at = direct_take(call, &used, direct_copy_size(&self->data));
    return CO_OK;
}

static float *direct_scratch(const co_call *call, size_t at)
{
    return (float *)(void *)((char *)call->scratch + at);
}

/* --- images --- */

/* Sample `n` of an image in the tensor's memory. */
static const char *direct_sample(const direct *self, const direct_image *image, const void *x,
                                 int64_t n)
{
    return (const char *)x +
           (size_t)(n * image->planes * image->h * image->w * image->numbers) * self->loops->cell;
}

/* What a pass reads of samples `first` to `first` + `n`: the tensor, or copies at `to`. */
static const float *direct_bring(const direct *self, const direct_image *image, float *to,
                                 const void *x, int64_t first, int64_t n, int threads)
{
    const int64_t phases = image->phases[0] * image->phases[1];
    const size_t plane = (size_t)(image->h * image->w * image->numbers) * self->loops->cell;
    const char *from = direct_sample(self, image, x, first);

    if (!image->copied)
        return (const float *)(const void *)from;
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < n * image->planes; i++)
        for (int64_t p = 0; p < phases; p++) {
            const int64_t row = p / image->phases[1] * image->phase_step[0] % image->step[0];
            const int64_t column = p % image->phases[1] * image->phase_step[1];
            const direct_conv_spread how = {
                .h = image->h,
                .w = image->w,
                .rows = image->rows,
                .columns = image->columns,
                .top = image->first[0] + row,
                .left = image->first[1] + (image->pairs ? column : column % image->step[1]),
                .step = image->step,
                .blocks = image->numbers > 1};
            float *copy = to + i * image->plane + p * (image->plane / phases);

            if (image->pairs)
                self->loops->pair(copy, from + (size_t)i * plane, &how);
            else
                self->loops->spread(copy, from + (size_t)i * plane, &how);
        }
    return to;
}

/* How many of the blocks from `block` on are computed at once. */
static int direct_columns(int64_t blocks, int64_t block)
{
    return (int)direct_least(blocks - block, DIRECT_CONV_TOGETHER);
}

/* Operands of a pass that gives images. */
typedef struct direct_run {
    const direct *self;
    const direct_pass *pass;
    const void *x;
    const float *weight, *bias;
    char *y;
    float *copies;
    int64_t n; /* samples */
    int threads;
} direct_run;

/* Some samples of a part; x has their images. */
static void direct_multiply_part(const direct_run *run, const direct_part *part, const float *x,
                                 char *y, int64_t samples)
{
    const direct_pass *pass = run->pass;
    const direct_conv_loops *loops = run->self->loops;
    const int64_t most = DIRECT_CHUNK_WORDS / (pass->image.planes * pass->image.width);
    const int64_t pieces =
        direct_count_pieces(&part->area, most > DIRECT_LEAST_PIXELS ? most : DIRECT_LEAST_PIXELS);
    const int64_t groups = direct_divide_up(pass->blocks, DIRECT_CONV_TOGETHER);
    const int64_t panel = part->sum.steps * loops->lanes * (part->sum.blocks ? loops->lanes : 1);

    CO_PARALLEL_FOR(run->threads)
    for (int64_t i = 0; i < samples * pieces * groups; i++) {
        const int64_t n = i / (pieces * groups), block = i % groups * DIRECT_CONV_TOGETHER;
        const direct_piece piece = direct_find_piece(&part->area, pieces, i / groups % pieces);
        const int64_t at =
            n * pass->y_sample + part->y_at + block * piece.area.y_block + piece.y_at;

        loops->multiply(y + (size_t)at * loops->cell, x + n * pass->image.sample + piece.x_at,
                        run->weight + part->w_at + block * panel, panel,
                        run->bias ? run->bias + block * loops->lanes : NULL,
                        direct_columns(pass->blocks, block), &piece.area, &part->sum);
    }
}

static void direct_multiply(const direct_run *run)
{
    const direct_pass *pass = run->pass;

    for (int64_t n = 0; n < run->n; n += pass->group) {
        const int64_t some = direct_least(pass->group, run->n - n);
        const float *x =
            direct_bring(run->self, &pass->image, run->copies, run->x, n, some, run->threads);

        for (int64_t p = 0; p < pass->parts; p++)
            direct_multiply_part(run, &pass->part[p], x,
                                 run->y + (size_t)(n * pass->y_sample) * run->self->loops->cell,
                                 some);
    }
}

/* --- forward --- */

/* A block of packed weights for products. */
static void direct_finish_weight(const direct *self, float *weight, int64_t floats, bool blocks)
{
    if (blocks && self->loops->halve)
        self->loops->halve(weight, weight, floats / 2);
}

static co_status direct_forward(co_call *call, const co_run *run)
{
    const co_conv2d_attr *a = call->attr;
    const direct *self = call->self;
    const int threads = cpu_threads(call);
    float *weight = direct_scratch(call, self->weight_at);
    float *bias = a->bias ? direct_scratch(call, self->bias_at) : NULL;
    const direct_run all = {.self = self,
                            .pass = &self->forward,
                            .x = cpu_address(&self->src, call),
                            .weight = weight,
                            .bias = bias,
                            .y = call->out[0]->data,
                            .copies = direct_scratch(call, self->copy_at),
                            .n = call->in[0]->shape.dim[0],
                            .threads = threads};

    (void)run;
    cpu_bring(&self->src, call, threads);
    CO_PARALLEL_FOR(threads)
    for (int64_t k = 0; k < self->forward.blocks; k++) {
        self->loops->pack(weight + k * self->panel, call->param[0].data, &self->weight, k);
        direct_finish_weight(self, weight + k * self->panel, self->panel, self->weight.blocks);
    }
    if (bias) {
        memset(bias, 0, (size_t)(self->forward.blocks * self->loops->lanes) * sizeof(float));
        memcpy(bias, call->param[1].data, (size_t)a->out * sizeof(float));
    }
    direct_multiply(&all);
    return CO_OK;
}

/* --- backward --- */

/* Some samples' part of the gradient of the weight: of two blocks of outputs and the steps of
   `sum`. */
static void direct_correlate_steps(const direct *self, float *dw, const float *x, const float *dy,
                                   int64_t samples, int columns, const direct_conv_sum *sum,
                                   bool add)
{
    const direct_pass *pass = direct_weight_pass(self);
    const direct_conv_area *area = &pass->part->area;
    const int64_t pixels = area->rows * area->pixels;
    const int64_t together =
        pixels < DIRECT_CHUNK_PIXELS ? direct_least(DIRECT_CHUNK_PIXELS / pixels, samples) : 1;
    const int64_t pieces = direct_count_pieces(area, DIRECT_CHUNK_PIXELS);

    for (int64_t n = 0; n < samples; n += together)
        for (int64_t i = 0; i < pieces; i++, add = true) {
            const direct_piece piece = direct_find_piece(area, pieces, i);
            const direct_conv_walk walk = {.samples = direct_least(together, samples - n),
                                           .rows = piece.area.rows,
                                           .pixels = piece.area.pixels,
                                           .x_sample = pass->image.sample,
                                           .x_row = area->x_row,
                                           .x_pixel = area->x_pixel,
                                           .dy_sample = pass->y_sample,
                                           .dy_row = area->y_row,
                                           .dy_block = area->y_block};

            self->loops->correlate(dw, self->panel, x + n * pass->image.sample + piece.x_at,
                                   dy + n * pass->y_sample + piece.y_at, columns, &walk, sum, add);
        }
}

static void direct_correlate(const direct *self, float *dw, const float *x, const float *dy,
                             int64_t samples, bool add, int threads)
{
    const direct_pass *pass = direct_weight_pass(self);
    const bool blocks = self->weight.blocks;
    const int64_t groups = direct_divide_up(pass->blocks, DIRECT_CONV_TOGETHER);
    const int64_t planes = blocks ? pass->image.planes : 1, steps = pass->steps / planes;
    const int64_t size = blocks ? direct_square(self) : self->loops->lanes;

    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < groups * planes; i++) {
        const int64_t block = i / planes * DIRECT_CONV_TOGETHER, first = i % planes * steps;
        const direct_conv_sum sum = {pass->at + first, steps, blocks};

        direct_correlate_steps(self, dw + block * self->panel + first * size, x,
                               dy + block * pass->part->area.y_block, samples,
                               direct_columns(pass->blocks, block), &sum, add);
    }
}

/* dy of some samples as words: its own memory, pairs of pixels, or floats. */
static const float *direct_bring_dy(const direct *self, float *to, const char *dy, int64_t samples,
                                    int threads)
{
    static const int64_t step[2] = {1, 1};
    const direct_pass *pass = direct_weight_pass(self);
    const int64_t plane = pass->to[0] * pass->to[1] * self->loops->lanes;
    const direct_conv_spread how = {.h = pass->to[0],
                                    .w = pass->to[1],
                                    .rows = pass->to[0],
                                    .columns = pass->to[1],
                                    .step = step,
                                    .blocks = true};

    if (!direct_is_half(self))
        return (const float *)(const void *)dy;
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < samples * pass->blocks; i++) {
        const char *from = dy + (size_t)(i * plane) * self->loops->cell;

        if (pass->image.pairs)
            self->loops->pair(to + i * (pass->y_sample / pass->blocks), from, &how);
        else
            co_half_widen(to + i * plane, (const uint16_t *)(const void *)from, (size_t)plane,
                          CO_BF16);
    }
    return to;
}

static void direct_find_bias(const direct *self, const co_call *call, const co_run *run,
                             const char *dy, float *sum, int threads)
{
    const int lanes = self->loops->lanes;
    const int64_t *dim = call->out[0]->shape.dim;
    const int64_t pixels = dim[2] * dim[3], blocks = self->forward.blocks;
    const size_t plane = (size_t)(pixels * lanes) * self->loops->cell;
    float *db = call->grad_param[1].data;

    memset(sum, 0, (size_t)(blocks * lanes) * sizeof(float));
    CO_PARALLEL_FOR(threads)
    for (int64_t k = 0; k < blocks; k++)
        for (int64_t n = 0; n < dim[0]; n++)
            self->loops->add_up(sum + k * lanes, dy + (size_t)(n * blocks + k) * plane, pixels);
    for (int64_t o = 0; o < self->weight.out; o++)
        db[o] = run->accumulate ? db[o] + sum[o] : sum[o];
}

static void direct_find_weight(const direct *self, const co_call *call, const co_run *run,
                               const char *dy, int threads)
{
    const direct_pass *pass = direct_weight_pass(self);
    const int64_t all = call->in[0]->shape.dim[0];
    const size_t dy_sample = call->out[0]->bytes / (size_t)all;
    float *dw = direct_scratch(call, self->gradient_at);

    for (int64_t n = 0; n < all; n += pass->group) {
        const int64_t some = direct_least(pass->group, all - n);
        const float *x = direct_bring(self, &pass->image, direct_scratch(call, self->back_copy_at),
                                      cpu_address(&self->back_src, call), n, some, threads);

        direct_correlate(self, dw, x,
                         direct_bring_dy(self, direct_scratch(call, self->dy_at),
                                         dy + (size_t)n * dy_sample, some, threads),
                         some, n > 0, threads);
    }
    CO_PARALLEL_FOR(threads)
    for (int64_t k = 0; k < pass->blocks; k++)
        self->loops->unpack(call->grad_param[0].data, dw + k * self->panel, &self->weight, k,
                            run->accumulate);
    if (call->n_param > 1)
        direct_find_bias(self, call, run, dy, dw + pass->blocks * self->panel, threads);
}

/* Weights by blocks of inputs: each part has its taps, and squares of outputs by inputs. */
static void direct_turn_weight(const direct *self, const co_call *call, float *packed,
                               float *turned, int threads)
{
    const direct_pass *pass = &self->data;
    const int64_t square = direct_square(self), taps = self->weight.taps;
    direct_conv_weight shape = self->weight;

    shape.blocks = true;
    CO_PARALLEL_FOR(threads)
    for (int64_t k = 0; k < pass->image.planes; k++)
        self->loops->pack(packed + k * pass->blocks * taps * square, call->param[0].data, &shape,
                          k);
    CO_PARALLEL_FOR(threads)
    for (int64_t k = 0; k < pass->blocks; k++)
        for (int64_t p = 0; p < pass->parts; p++) {
            const direct_conv_sum *sum = &pass->part[p].sum;
            const int64_t *tap = pass->tap + (sum->at - pass->at);
            float *to = turned + pass->part[p].w_at + k * sum->steps * square;

            for (int64_t s = 0; s < sum->steps; s++)
                self->loops->turn(
                    to + s * square,
                    packed + ((tap[s] / taps * pass->blocks + k) * taps + tap[s] % taps) * square);
            direct_finish_weight(self, to, sum->steps * square, true);
        }
}

static co_status direct_backward(co_call *call, const co_run *run)
{
    const direct *self = call->self;
    const int threads = cpu_threads(call);
    const void *dy = cpu_address(&self->grad_out, call);
    float *turned = direct_scratch(call, self->turned_at);
    const direct_run data = {.self = self,
                             .pass = &self->data,
                             .x = dy,
                             .weight = turned,
                             .y = call->grad_in[0] ? call->grad_in[0]->data : NULL,
                             .copies = direct_scratch(call, self->grad_copy_at),
                             .n = call->in[0]->shape.dim[0],
                             .threads = threads};

    cpu_bring(&self->back_src, call, threads);
    cpu_bring(&self->grad_out, call, threads);
    direct_find_weight(self, call, run, dy, threads);
    if (!call->grad_in[0])
        return CO_OK;
    direct_turn_weight(self, call, direct_scratch(call, self->packed_at), turned, threads);
    direct_multiply(&data);
    return CO_OK;
}

static void direct_fini(co_call *call)
{
    direct *self = call->self;

    direct_pass_free(&self->forward);
    direct_pass_free(&self->data);
    direct_pass_free(&self->pairs);
}

const co_kernel co_cpu_direct_conv = {
    .op = "conv2d",
    .name = "direct",
    .reads = CPU_READS,
    .self_size = sizeof(direct),
    .half = CPU_HALF,
    .supports = direct_supports,
    .plan = direct_plan,
    .plan_backward = direct_plan_backward,
    .forward = direct_forward,
    .backward = direct_backward,
    .fini = direct_fini,
    .yields_half = true,
};
