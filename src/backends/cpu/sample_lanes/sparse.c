/*
 * sparse.c - gradients of a convolution from the nonzero elements of its output's gradient.
 *
 * Max pooling passes a gradient to one place of each window; ReLU and dropout stop more. Products
 * with zero can be skipped unless a value is infinite, and then training has failed anyway. Blocks
 * are split into samples and joined again, so that adjacent memory is adjacent in the image.
 */
#include <string.h>

#include "backends/cpu/sample_lanes/kernels.h"

/* Bytes of split samples per pass of one channel's sums: part of L1. */
#define SPARSE_PASS_BYTES 24576
/* Cost of a vector per spot, for the sums and for dx, in dense products. */
#define SPARSE_COST_SUM  1.5
#define SPARSE_COST_DATA 2.5
/* Spots are counted in every SPARSE_LOOK_AT-th block. */
#define SPARSE_LOOK_AT 4

/* Offsets in scratch, and its total size, in bytes. */
typedef struct sparse_layout {
    size_t x, dx, sum, bias_sum, weight, value, at, end, size;
} sparse_layout;

typedef struct sparse_room {
    float *x, *dx, *sum, *bias_sum, *weight;
    lanes_spots spots;
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

void sample_lanes_sparse_describe(lanes_sparse *out, const co_call *call, const lanes_pool *pool)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *dim = call->out[0]->shape.dim;
    const int64_t lanes = lanes_choose()->lanes;

    *out = (lanes_sparse){.h = in[2],
                          .w = in[3],
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
    out->plane = out->fold > 1 ? out->w : out->h * out->w;
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

static sparse_layout sparse_lay_out(const lanes_sparse *s, bool data)
{
    const int64_t lanes = lanes_choose()->lanes, samples = s->sample * lanes;
    const int64_t taps = s->o * s->kh * s->part;
    sparse_layout l = {0};

    l.x = sparse_take(&l.size, samples, sizeof(float));
    l.dx = sparse_take(&l.size, data ? samples : 0, sizeof(float));
    l.sum = sparse_take(&l.size, taps, sizeof(float));
    l.bias_sum = sparse_take(&l.size, s->o * lanes, sizeof(float));
    l.weight = sparse_take(&l.size, data ? taps : 0, sizeof(float));
    l.value = sparse_take(&l.size, s->room * lanes, sizeof(float));
    l.at = sparse_take(&l.size, s->room * lanes, sizeof(int32_t));
    l.end = sparse_take(&l.size, s->o * lanes, sizeof(int32_t));
    return l;
}

static sparse_room sparse_enter(char *scratch, const lanes_sparse *s, bool data)
{
    const sparse_layout l = sparse_lay_out(s, data);

    return (sparse_room){.x = (float *)(void *)(scratch + l.x),
                         .dx = (float *)(void *)(scratch + l.dx),
                         .sum = (float *)(void *)(scratch + l.sum),
                         .bias_sum = (float *)(void *)(scratch + l.bias_sum),
                         .weight = (float *)(void *)(scratch + l.weight),
                         .spots = {.value = (float *)(void *)(scratch + l.value),
                                   .at = (int32_t *)(void *)(scratch + l.at),
                                   .end = (int32_t *)(void *)(scratch + l.end)}};
}

size_t sample_lanes_sparse_room(const lanes_sparse *sparse, const co_call *call)
{
    const co_conv2d_attr *a = call->attr;

    if (a->d[1] != 1 || a->d[0] != 1 || sparse->sample > INT32_MAX || sparse->spots > INT32_MAX)
        return 0;
    return sparse_lay_out(sparse, call->grad_in[0] != NULL).size;
}

bool sample_lanes_sparse_pays(const lanes_sparse *sparse, const co_call *call,
                              const sample_lanes_grad *dy)
{
    const lanes_loops *lanes = lanes_choose();
    const co_conv2d_attr *a = call->attr;
    const int64_t block = sparse->spots * lanes->lanes;
    const double weight = (double)(call->in[0]->shape.dim[1] * a->k[0] * a->k[1]);
    const int64_t vectors = sparse->kh * (sparse->part / lanes->lanes);
    const double cost = call->grad_in[0] ? SPARSE_COST_SUM + SPARSE_COST_DATA : SPARSE_COST_SUM;
    int64_t spots = 0, all = 0; /* number of spots, and of products of the dense path in vectors */

    for (int64_t b = 0; b < sample_lanes_blocks(call->out[0]); b += SPARSE_LOOK_AT) {
        spots += lanes->count(dy->value + b * block, dy->place ? dy->place + b * block : NULL,
                              sparse->spots);
        all += call->unfused_shape.dim[1] * call->unfused_shape.dim[2] * call->unfused_shape.dim[3];
    }
    return (double)spots * (lanes->spot_cost + cost * (double)vectors) <
           (double)all * (call->grad_in[0] ? 2 * weight : weight);
}

/* Offset of weight[c][i][j] in one output channel's vectors, (i, (j, c)). */
static int64_t sparse_place(const lanes_sparse *s, int64_t c, int64_t i, int64_t j)
{
    return i / s->fold * s->part + j * s->c + c * s->fold + i % s->fold;
}

static void sparse_pack_weight(float *to, const float *weight, const lanes_sparse *s,
                               const int64_t *k)
{
    memset(to, 0, (size_t)(s->o * s->kh * s->part) * sizeof(float));
    for (int64_t o = 0; o < s->o; o++, to += s->kh * s->part)
        for (int64_t c = 0; c < s->c / s->fold; c++)
            for (int64_t t = 0; t < k[0] * k[1]; t++)
                to[sparse_place(s, c, t / k[1], t % k[1])] = *weight++;
}

/* The inverse: grad (+)= sum. */
static void sparse_put_weight(float *grad, const float *sum, const lanes_sparse *s,
                              const int64_t *k, bool add)
{
    for (int64_t o = 0; o < s->o; o++, sum += s->kh * s->part)
        for (int64_t c = 0; c < s->c / s->fold; c++)
            for (int64_t t = 0; t < k[0] * k[1]; t++, grad++)
                *grad = (add ? *grad : 0) + sum[sparse_place(s, c, t / k[1], t % k[1])];
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
        lanes->sparse_data(room->dx + l * s->sample, room->weight, &spots, s);
    }
    lanes->join(dx, room->dx, s);
}

void sample_lanes_sparse_backward(const lanes_sparse *sparse, co_call *call, const float *x,
                                  const sample_lanes_grad *grad, char *room, const co_run *run)
{
    const lanes_loops *lanes = lanes_choose();
    const lanes_sparse *s = sparse;
    const int64_t *k = ((const co_conv2d_attr *)call->attr)->k;
    const int64_t image = sample_lanes_count(call->in[0]) * lanes->lanes;
    float *dx = call->grad_in[0] ? call->grad_in[0]->data : NULL;
    const sparse_room r = sparse_enter(room, s, dx != NULL);
    int64_t at = 0; /* offset of the block in the gradient */

    memset(r.x, 0, (size_t)(s->sample * lanes->lanes) * sizeof(float));
    memset(r.sum, 0, (size_t)(s->o * s->kh * s->part) * sizeof(float));
    memset(r.bias_sum, 0, (size_t)(s->o * lanes->lanes) * sizeof(float));
    if (dx)
        sparse_pack_weight(r.weight, call->param[0].data, s, k);
    for (int64_t b = 0; b < sample_lanes_blocks(call->in[0]); b++) {
        lanes->split(r.x, x, s);
        lanes->list(&r.spots, r.bias_sum, grad->value + at, s->pooled ? grad->place + at : NULL, s);
        sparse_add_weight(&r, s);
        if (dx) {
            sparse_make_data(dx, &r, s);
            dx += image;
        }
        x += image;
        at += s->spots * lanes->lanes;
    }
    sparse_put_weight(call->grad_param[0].data, r.sum, s, k, run->accumulate);
    if (call->n_param > 1)
        lanes->reduce(call->grad_param[1].data, r.bias_sum, s->o, run->accumulate);
}
