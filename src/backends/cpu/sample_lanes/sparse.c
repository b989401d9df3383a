/*
 * sparse.c - gradients of a convolution from the nonzero elements of its output's gradient.
 *
 * Max pooling passes a gradient to one place of each window; ReLU and dropout stop more. Products
 * with zero can be skipped unless a value is infinite, and then training has failed anyway. Blocks
 * are split into samples and joined again, so that adjacent memory is adjacent in the image.
 */
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/sample_lanes/kernels.h"
#include "core/mem.h"

/* Bytes of split samples per pass of one channel's sums: part of L1. */
#define SPARSE_PASS_BYTES 24576
/* Cost of a vector per spot, for the sums and for dx, in dense products. */
#define SPARSE_COST_SUM  1.5
#define SPARSE_COST_DATA 2.5
/* Spots are counted in every SPARSE_LOOK_AT-th block. */
#define SPARSE_LOOK_AT 4
/* Maximum number of slices of the batch's blocks. Each has its own sums, which are added in order
   of the slices, so the number of threads does not change the result. */
#define SPARSE_SLICES 8

/* Offsets and total sizes in bytes: `shared` in scratch, with the sums of each slice; `own` in the
   scratch of each thread. */
typedef struct sparse_layout {
    size_t weight, sum, bias_sum, shared;
    size_t x, dx, value, at, end, sorted, count, own;
} sparse_layout;

typedef struct sparse_room {
    float *x, *dx, *sum, *bias_sum;
    lanes_spots spots;
    const lanes_squares *squares;
    lanes_sorting by;
} sparse_room;

/* Vectors of one channel's weight if `fold` rows of taps are stored as channels. */
static int64_t sparse_vectors(int64_t fold, int64_t kh, int64_t kw)
{
    const int64_t lanes = lanes_choose()->lanes;

    return (kh + fold - 1) / fold * ((kw * fold + lanes - 1) / lanes);
}

/* Rows as channels fill vectors better; possible with one input channel whose gradient is not
   needed. */
static int64_t sparse_fold(const co_call *call)
{
    const int64_t *k = ((const co_conv2d_attr *)call->attr)->k;
    int64_t best = 1;

    if (call->grad_in[0] || call->in[0]->shape.dim[1] != 1)
        return 1;
    for (int64_t fold = 2; fold <= k[0]; fold++)
        if (sparse_vectors(fold, k[0], k[1]) < sparse_vectors(best, k[0], k[1]))
            best = fold;
    return best;
}

static void sparse_describe_pool(lanes_sparse *out, const lanes_pool *pool)
{
    out->pooled = true;
    out->window_w = (int32_t)pool->kw;
    out->place_h = (int32_t)(out->stride_h * out->row);
    out->place_w = (int32_t)(out->stride_w * out->c);
    out->stride_h *= pool->sh;
    out->stride_w *= pool->sw;
}

/* The part of the input that what is read of the output depends on. */
static co_extent sparse_inputs(const co_call *call)
{
    const int64_t *in = call->in[0]->shape.dim;
    const co_extent part = call->op->receptive(sample_lanes_needed(call), call->attr);

    return (co_extent){part.rows < in[2] ? part.rows : in[2],
                       part.columns < in[3] ? part.columns : in[3]};
}

static void sparse_describe(lanes_sparse *out, const co_call *call, const lanes_pool *pool)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *dim = call->out[0]->shape.dim;
    const int64_t lanes = lanes_choose()->lanes;
    const co_extent read = sparse_inputs(call);

    *out = (lanes_sparse){.h = read.rows,
                          .w = read.columns,
                          .across = in[3],
                          .o = dim[1],
                          .oh = dim[2],
                          .ow = dim[3],
                          .pad_h = a->p[0],
                          .pad_w = a->p[1],
                          .stride_h = a->s[0],
                          .stride_w = a->s[1],
                          .fold = sparse_fold(call)};
    out->c = in[1] * out->fold;
    out->kh = (a->k[0] + out->fold - 1) / out->fold;
    out->plane = out->fold > 1 ? in[3] : in[2] * in[3];
    out->row = (out->w + 2 * out->pad_w) * out->c;
    out->step = out->row * out->fold;
    out->sample = (out->h + 2 * out->pad_h) * out->row + lanes;
    out->part = (a->k[1] * out->c + lanes - 1) / lanes * lanes;
    out->spots = out->o * out->oh * out->ow;
    out->room = out->spots + lanes;
    if (pool)
        sparse_describe_pool(out, pool);
}

