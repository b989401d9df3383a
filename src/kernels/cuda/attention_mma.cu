/*
 * attention_mma.cu - attention.cu in 16 bits on tensor cores. A warp has 16 positions, whose
 * operands and sums are registers, and the block goes over tiles of the others; weights and their
 * gradients are rounded for the products that read them, as in Dao, arXiv:2307.08691. Exponentials
 * are of 2, and so is the logarithm that forward leaves.
 */
#include "kernels/cuda/attention.h"

#include <math.h>

#include "kernels/cuda/attention_rows.h"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/warp.h"

#define SIZE   CUDA_ATTENTION_SIZE
#define OWNS   CUDA_ATTENTION_OWN
#define ROWS   64            /* of a tile */
#define PAD    CUDA_TOGETHER /* rows of a tile start in other banks */
#define TILE   (ROWS * (SIZE + PAD) / CUDA_TOGETHER)
#define LEFTS  (SIZE / 16) /* factors of a warp's rows */
#define SUMS   (SIZE / 8)  /* sums of a warp's rows */
#define LOG2_E 1.44269504088896341F

/* ---- rows in memory ---- */

/* A tile of the rows from `begin` on, `depth` numbers of each; 0 where there are none. */
INLINE void mma_load(elements_16 *tile, const void *from, attention_rows rows, uint32_t begin,
                     uint32_t depth, const cuda_attention *arg)
{
    for (uint32_t e = THREAD * CUDA_TOGETHER; e < ROWS * depth; e += THREADS * CUDA_TOGETHER) {
        const uint32_t r = e / depth, d = e % depth;
        const size_t at = rows.first + (begin + r) * rows.step + d;
        elements_16 all = {{0, 0, 0, 0}};

        if (begin + r < arg->length && d < arg->size)
            all = *(const elements_16 *)(const void *)((const uint16_t *)from + at);
        tile[(r * (depth + PAD) + d) / CUDA_TOGETHER] = all;
    }
}

/* The pair at `column` of the row at t. */
static inline uint32_t mma_pair_at(const void *from, attention_rows rows, uint32_t t,
                                   uint32_t column, const cuda_attention *arg)
{
    return t < arg->length && column < arg->size
               ? ((const uint32_t *)from)[(rows.first + t * rows.step + column) / 2]
               : 0;
}

/* A thread's part of the warp's rows, those of the block being from `begin` on, as left factors. */
INLINE void mma_take_own(warp_block *own, const void *from, attention_rows rows, uint32_t begin,
                         uint32_t depth, const cuda_attention *arg)
{
    const uint32_t first = begin + WARP * 16;

    UNROLL (d, depth / 16)
        UNROLL (r, 4)
            own[d].v[r] = mma_pair_at(from, rows, first + WARP_ROW(r % 2 * 2),
                                      d * 16 + WARP_COLUMN(0) + r / 2 * 8, arg);
}

/* A thread's part of the sums of the warp's rows, times `factor` (2) of each of its rows. */
INLINE void mma_store(void *to, attention_rows rows, uint32_t begin, const warp_sums *sums,
                      const float *factor, uint32_t depth, cuda_number type,
                      const cuda_attention *arg)
{
    UNROLL (d, depth / 8)
        UNROLL (h, 2) {
            const uint32_t t = begin + WARP * 16 + WARP_ROW(2 * h), column = d * 8 + WARP_COLUMN(0);
            const float *pair = &sums[d].v[2 * h];

            if (t < arg->length && column < arg->size)
                ((uint32_t *)to)[(rows.first + t * rows.step + column) / 2] =
                    PAIR(pair[0] * factor[h], pair[1] * factor[h], type);
        }
}

INLINE void mma_clear(warp_sums *sums, uint32_t n)
{
    UNROLL (i, n)
        UNROLL (r, 4)
            sums[i].v[r] = 0;
}

/* 16 x 16 values as a left factor. */
INLINE void mma_round(warp_block *to, const warp_sums *values, cuda_number type)
{
    UNROLL (r, 4)
        to->v[r] = PAIR(values[r / 2].v[r % 2 * 2], values[r / 2].v[r % 2 * 2 + 1], type);
}

/* Tiles of `tile` positions. */
static inline uint32_t mma_tiles(const cuda_attention *arg, uint32_t tile)
{
    return (arg->length + tile - 1) / tile;
}

/* Keys that a block's queries from `begin` on look at: up to this one. */
static inline uint32_t mma_end(const cuda_attention *arg, uint32_t begin)
{
    return arg->causal && begin + OWNS < arg->length ? begin + OWNS : arg->length;
}

