/*
 * direct_conv.c - convolution by its definition, of any stride, size of kernel, padding and
 * dilation, by the loops of kernels/direct_conv: what each pass needs and runs.
 *
 * Weights are plain in the flat store; each pass packs them into blocks of channels. In bf16 those
 * that forward has packed stay until backward, at half of the store's size. Images that need
 * padding, or that a stride skips through, are copied a few samples at a time. Each sum is taken by
 * one thread in one order, so the number of threads changes no bit.
 */
#include "backends/cpu/direct_conv.h"

#include <string.h>

#include "backends/cpu/conv2d_rules.h"
#include "core/half.h"
#include "core/isa.h"
#include "core/parallel.h"

#define DIRECT_MOST_STRIDE 16 /* a gradient has a part for each rest */
#define AMX_LEAST_CHANNELS 16

/* Measured: results of one pixel leave most of a product's registers empty. Where bf16 is
   multiplied in floats, other small images, too, are computed faster by kernels in fp32. */
static bool direct_is_small(const co_call *call)
{
    const int64_t *out = call->out[0]->shape.dim;
    co_tensor in = *call->in[0];
    co_call wide = *call;
    const char *why;

    if (in.dtype == CO_F32)
        return false;
    if (out[2] * out[3] > 1 && (co_isa_multiplies_bf16() || conv2d_suits_direct(call, &why)))
        return false;
    in.dtype = CO_F32;
    wide.in[0] = &in;
    return co_cpu_small_conv.supports(&wide, &why) ||
           (out[2] * out[3] > 1 && conv2d_suits_winograd(call, &why));
}

static bool direct_supports(const co_call *call, const char **why)
{
    const co_conv2d_attr *a = call->attr;

    if (!cpu_takes(call, why))
        return false;
    *why = "its result is small, and computed faster in fp32";
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
    return pass->image.copied
               ? direct_divide_up(pass->group, pass->image.samples) * pass->image.sample
               : 0;
}

/* Floats of a block of weights of few channels, before pairs of them are made; those of the last
   are with 0 if their number is odd. */
static int64_t direct_few_panel(const direct *self)
{
    const direct_conv_weight *weight = &self->weight;
    const int64_t channels = self->loops->join ? direct_divide_up(weight->in, 2) * 2 : weight->in;

    return channels * weight->taps * self->loops->lanes;
}

/* Threads that pack weights. */
static int direct_packers(const direct *self, const co_call *call)
{
    return (int)direct_least(cpu_threads(call), self->forward.blocks);
}

/* Floats of the blocks that are being packed, before pairs are made of them. */
static int64_t direct_room(const direct *self, const co_call *call, int64_t panel)
{
    return direct_has_pairs(self->loops) ? direct_packers(self, call) * panel : 0;
}

static co_layout direct_source(const direct *self)
{
    return self->weight.blocks ? cpu_blocks(self->loops->lanes) : cpu_plain();
}

const direct_conv_loops *direct_find_loops(co_dtype dtype)
{
#ifdef CO_KERNELS_X86
    if (dtype == CO_BF16)
        return co_isa_multiplies_bf16() ? &direct_conv_loops_bf16 : &direct_conv_loops_widened;
#else
    (void)dtype;
#endif
    return direct_conv_choose();
}

co_status direct_plan_with(co_call *call, const direct_conv_loops *loops)
{
    const co_conv2d_attr *a = call->attr;
    const int lanes = loops->lanes;
    direct *self = call->self;
    size_t used = 0;
    int64_t words;

    self->loops = loops;
    self->weight = (direct_conv_weight){.out = a->out,
                                        .in = call->in[0]->shape.dim[1],
                                        .taps = a->k[0] * a->k[1],
                                        .blocks = !direct_is_few(call, self->loops)};
    CO_TRY(direct_plan_forward(&self->forward, call, self->loops));
    self->panel =
        self->weight.blocks ? self->forward.steps * lanes * lanes : direct_few_panel(self);
    self->src = cpu_plan_operand(call, &used, call->in[0], direct_source(self));
    self->keeps = direct_has_pairs(self->loops) && self->weight.blocks && call->training;
    words = direct_words(self, self->forward.blocks * self->panel);
    if (self->keeps)
        call->workspace_bytes = (size_t)words * sizeof(float);
    else
        self->weight_at = direct_take(call, &used, words);
    self->room_at = direct_take(call, &used, direct_room(self, call, self->panel));
    self->bias_at = direct_take(call, &used, self->forward.blocks * lanes);
    self->copy_at = direct_take(call, &used, direct_copy_size(&self->forward));
    cpu_set_layout(call->out[0], cpu_blocks(lanes));
    return CO_OK;
}