/* Reserve room for n elements; returns its offset. */
static size_t sparse_take(size_t *size, int64_t n, size_t element)
{
    const size_t begin = *size;

    *size += ((size_t)n * element + 63) / 64 * 64;
    return begin;
}

static int sparse_slices(const co_call *call)
{
    const int64_t blocks = sample_lanes_blocks(call->in[0]);

    return blocks < SPARSE_SLICES ? (int)blocks : SPARSE_SLICES;
}

/* What the input's gradient needs. */
static void sparse_lay_out_data(sparse_layout *l, const sample_lanes_sparse *self)
{
    const lanes_sparse *s = &self->shape;
    const lanes_squares *q = &self->squares;
    const int64_t all = s->sample * (lanes_choose()->lanes - 1) + q->sample;

    l->weight = sparse_take(&l->shared, q->ahead + s->o * q->channel, sizeof(float));
    l->dx = sparse_take(&l->own, all, sizeof(float));
    l->sorted = sparse_take(&l->own, q->n * q->room, sizeof(lanes_sorted));
    l->count = sparse_take(&l->own, q->n, sizeof(int32_t));
}

static sparse_layout sparse_lay_out(const sample_lanes_sparse *self, const co_call *call)
{
    const lanes_sparse *s = &self->shape;
    const int64_t lanes = lanes_choose()->lanes, samples = s->sample * lanes;
    const int64_t taps = s->o * s->kh * s->part, slices = sparse_slices(call);
    sparse_layout l = {0};

    l.sum = sparse_take(&l.shared, slices * taps, sizeof(float));
    l.bias_sum = sparse_take(&l.shared, slices * s->o * lanes, sizeof(float));
    l.x = sparse_take(&l.own, samples, sizeof(float));
    l.value = sparse_take(&l.own, s->room * lanes, sizeof(float));
    l.at = sparse_take(&l.own, s->room * lanes, sizeof(int32_t));
    l.end = sparse_take(&l.own, s->o * lanes, sizeof(int32_t));
    if (call->grad_in[0])
        sparse_lay_out_data(&l, self);
    return l;
}

/* Thread `t`'s memory, with the sums of the first slice. */
static sparse_room sparse_enter(const sample_lanes_sparse *self, const co_call *call, char *scratch,
                                const sparse_layout *l, int t)
{
    char *own = cpu_own_scratch(call, t);

    return (sparse_room){.x = (float *)(void *)(own + l->x),
                         .dx = (float *)(void *)(own + l->dx),
                         .sum = (float *)(void *)(scratch + l->sum),
                         .bias_sum = (float *)(void *)(scratch + l->bias_sum),
                         .spots = {.value = (float *)(void *)(own + l->value),
                                   .at = (int32_t *)(void *)(own + l->at),
                                   .end = (int32_t *)(void *)(own + l->end)},
                         .squares = &self->squares,
                         .by = {.place = self->place,
                                .weight = (float *)(void *)(scratch + l->weight),
                                .sorted = (lanes_sorted *)(void *)(own + l->sorted),
                                .count = (int32_t *)(void *)(own + l->count)}};
}

/* Tables that depend on nothing but shapes. */
static co_status sparse_plan_data(sample_lanes_sparse *out, const co_call *call)
{
    out->squares = lanes_describe_squares(&out->shape, ((const co_conv2d_attr *)call->attr)->k[1],
                                          lanes_choose()->lanes);
    out->place = co_calloc((size_t)out->squares.places, sizeof(*out->place));
    if (!out->place)
        return CO_E_NOMEM;
    lanes_find_places(out->place, &out->shape, &out->squares);
    return CO_OK;
}