/* ---- products of the warp's rows with 16 rows of a tile ---- */

/* to (16 x 16) = own * the rows' transpose. */
INLINE void mma_dot(OWNED(warp_sums, to, SUMS), uint32_t i, OWNED(warp_block, own, LEFTS),
                    const elements_16 *tile, uint32_t row, uint32_t depth, cuda_number type)
{
    OWN(warp_block, right, 1);

    ALONE
        mma_clear(MINE(to) + i, 2);
    UNROLL (d, depth / 16) {
        LOAD_AS_COLUMNS(right, 0, tile, depth + PAD, row, d * 16);
        MULTIPLY_ADD(to, i, own, d, right, 0, type);
    }
}

/* sums += weights[i] (16 x 16) * the rows. */
INLINE void mma_gather(OWNED(warp_sums, sums, SUMS), OWNED(warp_block, weights, ROWS / 16),
                       uint32_t i, const elements_16 *tile, uint32_t row, uint32_t depth,
                       cuda_number type)
{
    OWN(warp_block, right, 1);

    UNROLL (d, depth / 16) {
        LOAD_AS_ROWS(right, 0, tile, depth + PAD, row, d * 16);
        MULTIPLY_ADD(sums, 2 * d, weights, i, right, 0, type);
    }
}

/* ---- forward ---- */

/* Where a block's work is. */
typedef struct mma_place {
    uint32_t n, head, begin;
} mma_place;

static inline mma_place mma_place_of(const cuda_attention *arg, uint32_t work, uint32_t heads)
{
    const uint32_t tiles = mma_tiles(arg, OWNS);
    mma_place at;

    at.begin = work % tiles * OWNS;
    at.head = work / tiles % heads;
    at.n = work / tiles / heads;
    return at;
}

/* A thread's scores with the tile from `first` on, as powers of 2, and their maximum by row. */
INLINE void mma_scale(warp_sums *score, float *top, mma_place at, uint32_t first,
                      const cuda_attention *arg)
{
    const uint32_t begin = at.begin + WARP * 16;

    top[0] = top[1] = -INFINITY;
    UNROLL (i, ROWS / 8)
        UNROLL (r, 4) {
            score[i].v[r] = attention_sees(arg, begin + WARP_ROW(r), first + i * 8 + WARP_COLUMN(r))
                                ? score[i].v[r] * (arg->scale * LOG2_E)
                                : -INFINITY;
            top[r / 2] = fmaxf(top[r / 2], score[i].v[r]);
        }
}

/* Weights from a thread's scores, and the sums so far, which shrink as their maximum grows. */
INLINE void mma_weigh(warp_sums *score, warp_sums *y, float *most, float *sum, const float *top,
                      uint32_t depth)
{
    float shift[2], shrink[2];

    UNROLL (h, 2) {
        const float now = fmaxf(most[h], top[h]);

        shift[h] = now > -INFINITY ? now : 0; /* nothing has been seen yet */
        shrink[h] = exp2f(most[h] - shift[h]);
        most[h] = now;
        sum[h] *= shrink[h];
    }
    UNROLL (i, ROWS / 8)
        UNROLL (r, 4) {
            score[i].v[r] = exp2f(score[i].v[r] - shift[r / 2]);
            sum[r / 2] += score[i].v[r];
        }
    UNROLL (d, depth / 8)
        UNROLL (r, 4)
            y[d].v[r] *= shrink[r / 2];
}

/* A thread's weights as left factors, without those that are dropped. */
INLINE void mma_drop(warp_block *weights, warp_sums *score, mma_place at, uint32_t first,
                     cuda_number type, const cuda_attention *arg)
{
    const uint32_t begin = at.begin + WARP * 16;

    UNROLL (i, ROWS / 8)
        UNROLL (r, 4)
            if (arg->dropout > 0)
                score[i].v[r] *= attention_factor(arg, at.n, at.head, begin + WARP_ROW(r),
                                                  first + i * 8 + WARP_COLUMN(r));
    UNROLL (c, ROWS / 16)
        mma_round(&weights[c], score + 2 * c, type);
}

INLINE void mma_leave(const cuda_attention *arg, const warp_sums *y, const float *most,
                      const float *sum, mma_place at, uint32_t depth, cuda_number type)
{
    const float factor[2] = {1 / sum[0], 1 / sum[1]};

    mma_store(arg->out, attention_output(arg, at.n, at.head), at.begin, y, factor, depth, type,
              arg);
    for (uint32_t h = 0; h < 2; h++) {
        const uint32_t t = at.begin + WARP * 16 + WARP_ROW(2 * h);

        if (LANE % 4 == 0 && t < arg->length)
            arg->norm[((size_t)at.n * arg->heads + at.head) * arg->length + t] =
                most[h] + log2f(sum[h]);
    }
}

