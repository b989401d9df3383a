/*
 * small_conv.c - convolution of small images. With a 3 x 3 kernel, a third of the multiplications
 * on 4 x 4 pixels are with padding, and eight ninths on 1 x 1. Here each pixel is computed from
 * exactly the taps that meet the image, by matrix products over samples and channels.
 *
 * Weights are in the flat store's plain layout. Forward packs the taps used for itself, and again
 * for backward into the workspace. In bf16 words are pairs: of channels, and for the gradient of
 * the weight of samples, of which backward makes copies.
 */
#include <string.h>

#include "backends/cpu/conv2d_rules.h"
#include "backends/cpu/cpu.h"
#include "core/isa.h"
#include "core/mem.h"
#include "core/parallel.h"
#include "kernels/small_conv/small_conv.h"

#define SMALL_CONV_TOGETHER    2  /* blocks of results that the loops compute together */
#define SMALL_CONV_MOST        49 /* number of taps */
#define SMALL_CONV_MOST_PIXELS 64
/* In evaluation, and in bf16: with fewer, packing the weights takes too long. */
#define SMALL_CONV_LEAST_SAMPLES 8

#define SMALL_CONV_WINOGRAD 16 /* lanes for which there is Winograd's algorithm */

/* Pairs grouped by result: those of k are pair[end[k - 1]] to pair[end[k] - 1]. */
typedef struct small_conv_list {
    int32_t n;
    int32_t *end;          /* owned; (n) */
    small_conv_pair *pair; /* owned */
} small_conv_list;

typedef struct small_conv {
    const small_conv_loops *loops;
    small_conv_image in, out, in_words, out_words;
    int64_t in_pixels, out_pixels;
    small_conv_weight weight;
    int64_t *tap;                            /* owned; arrays of `weight` */
    small_conv_list forward, data, gradient; /* by output pixel, by input pixel, by tap */
    int64_t panel, panel_back;               /* floats per block of packed weights */
    size_t packed_at, gradient_at;           /* in scratch: forward, backward */
    size_t x_at, dy_at;                      /* in scratch, backward: with bf16, pairs of samples */
    cpu_operand grad_out;                    /* in the output's layout */
} small_conv;

/* The loops for the layout's lanes that this CPU can run, or NULL. */
static const small_conv_loops *small_conv_find_loops(const co_tensor *tensor)
{
    static const small_conv_loops *const all[] = {KERNELS_LIST(small_conv_loops, NULL)};
    const small_conv_loops *const *loops = all + kernels_too_new();

    if (tensor->layout.format != CO_FORMAT_CHANNEL_BLOCKS)
        return NULL;
#ifdef CO_KERNELS_X86
    if (tensor->dtype == CO_BF16)
        return tensor->layout.block == small_conv_loops_bf16.lanes ? &small_conv_loops_bf16 : NULL;
#endif
    if (tensor->dtype != CO_F32)
        return NULL;
    while (*loops && (*loops)->lanes != tensor->layout.block)
        loops++;
    return *loops;
}

static bool small_conv_is_half(const small_conv_loops *loops)
{
    return loops->cell < sizeof(float);
}

/* Input position for output pixel `out` and tap `tap` in one dimension; -1: padding. */
static int64_t small_conv_meet(const co_conv2d_attr *a, int dim, int64_t out, int64_t tap,
                               int64_t size)
{
    const int64_t in = out * a->s[dim] + tap * a->d[dim] - a->p[dim];

    return in >= 0 && in < size ? in : -1;
}

/* Number of (tap, output pixel) pairs that meet the image, in one dimension. */
static int64_t small_conv_count_met(const co_call *call, int dim)
{
    const co_conv2d_attr *a = call->attr;
    int64_t n = 0;

    for (int64_t out = 0; out < call->out[0]->shape.dim[2 + dim]; out++)
        for (int64_t tap = 0; tap < a->k[dim]; tap++)
            n += small_conv_meet(a, dim, out, tap, call->in[0]->shape.dim[2 + dim]) >= 0;
    return n;
}

/* Measured: pays if at least one multiplication in eight is with padding. A result of one pixel is
   always a matrix product. */
