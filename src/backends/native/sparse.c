/*
 * sparse.c - the gradients of a convolution by those elements of its output's gradient that are not
 * zero.
 *
 * Max pooling passes a gradient to one place of each window, ReLU and dropout stop some of that. A
 * product with zero can be left out, as long as nothing is infinite; and then training has failed.
 * Blocks are split into samples and come together again, so neighbours in memory are neighbours in
 * the image.
 */
#include <string.h>

#include "backends/native/native.h"

/* Bytes of split samples that the sums of one channel run over: a part of a first-level cache. */
#define SPARSE_PASS_BYTES 24576
/* What a vector costs per spot in sum and in dx, in dense products; and a spot in all. */
#define SPARSE_COST_SUM  1.5
#define SPARSE_COST_DATA 2.5
#define SPARSE_COST_SPOT 10

/* Where things lie in scratch. */
typedef struct sparse_room {
    float *x, *dx, *sum, *bias_sum, *weight;
    native_spot *spot;
    int32_t *end;
} sparse_room;

void native_sparse_describe(native_sparse *out, const co_call *call, const native_pool *pool)
{
    const co_conv2d_attr *a = call->attr;
    const int64_t *in = call->in[0]->shape.dim, *dim = call->out[0]->shape.dim;
    const int64_t lanes = native_choose()->lanes;

    *out = (native_sparse){.c = in[1],
                           .h = in[2],
                           .w = in[3],
                           .o = dim[1],
                           .oh = dim[2],
                           .ow = dim[3],
                           .kh = a->k[0],
                           .pad_h = a->p[0],
                           .pad_w = a->p[1],
                           .stride_h = a->s[0],
                           .stride_w = a->s[1]};
    out->row = (out->w + 2 * out->pad_w) * out->c;
    out->sample = (out->h + 2 * out->pad_h) * out->row + lanes;
    out->part = (a->k[1] * out->c + lanes - 1) / lanes * lanes;
    out->spots = out->o * out->oh * out->ow;
    for (int64_t t = 0; pool && t < pool->kh * pool->kw; t++)
        out->tap[t] = (int32_t)(t / pool->kw * out->stride_h * out->row +
                                t % pool->kw * out->stride_w * out->c);
    if (pool) {
        out->pooled = true;
        out->stride_h *= pool->sh;
        out->stride_w *= pool->sw;
    }
}

static size_t sparse_take(size_t *at, int64_t n, size_t size)
{
    const size_t begin = *at;

    *at += ((size_t)n * size + 63) / 64 * 64;
    return begin;
}

static size_t sparse_lay_out(sparse_room *out, const native_sparse *s, char *room, bool data)
{
    const int64_t lanes = native_choose()->lanes, samples = s->sample * lanes;
    size_t at = 0;

    out->x = (float *)(void *)(room + sparse_take(&at, samples, sizeof(float)));
    out->dx = (float *)(void *)(room + sparse_take(&at, data ? samples : 0, sizeof(float)));
    out->sum = (float *)(void *)(room + sparse_take(&at, s->o * s->kh * s->part, sizeof(float)));
    out->bias_sum = (float *)(void *)(room + sparse_take(&at, s->o * lanes, sizeof(float)));
    out->weight = (float *)(void *)(room + sparse_take(&at, data ? s->o * s->kh * s->part : 0,
                                                       sizeof(float)));
    out->spot =
        (native_spot *)(void *)(room + sparse_take(&at, s->spots * lanes, sizeof(native_spot)));
    out->end = (int32_t *)(void *)(room + sparse_take(&at, s->o * lanes, sizeof(int32_t)));
    return at;
}

size_t native_sparse_room(const native_sparse *sparse, const co_call *call)
{
    const co_conv2d_attr *a = call->attr;
    sparse_room room;
    char none;

    if (a->d[1] != 1 || a->d[0] != 1 || sparse->sample > INT32_MAX || sparse->spots > INT32_MAX)
        return 0;
    return sparse_lay_out(&room, sparse, &none, call->grad_in[0] != NULL);
}

bool native_sparse_pays(const native_sparse *sparse, const co_call *call, const native_grad *dy)
{
    const native_lanes *lanes = native_choose();
    const co_conv2d_attr *a = call->attr;
    const int64_t vectors = native_blocks(call->out[0]) * sparse->spots;
    const int64_t all =
        native_blocks(call->out[0]) * call->made.dim[1] * call->made.dim[2] * call->made.dim[3];
    const int64_t spots = dy->place ? lanes->count_pooled(dy->value, dy->place, vectors)
                                    : lanes->count(dy->value, vectors);
    const double weight = (double)(sparse->c * a->k[0] * a->k[1]);
    const double part = (double)(sparse->kh * sparse->part) / (double)lanes->lanes;
    const double cost = call->grad_in[0] ? SPARSE_COST_SUM + SPARSE_COST_DATA : SPARSE_COST_SUM;

    return (double)spots * (SPARSE_COST_SPOT + cost * part) <
           (double)all * (call->grad_in[0] ? 2 * weight : weight);
}