co_status sample_lanes_sparse_plan(sample_lanes_sparse *out, co_call *call, const lanes_pool *pool,
                                   size_t at)
{
    const co_conv2d_attr *a = call->attr;
    sparse_layout l;

    sparse_describe(&out->shape, call, pool);
    out->usable = a->d[0] == 1 && a->d[1] == 1 && out->shape.sample <= INT32_MAX &&
                  out->shape.spots <= INT32_MAX;
    if (!out->usable)
        return CO_OK;
    if (call->grad_in[0])
        CO_TRY(sparse_plan_data(out, call));
    l = sparse_lay_out(out, call);
    cpu_need_scratch(call, at + l.shared, l.own);
    return CO_OK;
}

void sample_lanes_sparse_fini(sample_lanes_sparse *self)
{
    co_free(self->place);
}

bool sample_lanes_sparse_pays(const sample_lanes_sparse *self, const co_call *call,
                              const sample_lanes_grad *dy, double dense)
{
    const lanes_sparse *sparse = &self->shape;
    const lanes_loops *lanes = lanes_choose();
    const co_conv2d_attr *a = call->attr;
    const int64_t block = sparse->spots * lanes->lanes;
    const double weight = (double)(call->in[0]->shape.dim[1] * a->k[0] * a->k[1]);
    const int64_t vectors = sparse->kh * (sparse->part / lanes->lanes);
    const double cost = call->grad_in[0] ? SPARSE_COST_SUM + SPARSE_COST_DATA : SPARSE_COST_SUM;
    int64_t spots = 0, all = 0; /* number of spots, and of products of the dense path in vectors */

    if (!self->usable)
        return false;
    for (int64_t b = 0; b < sample_lanes_blocks(call->out[0]); b += SPARSE_LOOK_AT) {
        spots += lanes->count(dy->value + b * block, dy->place ? dy->place + b * block : NULL,
                              sparse->spots);
        all += call->unfused_shape.dim[1] * call->unfused_shape.dim[2] * call->unfused_shape.dim[3];
    }
    return (double)spots * (lanes->spot_cost + cost * (double)vectors) <
           (double)all * (call->grad_in[0] ? 2 * weight : weight) * dense;
}

/* Offset of weight[c][i][0] in one output channel's vectors, (i, (j, c)). */
static int64_t sparse_place(const lanes_sparse *s, int64_t c, int64_t i)
{
    return i / s->fold * s->part + c * s->fold + i % s->fold;
}

/* For some output channels: grad (+)= sum. */
static void sparse_put_weight(float *grad, const float *sum, const lanes_sparse *s,
                              const int64_t *k, const co_range *part, bool add)
{
    const int64_t taps = s->kh * s->part;

    sum += part->begin * taps;
    grad += part->begin * (s->c / s->fold) * k[0] * k[1];
    for (int64_t o = part->begin; o < part->end; o++, sum += taps)
        for (int64_t c = 0; c < s->c / s->fold; c++)
            for (int64_t i = 0; i < k[0]; i++, grad += k[1])
                for (int64_t j = 0, at = sparse_place(s, c, i); j < k[1]; j++, at += s->c)
                    grad[j] = (add ? grad[j] : 0) + sum[at];
}

/* The spots of samples l and up. */
static lanes_spots sparse_spots(const sparse_room *room, const lanes_sparse *s, int64_t l)
{
    return (lanes_spots){room->spots.value + l * s->room, room->spots.at + l * s->room,
                         room->spots.end + l * s->o};
}

static void sparse_add_weight(const sparse_room *room, const lanes_sparse *s)
{
    const int64_t lanes = lanes_choose()->lanes;
    const int64_t fit = SPARSE_PASS_BYTES / (s->sample * (int64_t)sizeof(float));

    for (int64_t l = 0; l<lanes; l += fit> 1 ? fit : 1) {
        const int64_t n = lanes - l < fit ? lanes - l : fit > 1 ? fit : 1;
        const lanes_spots spots = sparse_spots(room, s, l);

        lanes_choose()->sparse_weight(room->sum, room->x + l * s->sample, &spots, n, s);
    }
}

static void sparse_make_data(float *dx, const sparse_room *room, const lanes_sparse *s)
{
    const lanes_loops *lanes = lanes_choose();

    for (int64_t l = 0; l < lanes->lanes; l++) {
        const lanes_spots spots = sparse_spots(room, s, l);

        memset(room->dx + l * s->sample, 0, (size_t)s->sample * sizeof(float));
        lanes->sparse_data(room->dx + l * s->sample, &spots, &room->by, s, room->squares);
    }
    lanes->join(dx, room->dx, s);
    sample_lanes_fill_rest(dx, 0, (size_t)lanes->lanes * sizeof(float), s->c,
                           (co_extent){s->plane / s->across, s->across}, (co_extent){s->h, s->w});
}