static bool small_conv_suits(const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;
    const int64_t all = out[2] * out[3] * a->k[0] * a->k[1];

    if (a->groups != 1 || a->k[0] * a->k[1] > SMALL_CONV_MOST ||
        in[2] * in[3] > SMALL_CONV_MOST_PIXELS || out[2] * out[3] > SMALL_CONV_MOST_PIXELS)
        return false;
    if ((!call->training || call->in[0]->dtype == CO_BF16) && in[0] < SMALL_CONV_LEAST_SAMPLES)
        return false;
    return out[2] * out[3] == 1 ||
           8 * small_conv_count_met(call, 0) * small_conv_count_met(call, 1) <= 7 * all;
}

/* Winograd's algorithm, if it may be used, needs fewer multiplications. */
static bool small_conv_supports(const co_call *call, const char **why)
{
    const small_conv_loops *loops = small_conv_find_loops(call->in[0]);
    const char *not_winograd;

    if (!cpu_takes(call, why))
        return false;
    *why = "this CPU multiplies floats faster";
    if (call->in[0]->dtype == CO_BF16 && !co_isa_multiplies_bf16())
        return false;
    *why = "its input is not in blocks of as many channels as vectors have lanes";
    if (!loops)
        return false;
    *why = "its images are not small, or few of its products have padding for a factor";
    if (!small_conv_suits(call))
        return false;
    *why = "its channels do not fill vectors";
    if (call->in[0]->shape.dim[1] % loops->lanes || call->out[0]->shape.dim[1] % loops->lanes)
        return false;
    *why = "Winograd's algorithm suits it";
    return loops->lanes < SMALL_CONV_WINOGRAD || small_conv_is_half(loops) ||
           !conv2d_suits_winograd(call, &not_winograd);
}

/* An input pixel, an output pixel and the tap that connects them. */
typedef struct small_conv_hit {
    int64_t in, out, tap;
} small_conv_hit;

/* List all of them in hit (output pixels * taps); returns how many. */
static int64_t small_conv_find_hits(small_conv_hit *hit, const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *out = call->out[0]->shape.dim;
    int64_t n = 0;

    for (int64_t p = 0; p < out[2] * out[3]; p++)
        for (int64_t t = 0; t < a->k[0] * a->k[1]; t++) {
            const int64_t row = small_conv_meet(a, 0, p / out[3], t / a->k[1], in[2]);
            const int64_t column = small_conv_meet(a, 1, p % out[3], t % a->k[1], in[3]);

            if (row >= 0 && column >= 0)
                hit[n++] = (small_conv_hit){row * in[3] + column, p, t};
        }
    return n;
}

/* Drop unused taps and renumber the tap of each hit. */
static co_status small_conv_count_taps(small_conv *self, small_conv_hit *hit, int64_t n)
{
    int64_t *number;

    self->tap = co_calloc(2 * (size_t)self->weight.kernel, sizeof(*self->tap));
    if (!self->tap)
        return CO_E_NOMEM;
    number = self->tap + self->weight.kernel;
    self->weight.tap = self->tap;
    self->weight.number = number;
    for (int64_t t = 0; t < self->weight.kernel; t++) {
        number[t] = -1;
        for (int64_t i = 0; i < n; i++)
            if (hit[i].tap == t)
                hit[i].tap = number[t] = self->weight.taps;
        if (number[t] >= 0)
            self->tap[self->weight.taps++] = t;
    }
    return CO_OK;
}

typedef enum small_conv_kind {
    SMALL_CONV_FORWARD,
    SMALL_CONV_DATA,
    SMALL_CONV_GRADIENT
} small_conv_kind;

static small_conv_pair small_conv_make_pair(const small_conv *self, const small_conv_hit *hit,
                                            small_conv_kind kind)
{
    const int64_t lanes = self->loops->lanes, words = self->loops->words;

    if (kind == SMALL_CONV_FORWARD)
        return (small_conv_pair){(int32_t)(hit->in * words),
                                 (int32_t)(hit->tap * self->weight.in * words)};
    if (kind == SMALL_CONV_DATA)
        return (small_conv_pair){(int32_t)(hit->out * words),
                                 (int32_t)(hit->tap * self->weight.out * words)};
    return (small_conv_pair){(int32_t)(hit->in * lanes), (int32_t)(hit->out * lanes)};
}