static co_status direct_plan(co_call *call)
{
    return direct_plan_with(call, direct_find_loops(call->in[0]->dtype));
}

/* Floats of a block of outputs for the gradient of the input, which also has blocks of inputs where
   forward has few channels. */
static int64_t direct_back_panel(const direct *self)
{
    return self->data.blocks * self->weight.taps * direct_square(self);
}

/* Words of what the gradient of the weight reads of dy. */
static int64_t direct_dy_size(const direct *self)
{
    const direct_pass *weight = direct_weight_pass(self);

    if (self->loops->lines)
        return direct_lines_size(self, false);
    return self->loops->cell < sizeof(float)
               ? direct_divide_up(weight->group, weight->image.samples) * weight->y_sample
               : 0;
}

/* The gradient of the weight is computed first, then that of the input in the same memory. */
co_status direct_plan_backward(co_call *call)
{
    direct *self = call->self;
    const int lanes = self->loops->lanes;
    const direct_pass *weight = direct_weight_pass(self);
    size_t used = 0, mark;

    if (weight == &self->pairs)
        CO_TRY(direct_plan_pairs(&self->pairs, call, self->loops));
    self->back_src = cpu_plan_operand(call, &used, call->in[0], direct_source(self));
    self->grad_out = cpu_plan_operand(call, &used, call->grad_out[0], cpu_blocks(lanes));
    mark = used;
    self->gradient_at = direct_take(call, &used, weight->blocks * (self->panel + lanes));
    if (self->loops->lines)
        direct_plan_lines(self, call);
    self->back_copy_at = direct_take(
        call, &used, self->loops->lines ? direct_lines_size(self, true) : direct_copy_size(weight));
    self->dy_at = direct_take(call, &used, direct_dy_size(self));
    if (!call->grad_in[0])
        return CO_OK;
    cpu_set_layout(call->grad_in[0], cpu_blocks(lanes));
    CO_TRY(direct_plan_data(&self->data, call, self->loops));
    used = mark;
    if (!self->keeps) {
        const int64_t panel = direct_back_panel(self);

        self->packed_at =
            direct_take(call, &used, direct_words(self, self->forward.blocks * panel));
        self->back_room_at = direct_take(call, &used, direct_room(self, call, panel));
    }
    self->turned_at =
        direct_take(call, &used,
                    direct_words(self, self->data.blocks * self->data.steps * direct_square(self)));
    self->grad_copy_at = direct_take(call, &used, direct_copy_size(&self->data));
    return CO_OK;
}

/* --- forward --- */

/* How a pass packs the weights: blocks of outputs, of `panel` floats before pairs are made. */
typedef struct direct_packing {
    const direct *self;
    const float *weight;
    direct_conv_weight shape;
    int64_t panel;
    float *to;
    float *room; /* with bf16: a panel for each thread */
} direct_packing;

static void direct_pack_share(const direct_packing *how, int t, int threads)
{
    const direct *self = how->self;
    const direct_conv_weight *shape = &how->shape;
    const bool half = direct_has_pairs(self->loops);
    const int64_t lanes = self->loops->lanes, row = shape->taps * lanes;
    const co_range mine = co_parallel_part(self->forward.blocks, t, threads);

    for (int64_t k = mine.begin; k < mine.end; k++) {
        float *to = how->to + k * direct_words(self, how->panel);
        float *block = half ? how->room + t * how->panel : to;

        if (!shape->blocks && how->panel > shape->in * row)
            memset(block + shape->in * row, 0, (size_t)row * sizeof(float));
        self->loops->pack(block, how->weight, shape, k);
        if (half)
            self->loops->halve(to, block, how->panel / 2, shape->blocks ? lanes : row);
    }
}

static void direct_pack(const direct_packing *how, int threads)
{
    CO_PARALLEL_EACH(t, threads, direct_pack_share(how, t, threads));
}