/* One slice: its sums, and dx. */
static void sparse_slice(const sparse_room *r, const lanes_sparse *s, const co_call *call,
                         const float *x, const sample_lanes_grad *grad, const co_range *blocks)
{
    const lanes_loops *lanes = lanes_choose();
    const int64_t image = sample_lanes_count(call->in[0]) * lanes->lanes;
    const int64_t step = s->spots * lanes->lanes;

    memset(r->sum, 0, (size_t)(s->o * s->kh * s->part) * sizeof(float));
    memset(r->bias_sum, 0, (size_t)(s->o * lanes->lanes) * sizeof(float));
    for (int64_t b = blocks->begin; b < blocks->end; b++) {
        lanes->split(r->x, x + b * image, s);
        lanes->list(&r->spots, r->bias_sum, grad->value + b * step,
                    s->pooled ? grad->place + b * step : NULL, s);
        sparse_add_weight(r, s);
        if (call->grad_in[0])
            sparse_make_data((float *)call->grad_in[0]->data + b * image, r, s);
    }
}

/* Some slices, with one thread's memory. */
static void sparse_slices_of(const sparse_room *shared, const lanes_sparse *s, const co_call *call,
                             const float *x, const sample_lanes_grad *grad, const co_range *mine)
{
    const int64_t lanes = lanes_choose()->lanes, blocks = sample_lanes_blocks(call->in[0]);
    const int slices = sparse_slices(call);

    memset(shared->x, 0, (size_t)(s->sample * lanes) * sizeof(float));
    for (int64_t i = mine->begin; i < mine->end; i++) {
        const co_range part = co_parallel_part(blocks, (int)i, slices);
        sparse_room r = *shared;

        r.sum += i * s->o * s->kh * s->part;
        r.bias_sum += i * s->o * lanes;
        sparse_slice(&r, s, call, x, grad, &part);
    }
}

/* Add the sums of all slices to the first, and store the gradients, for some output channels. */
static void sparse_join(const sparse_room *r, const lanes_sparse *s, const co_call *call,
                        const co_range *part, const co_run *run)
{
    const lanes_loops *lanes = lanes_choose();
    const int64_t taps = s->kh * s->part, n = part->end - part->begin;
    float *sum = r->sum + part->begin * taps, *bias_sum = r->bias_sum + part->begin * lanes->lanes;

    for (int i = 1; i < sparse_slices(call); i++) {
        lanes->add(sum, sum, sum + i * s->o * taps, n * taps / lanes->lanes);
        lanes->add(bias_sum, bias_sum, bias_sum + i * s->o * lanes->lanes, n);
    }
    sparse_put_weight(call->grad_param[0].data, r->sum, s, ((const co_conv2d_attr *)call->attr)->k,
                      part, run->accumulate);
    if (call->n_param > 1)
        lanes->reduce((float *)call->grad_param[1].data + part->begin, bias_sum, n,
                      run->accumulate);
}

void sample_lanes_sparse_backward(const sample_lanes_sparse *self, co_call *call, const float *x,
                                  const sample_lanes_grad *grad, char *room, int threads,
                                  const co_run *run)
{
    const lanes_sparse *sparse = &self->shape;
    const sparse_layout l = sparse_lay_out(self, call);

    if (call->grad_in[0])
        lanes_spread_weight((float *)(void *)(room + l.weight), call->param[0].data, sparse,
                            ((const co_conv2d_attr *)call->attr)->k[1], &self->squares);
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range slices = co_parallel_part(sparse_slices(call), t, threads);
        const sparse_room r = sparse_enter(self, call, room, &l, t);

        sparse_slices_of(&r, sparse, call, x, grad, &slices);
    }
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range channels = co_parallel_part(sparse->o, t, threads);
        const sparse_room r = sparse_enter(self, call, room, &l, t);

        sparse_join(&r, sparse, call, &channels, run);
    }
}