static int64_t small_conv_key(const small_conv_hit *hit, small_conv_kind kind)
{
    return kind == SMALL_CONV_FORWARD ? hit->out : kind == SMALL_CONV_DATA ? hit->in : hit->tap;
}

static co_status small_conv_list_hits(small_conv_list *list, const small_conv *self,
                                      const small_conv_hit *hit, int64_t n, small_conv_kind kind)
{
    int32_t at = 0;

    list->n = (int32_t)(kind == SMALL_CONV_FORWARD ? self->out_pixels
                        : kind == SMALL_CONV_DATA  ? self->in_pixels
                                                   : self->weight.taps);
    list->end = co_calloc((size_t)list->n, sizeof(*list->end));
    list->pair = co_calloc((size_t)n, sizeof(*list->pair));
    if (!list->end || !list->pair)
        return CO_E_NOMEM;
    for (int32_t k = 0; k < list->n; k++) {
        for (int64_t i = 0; i < n; i++)
            if (small_conv_key(&hit[i], kind) == k)
                list->pair[at++] = small_conv_make_pair(self, &hit[i], kind);
        list->end[k] = at;
    }
    return CO_OK;
}

static co_status small_conv_make_lists(small_conv *self, const co_call *call)
{
    small_conv_hit *hit =
        co_calloc((size_t)(self->out_pixels * self->weight.kernel), sizeof(small_conv_hit));
    int64_t n;
    co_status st;

    if (!hit)
        return CO_E_NOMEM;
    n = small_conv_find_hits(hit, call);
    st = small_conv_count_taps(self, hit, n);
    if (st == CO_OK)
        st = small_conv_list_hits(&self->forward, self, hit, n, SMALL_CONV_FORWARD);
    if (st == CO_OK && call->training)
        st = small_conv_list_hits(&self->data, self, hit, n, SMALL_CONV_DATA);
    if (st == CO_OK && call->training)
        st = small_conv_list_hits(&self->gradient, self, hit, n, SMALL_CONV_GRADIENT);
    co_free(hit);
    return st;
}

/* `each`: numbers or words of a pixel of a block. */
static small_conv_image small_conv_describe_image(const co_shape *shape, int64_t lanes,
                                                  int64_t each)
{
    const int64_t block = shape->dim[2] * shape->dim[3] * each, blocks = shape->dim[1] / lanes;

    return (small_conv_image){.blocks = blocks, .block = block, .sample = blocks * block};
}

static size_t small_conv_take(co_call *call, size_t *used, int64_t floats)
{
    return cpu_take_scratch(call, used, (size_t)floats * sizeof(float));
}

static co_status small_conv_plan(co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    const co_shape *in = &call->in[0]->shape, *out = &call->out[0]->shape;
    const small_conv_loops *loops = small_conv_find_loops(call->in[0]);
    small_conv *self = call->self;
    size_t used = 0;

    self->loops = loops;
    self->in = small_conv_describe_image(in, loops->lanes, loops->lanes);
    self->out = small_conv_describe_image(out, loops->lanes, loops->lanes);
    self->in_words = small_conv_describe_image(in, loops->lanes, loops->words);
    self->out_words = small_conv_describe_image(out, loops->lanes, loops->words);
    self->in_pixels = in->dim[2] * in->dim[3];
    self->out_pixels = out->dim[2] * out->dim[3];
    self->weight =
        (small_conv_weight){.out = a->out, .in = in->dim[1], .kernel = a->k[0] * a->k[1]};
    CO_TRY(small_conv_make_lists(self, call));
    cpu_set_layout(call->out[0], cpu_blocks(loops->lanes));
    self->panel = self->weight.taps * self->weight.in * loops->lanes;
    self->panel_back = self->weight.taps * self->weight.out * loops->lanes;
    self->packed_at = small_conv_take(call, &used, self->out.blocks * self->panel);
    if (call->training)
        call->workspace_bytes = (size_t)(self->in.blocks * self->panel_back) * sizeof(float);
    return CO_OK;
}