const float *direct_bring_bias(const direct *self, const co_call *call, float *to)
{
    if (call->n_param < 2)
        return NULL;
    memset(to, 0, (size_t)(self->forward.blocks * self->loops->lanes) * sizeof(float));
    memcpy(to, call->param[1].data, (size_t)self->weight.out * sizeof(float));
    return to;
}

co_status direct_forward(co_call *call, const co_run *run)
{
    const direct *self = call->self;
    const int threads = cpu_threads(call);
    float *weight = self->keeps ? call->workspace : direct_scratch(call, self->weight_at);
    const direct_packing packing = {.self = self,
                                    .weight = call->param[0].data,
                                    .shape = self->weight,
                                    .panel = self->panel,
                                    .to = weight,
                                    .room = direct_scratch(call, self->room_at)};
    const direct_run all = {.self = self,
                            .pass = &self->forward,
                            .x = cpu_address(&self->src, call),
                            .weight = weight,
                            .bias =
                                direct_bring_bias(self, call, direct_scratch(call, self->bias_at)),
                            .y = call->out[0]->data,
                            .copies = direct_scratch(call, self->copy_at),
                            .n = call->in[0]->shape.dim[0],
                            .threads = threads};

    (void)run;
    cpu_bring(&self->src, call, threads);
    direct_pack(&packing, direct_packers(self, call));
    direct_multiply(&all);
    return CO_OK;
}

/* --- backward --- */

/* Weights by blocks of outputs, as forward has left them or packed again. */
static const float *direct_find_packed(const direct *self, const co_call *call)
{
    const direct_packing packing = {.self = self,
                                    .weight = call->param[0].data,
                                    .shape = {.out = self->weight.out,
                                              .in = self->weight.in,
                                              .taps = self->weight.taps,
                                              .blocks = true},
                                    .panel = direct_back_panel(self),
                                    .to = direct_scratch(call, self->packed_at),
                                    .room = direct_scratch(call, self->back_room_at)};

    if (self->keeps)
        return call->workspace;
    direct_pack(&packing, direct_packers(self, call));
    return packing.to;
}

/* Weights by blocks of inputs: each part has its taps, and squares of outputs by inputs. */
static void direct_turn_weight(const direct *self, const co_call *call, float *turned, int threads)
{
    const direct_pass *pass = &self->data;
    const int64_t square = direct_words(self, direct_square(self)), taps = self->weight.taps;
    const float *packed = direct_find_packed(self, call);

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
        }
}

co_status direct_backward(co_call *call, const co_run *run)
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
    direct_turn_weight(self, call, turned, threads);
    direct_multiply(&data);
    return CO_OK;
}

void direct_fini(co_call *call)
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

/* --- before other backends --- */

static bool direct_comes_first(const co_call *call, const char **why)
{
    return direct_supports(call, why) && conv2d_suits_direct(call, why);
}

const co_kernel co_cpu_direct_first = {
    .op = "conv2d",
    .name = "direct",
    .reads = CPU_READS,
    .self_size = sizeof(direct),
    .half = CPU_HALF,
    .supports = direct_comes_first,
    .plan = direct_plan,
    .plan_backward = direct_plan_backward,
    .forward = direct_forward,
    .backward = direct_backward,
    .fini = direct_fini,
    .yields_half = true,
};

/* --- with AMX --- */

#ifdef CO_KERNELS_X86
static co_status amx_plan(co_call *call)
{
    return direct_plan_with(call, &direct_conv_loops_amx);
}
#else
#define amx_plan direct_plan
#endif

/* With fewer channels most of a tile is padding. */
static bool amx_supports(const co_call *call, const char **why)
{
    *why = "this CPU has no AMX";
    if (!co_isa_has(CO_ISA_AMX))
        return false;
    *why = "its tensors are not bf16";
    if (call->in[0]->dtype != CO_BF16)
        return false;
    *why = "its channels are few";
    if (call->in[0]->shape.dim[1] < AMX_LEAST_CHANNELS)
        return false;
    return direct_supports(call, why);
}

const co_kernel co_cpu_amx_conv = {
    .op = "conv2d",
    .name = "amx",
    .reads = CPU_READS,
    .self_size = sizeof(direct),
    .half = CPU_HALF,
    .supports = amx_supports,
    .plan = amx_plan,
    .plan_backward = direct_plan_backward,
    .forward = direct_forward,
    .backward = direct_backward,
    .fini = direct_fini,
};