INLINE void mma_forward(const cuda_attention *arg, uint32_t depth, cuda_number type)
{
    SHARED elements_16 k[TILE], v[TILE];
    OWN(warp_block, q, LEFTS);
    OWN(warp_block, weights, ROWS / 16);
    OWN(warp_sums, y, SUMS);
    OWN(warp_sums, score, SUMS);
    OWN(float, most, 2);
    OWN(float, sum, 2);
    OWN(float, top, 2);

    for (uint32_t work = BLOCK; work < arg->n * arg->heads * mma_tiles(arg, OWNS); work += BLOCKS) {
        const mma_place at = mma_place_of(arg, work, arg->heads);
        const uint32_t key = attention_key_head(arg, at.head);

        ALONE {
            mma_take_own(MINE(q), arg->x, attention_input(arg, at.n, at.head), at.begin, depth,
                         arg);
            mma_clear(MINE(y), depth / 8);
            MINE(most)[0] = MINE(most)[1] = -INFINITY;
            MINE(sum)[0] = MINE(sum)[1] = 0;
        }
        for (uint32_t first = 0; first < mma_end(arg, at.begin); first += ROWS) {
            SYNC();
            PHASE {
                mma_load(k, arg->x, attention_input(arg, at.n, key), first, depth, arg);
                mma_load(v, arg->x, attention_input(arg, at.n, key + arg->kv_heads), first, depth,
                         arg);
            }
            UNROLL (c, ROWS / 16)
                mma_dot(score, 2 * c, q, k, c * 16, depth, type);
            ALONE
                mma_scale(MINE(score), MINE(top), at, first, arg);
            QUAD_MAX(top, 0);
            QUAD_MAX(top, 1);
            ALONE {
                mma_weigh(MINE(score), MINE(y), MINE(most), MINE(sum), MINE(top), depth);
                mma_drop(MINE(weights), MINE(score), at, first, type, arg);
            }
            UNROLL (c, ROWS / 16)
                mma_gather(y, weights, c, v, c * 16, depth, type);
        }
        QUAD_SUM(sum, 0);
        QUAD_SUM(sum, 1);
        ALONE
            mma_leave(arg, MINE(y), MINE(most), MINE(sum), at, depth, type);
    }
}

/* ---- backward ---- */

/* What a pair of a query and a key leaves: *weight is its score, and becomes its weight as often as
   it counts; *slope is dp, and becomes dz. `norm` and `mean` are the query's. */
static inline void mma_differentiate(float *weight, float *slope, const cuda_attention *arg,
                                     mma_place at, uint32_t t, uint32_t s, float norm, float mean)
{
    const float factor = attention_factor(arg, at.n, at.head, t, s);
    const float p = attention_sees(arg, t, s) ? exp2f(*weight * (arg->scale * LOG2_E) - norm) : 0;

    *slope = attention_sees(arg, t, s) ? p * arg->scale * (factor * *slope - mean) : 0;
    *weight = p * factor;
}

/* A thread's part of the means of dp by row, sum_d dy y. */
INLINE void mma_average(float *mean, const warp_block *dy, mma_place at, uint32_t depth,
                        cuda_number type, const cuda_attention *arg)
{
    const attention_rows rows = attention_output(arg, at.n, at.head);

    mean[0] = mean[1] = 0;
    UNROLL (d, depth / 16)
        UNROLL (r, 4) {
            const uint32_t y = mma_pair_at(arg->y, rows, at.begin + WARP * 16 + WARP_ROW(r % 2 * 2),
                                           d * 16 + WARP_COLUMN(0) + r / 2 * 8, arg);

            for (uint32_t e = 0; e < 32; e += 16)
                mean[r % 2] += element_widen((uint16_t)(dy[d].v[r] >> e), type) *
                               element_widen((uint16_t)(y >> e), type);
        }
}

/* Norms of a thread's rows, which are read, and the means of dp there, which are left. */
INLINE void mma_exchange(const cuda_attention *arg, float *norm, const float *mean, mma_place at)
{
    const size_t line = ((size_t)at.n * arg->heads + at.head) * arg->length;

    for (uint32_t h = 0; h < 2; h++) {
        const uint32_t t = at.begin + WARP * 16 + WARP_ROW(2 * h);

        norm[h] = t < arg->length ? arg->norm[line + t] : 0;
        if (LANE % 4 == 0 && t < arg->length)
            arg->mean[line + t] = mean[h];
    }
}