/* Samples of the gradient of the weight, or pairs of them. */
static int64_t small_conv_count_samples(const small_conv *self, const co_call *call)
{
    const int64_t n = call->in[0]->shape.dim[0];

    return small_conv_is_half(self->loops) ? (n + 1) / 2 : n;
}

static co_status small_conv_plan_backward(co_call *call)
{
    small_conv *self = call->self;
    const int64_t pairs = small_conv_count_samples(self, call);
    size_t used = 0;

    self->grad_out =
        cpu_plan_operand(call, &used, call->grad_out[0], cpu_blocks(self->loops->lanes));
    self->gradient_at = small_conv_take(call, &used, self->out.blocks * self->panel);
    if (small_conv_is_half(self->loops)) {
        self->x_at = small_conv_take(call, &used, pairs * self->in.sample);
        self->dy_at = small_conv_take(call, &used, pairs * self->out.sample);
    }
    if (call->grad_in[0])
        cpu_set_layout(call->grad_in[0], cpu_blocks(self->loops->lanes));
    return CO_OK;
}

static small_conv_sum small_conv_find_sum(const small_conv_list *list, int64_t k, int64_t samples)
{
    const int32_t begin = k > 0 ? list->end[k - 1] : 0;

    return (small_conv_sum){list->pair + begin, list->end[k] - begin, samples};
}

/* Number of blocks from `block` on to compute together. */
static int64_t small_conv_blocks_at(const small_conv_image *image, int64_t block)
{
    return image->blocks - block < SMALL_CONV_TOGETHER ? image->blocks - block
                                                       : SMALL_CONV_TOGETHER;
}

/* Compute all pixels of `list` in `to` from all of `from`. */
static void small_conv_multiply_all(const small_conv *self, const co_call *call, char *to,
                                    const small_conv_image *tos, const void *from,
                                    const small_conv_image *froms, const float *packed,
                                    int64_t panel, const float *bias, const small_conv_list *list,
                                    int threads)
{
    const int64_t lanes = self->loops->lanes;
    const int64_t tasks = (tos->blocks + SMALL_CONV_TOGETHER - 1) / SMALL_CONV_TOGETHER * list->n;

    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < tasks; i++) {
        const int64_t block = i / list->n * SMALL_CONV_TOGETHER, pixel = i % list->n;
        const small_conv_sum sum = small_conv_find_sum(list, pixel, call->in[0]->shape.dim[0]);
        const size_t at = (size_t)(block * tos->block + pixel * lanes) * self->loops->cell;

        self->loops->multiply(to + at, tos, from, froms, packed + block * panel, panel,
                              bias ? bias + block * lanes : NULL, small_conv_blocks_at(tos, block),
                              &sum);
    }
}

static void small_conv_halve_all(const small_conv *self, float *packed, int64_t blocks,
                                 int64_t panel, int threads)
{
    CO_PARALLEL_FOR(threads)
    for (int64_t k = 0; k < blocks; k++)
        self->loops->halve(packed + k * panel, panel);
}

static co_status small_conv_forward(co_call *call, const co_run *run)
{
    const co_conv2d_attr *a = call->attr;
    const small_conv *self = call->self;
    const float *weight = call->param[0].data;
    float *packed = (float *)((char *)call->scratch + self->packed_at), *back = call->workspace;
    const int threads = cpu_threads(call);

    (void)run;
    CO_PARALLEL_FOR(threads)
    for (int64_t k = 0; k < self->out.blocks; k++)
        self->loops->pack(packed + k * self->panel, weight, &self->weight, k);
    CO_PARALLEL_FOR(threads)
    for (int64_t k = 0; k < (call->training ? self->in.blocks : 0); k++)
        self->loops->turn(back + k * self->panel_back, packed, &self->weight, k);
    if (small_conv_is_half(self->loops)) {
        small_conv_halve_all(self, packed, self->out.blocks, self->panel, threads);
        small_conv_halve_all(self, back, call->training ? self->in.blocks : 0, self->panel_back,
                             threads);
    }
    small_conv_multiply_all(self, call, call->out[0]->data, &self->out, call->in[0]->data,
                            &self->in_words, packed, self->panel,
                            a->bias ? call->param[1].data : NULL, &self->forward, threads);
    return CO_OK;
}