/* to[o][i][j, c] = weight[o][c][i][j], of one o */
static void sparse_pack_channel(float *to, const float *weight, const native_sparse *s, int64_t kw)
{
    for (int64_t c = 0; c < s->c; c++)
        for (int64_t i = 0; i < s->kh; i++)
            for (int64_t j = 0; j < kw; j++)
                to[i * s->part + j * s->c + c] = *weight++;
}

static void sparse_pack_weight(float *to, const float *weight, const native_sparse *s, int64_t kw)
{
    memset(to, 0, (size_t)(s->o * s->kh * s->part) * sizeof(float));
    for (int64_t o = 0; o < s->o; o++)
        sparse_pack_channel(to + o * s->kh * s->part, weight + o * s->c * s->kh * kw, s, kw);
}

/* The same back: grad = or += sum. */
static void sparse_put_channel(float *grad, const float *sum, const native_sparse *s, int64_t kw,
                               bool add)
{
    for (int64_t c = 0; c < s->c; c++)
        for (int64_t i = 0; i < s->kh; i++)
            for (int64_t j = 0; j < kw; j++, grad++)
                *grad = (add ? *grad : 0) + sum[i * s->part + j * s->c + c];
}

static void sparse_put_weight(float *grad, const float *sum, const native_sparse *s, int64_t kw,
                              bool add)
{
    for (int64_t o = 0; o < s->o; o++)
        sparse_put_channel(grad + o * s->c * s->kh * kw, sum + o * s->kh * s->part, s, kw, add);
}

static void sparse_add_weight(const sparse_room *room, const native_sparse *s)
{
    const int64_t lanes = native_choose()->lanes;
    const int64_t fit = SPARSE_PASS_BYTES / (s->sample * (int64_t)sizeof(float));

    for (int64_t l = 0; l<lanes; l += fit> 1 ? fit : 1) {
        const int64_t n = lanes - l < fit ? lanes - l : fit > 1 ? fit : 1;

        native_choose()->sparse_weight(room->sum, room->x + l * s->sample,
                                       room->spot + l * s->spots, room->end + l * s->o, n, s);
    }
}

static void sparse_make_data(float *dx, const sparse_room *room, const native_sparse *s)
{
    const native_lanes *lanes = native_choose();

    for (int64_t l = 0; l < lanes->lanes; l++) {
        memset(room->dx + l * s->sample, 0, (size_t)s->sample * sizeof(float));
        lanes->sparse_data(room->dx + l * s->sample, room->weight, room->spot + l * s->spots,
                           room->end + l * s->o, s);
    }
    lanes->join(dx, room->dx, s);
}

void native_sparse_backward(const native_sparse *sparse, co_call *call, const float *x,
                            const native_grad *grad, char *room, const co_run *run)
{
    const native_lanes *lanes = native_choose();
    const native_sparse *s = sparse;
    const int64_t kw = ((const co_conv2d_attr *)call->attr)->k[1];
    float *dx = call->grad_in[0] ? call->grad_in[0]->data : NULL;
    int64_t at = 0; /* of the block in the gradient */
    sparse_room r;

    (void)sparse_lay_out(&r, s, room, dx != NULL);
    memset(r.x, 0, (size_t)(s->sample * lanes->lanes) * sizeof(float));
    memset(r.sum, 0, (size_t)(s->o * s->kh * s->part) * sizeof(float));
    memset(r.bias_sum, 0, (size_t)(s->o * lanes->lanes) * sizeof(float));
    if (dx)
        sparse_pack_weight(r.weight, call->param[0].data, s, kw);
    for (int64_t b = 0; b < native_blocks(call->in[0]); b++) {
        lanes->split(r.x, x, s);
        if (s->pooled)
            lanes->list_pooled(r.spot, r.end, r.bias_sum, grad->value + at, grad->place + at, s);
        else
            lanes->list(r.spot, r.end, r.bias_sum, grad->value + at, s);
        sparse_add_weight(&r, s);
        if (dx) {
            sparse_make_data(dx, &r, s);
            dx += s->c * s->h * s->w * lanes->lanes;
        }
        x += s->c * s->h * s->w * lanes->lanes;
        at += s->spots * lanes->lanes;
    }
    sparse_put_weight(call->grad_param[0].data, r.sum, s, kw, run->accumulate);
    if (call->n_param > 1)
        lanes->reduce(call->grad_param[1].data, r.bias_sum, s->o, run->accumulate);
}