/* dq += dz k for 16 keys, from `row` on of the tile from `first` on. */
INLINE void mma_pull_keys(const cuda_attention *arg, OWNED(warp_sums, dq, SUMS),
                          OWNED(warp_block, q, LEFTS), OWNED(warp_block, dy, LEFTS),
                          OWNED(float, norm, 2), OWNED(float, mean, 2), const elements_16 *k,
                          const elements_16 *v, mma_place at, uint32_t first, uint32_t row,
                          uint32_t depth, cuda_number type)
{
    OWN(warp_sums, weight, SUMS);
    OWN(warp_sums, slope, SUMS);
    OWN(warp_block, dz, ROWS / 16);

    mma_dot(weight, 0, q, k, row, depth, type);
    mma_dot(slope, 0, dy, v, row, depth, type);
    ALONE {
        UNROLL (e, 8) {
            const uint32_t i = e / 4, r = e % 4;

            mma_differentiate(&MINE(weight)[i].v[r], &MINE(slope)[i].v[r], arg, at,
                              at.begin + WARP * 16 + WARP_ROW(r),
                              first + row + i * 8 + WARP_COLUMN(r), MINE(norm)[r / 2],
                              MINE(mean)[r / 2]);
        }
        mma_round(&MINE(dz)[0], MINE(slope), type);
    }
    mma_gather(dq, dz, 0, k, row, depth, type);
}

/* dq, and the means of dp that the keys' part takes. */
INLINE void mma_backward_queries(const cuda_attention *arg, uint32_t depth, cuda_number type)
{
    SHARED elements_16 k[TILE], v[TILE];
    OWN(warp_block, q, LEFTS);
    OWN(warp_block, dy, LEFTS);
    OWN(warp_sums, dq, SUMS);
    OWN(float, norm, 2);
    OWN(float, mean, 2);
    const float one[2] = {1, 1};

    for (uint32_t work = BLOCK; work < arg->n * arg->heads * mma_tiles(arg, OWNS); work += BLOCKS) {
        const mma_place at = mma_place_of(arg, work, arg->heads);
        const attention_rows in = attention_input(arg, at.n, at.head);
        const uint32_t key = attention_key_head(arg, at.head);

        ALONE {
            mma_take_own(MINE(q), arg->x, in, at.begin, depth, arg);
            mma_take_own(MINE(dy), arg->dy, attention_output(arg, at.n, at.head), at.begin, depth,
                         arg);
            mma_clear(MINE(dq), depth / 8);
            mma_average(MINE(mean), MINE(dy), at, depth, type, arg);
        }
        QUAD_SUM(mean, 0);
        QUAD_SUM(mean, 1);
        ALONE
            mma_exchange(arg, MINE(norm), MINE(mean), at);
        for (uint32_t first = 0; first < mma_end(arg, at.begin); first += ROWS) {
            SYNC();
            PHASE {
                mma_load(k, arg->x, attention_input(arg, at.n, key), first, depth, arg);
                mma_load(v, arg->x, attention_input(arg, at.n, key + arg->kv_heads), first, depth,
                         arg);
            }
            ROLLED
            for (uint32_t row = 0; row < ROWS; row += 16)
                mma_pull_keys(arg, dq, q, dy, norm, mean, k, v, at, first, row, depth, type);
        }
        ALONE
            mma_store(arg->out, in, at.begin, MINE(dq), one, depth, type, arg);
    }
}

/* dk += dz' q and dv += p' dy for 16 queries, from `row` on of the tile from `first` on. */
INLINE void mma_pull_queries(const cuda_attention *arg, OWNED(warp_sums, dk, SUMS),
                             OWNED(warp_sums, dv, SUMS), OWNED(warp_block, k, LEFTS),
                             OWNED(warp_block, v, LEFTS), const elements_16 *q,
                             const elements_16 *dy, const float *norm, const float *mean,
                             mma_place at, uint32_t first, uint32_t row, uint32_t depth,
                             cuda_number type)
{
    OWN(warp_sums, weight, SUMS);
    OWN(warp_sums, slope, SUMS);
    OWN(warp_block, p, ROWS / 16);
    OWN(warp_block, dz, ROWS / 16);

    mma_dot(weight, 0, k, q, row, depth, type);
    mma_dot(slope, 0, v, dy, row, depth, type);
    ALONE {
        UNROLL (e, 8) {
            const uint32_t i = e / 4, r = e % 4, t = row + i * 8 + WARP_COLUMN(r);

            mma_differentiate(&MINE(weight)[i].v[r], &MINE(slope)[i].v[r], arg, at, first + t,
                              at.begin + WARP * 16 + WARP_ROW(r), norm[t], mean[t]);
        }
        mma_round(&MINE(p)[0], MINE(weight), type);
        mma_round(&MINE(dz)[0], MINE(slope), type);
    }
    mma_gather(dv, p, 0, dy, row, depth, type);
    mma_gather(dk, dz, 0, q, row, depth, type);
}