/* What the gradient of the weight reads: the tensor, or pairs of samples at `at` in scratch. */
static const float *small_conv_join_samples(const small_conv *self, const co_call *call, size_t at,
                                            const void *from, const small_conv_image *image,
                                            int threads)
{
    const int64_t n = call->in[0]->shape.dim[0], pairs = small_conv_count_samples(self, call);
    const size_t sample = (size_t)image->sample * self->loops->cell;
    float *to = (float *)(void *)((char *)call->scratch + at);

    if (!small_conv_is_half(self->loops))
        return from;
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < pairs; i++) {
        const char *first = (const char *)from + (size_t)(2 * i) * sample;

        self->loops->join(to + i * image->sample, first, 2 * i + 1 < n ? first + sample : NULL,
                          image->sample);
    }
    return to;
}

/* Gradients of the parameters for the blocks of dy from `block` on; `x` and `pairs` as
   small_conv_join_samples makes them. */
static void small_conv_add_gradient(const small_conv *self, const co_call *call, const co_run *run,
                                    const float *x, const float *pairs, const char *dy,
                                    int64_t block)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t samples = small_conv_count_samples(self, call);
    const int64_t lanes = self->loops->lanes, blocks = small_conv_blocks_at(&self->out, block);
    float *dw = (float *)((char *)call->scratch + self->gradient_at) + block * self->panel;

    for (int64_t t = 0; t < self->weight.taps; t++) {
        const small_conv_sum sum = small_conv_find_sum(&self->gradient, t, samples);

        self->loops->gradient(dw + t * self->weight.in * lanes, self->panel, x, &self->in,
                              pairs + block * self->out.block, &self->out, blocks, &sum);
    }
    for (int64_t k = 0; k < blocks; k++) {
        self->loops->unpack(call->grad_param[0].data, dw + k * self->panel, &self->weight,
                            block + k, run->accumulate);
        if (a->bias)
            self->loops->add_up((float *)call->grad_param[1].data + (block + k) * lanes,
                                dy + (size_t)((block + k) * self->out.block) * self->loops->cell,
                                &self->out, self->out_pixels, call->in[0]->shape.dim[0],
                                run->accumulate);
    }
}

static co_status small_conv_backward(co_call *call, const co_run *run)
{
    const small_conv *self = call->self;
    const void *dy = cpu_address(&self->grad_out, call);
    const int threads = cpu_threads(call);
    const float *x, *pairs;

    cpu_bring(&self->grad_out, call, threads);
    x = small_conv_join_samples(self, call, self->x_at, call->in[0]->data, &self->in, threads);
    pairs = small_conv_join_samples(self, call, self->dy_at, dy, &self->out, threads);
    CO_PARALLEL_FOR(threads)
    for (int64_t block = 0; block < self->out.blocks; block += SMALL_CONV_TOGETHER)
        small_conv_add_gradient(self, call, run, x, pairs, dy, block);
    if (call->grad_in[0])
        small_conv_multiply_all(self, call, call->grad_in[0]->data, &self->in, dy, &self->out_words,
                                call->workspace, self->panel_back, NULL, &self->data, threads);
    return CO_OK;
}

static void small_conv_free_list(small_conv_list *list)
{
    co_free(list->end);
    co_free(list->pair);
}

static void small_conv_fini(co_call *call)
{
    small_conv *self = call->self;

    small_conv_free_list(&self->forward);
    small_conv_free_list(&self->data);
    small_conv_free_list(&self->gradient);
    co_free(self->tap);
}

const co_kernel co_cpu_small_conv = {
    .op = "conv2d",
    .name = "small-images",
    .reads = CO_READS(CO_FORMAT_CHANNEL_BLOCKS),
    .self_size = sizeof(small_conv),
    .half = CPU_HALF,
    .supports = small_conv_supports,
    .plan = small_conv_plan,
    .plan_backward = small_conv_plan_backward,
    .forward = small_conv_forward,
    .backward = small_conv_backward,
    .fini = small_conv_fini,
    .yields_half = true,
};