/* Tiles of queries and of what is known of them. */
INLINE void mma_load_queries(elements_16 *q, elements_16 *dy, float *norm, float *mean,
                             mma_place at, uint32_t first, uint32_t depth,
                             const cuda_attention *arg)
{
    const size_t line = ((size_t)at.n * arg->heads + at.head) * arg->length;

    mma_load(q, arg->x, attention_input(arg, at.n, at.head), first, depth, arg);
    mma_load(dy, arg->dy, attention_output(arg, at.n, at.head), first, depth, arg);
    if (THREAD < ROWS) {
        norm[THREAD] = first + THREAD < arg->length ? arg->norm[line + first + THREAD] : 0;
        mean[THREAD] = first + THREAD < arg->length ? arg->mean[line + first + THREAD] : 0;
    }
}

/* dk and dv of a block's keys, over all queries of the heads that share them. */
INLINE void mma_backward_keys(const cuda_attention *arg, uint32_t depth, cuda_number type)
{
    SHARED elements_16 q[TILE], dy[TILE];
    SHARED float norm[ROWS], mean[ROWS];
    OWN(warp_block, k, LEFTS);
    OWN(warp_block, v, LEFTS);
    OWN(warp_sums, dk, SUMS);
    OWN(warp_sums, dv, SUMS);
    const uint32_t shared = arg->heads / arg->kv_heads;
    const float one[2] = {1, 1};

    for (uint32_t work = BLOCK; work < arg->n * arg->kv_heads * mma_tiles(arg, OWNS);
         work += BLOCKS) {
        mma_place at = mma_place_of(arg, work, arg->kv_heads);
        const attention_rows keys = attention_input(arg, at.n, arg->heads + at.head);
        const attention_rows values =
            attention_input(arg, at.n, arg->heads + arg->kv_heads + at.head);
        const uint32_t start = arg->causal ? at.begin : 0, first_head = at.head * shared;

        ALONE {
            mma_take_own(MINE(k), arg->x, keys, at.begin, depth, arg);
            mma_take_own(MINE(v), arg->x, values, at.begin, depth, arg);
            mma_clear(MINE(dk), depth / 8);
            mma_clear(MINE(dv), depth / 8);
        }
        for (at.head = first_head; at.head < first_head + shared; at.head++)
            for (uint32_t first = start; first < arg->length; first += ROWS) {
                SYNC();
                PHASE
                    mma_load_queries(q, dy, norm, mean, at, first, depth, arg);
                ROLLED
                for (uint32_t row = 0; row < ROWS; row += 16)
                    mma_pull_queries(arg, dk, dv, k, v, q, dy, norm, mean, at, first, row, depth,
                                     type);
            }
        ALONE {
            mma_store(arg->out, keys, at.begin, MINE(dk), one, depth, type, arg);
            mma_store(arg->out, values, at.begin, MINE(dv), one, depth, type, arg);
        }
    }
}

/* ---- for heads of up to 64 numbers, and of up to 128 ---- */

#define MMA_KERNEL(way, type, number, depth, blocks)                                               \
    KERNEL_OF(attention_mma_##way##_##type##_##depth, cuda_attention, blocks)                      \
    {                                                                                              \
        mma_##way(&arg, depth, number);                                                            \
    }
#define MMA_KERNELS(way, blocks)                                                                   \
    MMA_KERNEL(way, bf16, CUDA_NUMBER_BF16, 64, blocks)                                            \
    MMA_KERNEL(way, bf16, CUDA_NUMBER_BF16, 128, 1)                                                \
    MMA_KERNEL(way, f16, CUDA_NUMBER_F16, 64, blocks)                                              \
    MMA_KERNEL(way, f16, CUDA_NUMBER_F16, 128, 1)

MMA_KERNELS(forward, 2)
MMA_KERNELS(backward_queries, 2)
MMA_KERNELS(backward_keys, 1)
