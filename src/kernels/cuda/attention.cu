/*
 * attention.cu - weighted means over the positions of a sequence: src/backends/ref has the
 * equations. Weights are never in memory: a block goes over tiles of keys for a tile of queries,
 * with the maximum and the sum of exponentials so far (Milakov & Gimelshein, arXiv:1805.02867; Dao
 * et al., arXiv:2205.14135). Backward computes them again, once for each tile of queries and once
 * for each tile of keys, so that nothing is added by several blocks.
 */
#include "kernels/cuda/attention.h"

#include <math.h>

#include "kernels/cuda/attention_rows.h"
#include "kernels/cuda/grid.h"

#define TILE CUDA_ATTENTION_TILE
#define STEP (CUDA_ATTENTION_SIZE + 1)    /* from row to row of a tile: rows start in other banks */
#define PART (CUDA_ATTENTION_SIZE / TILE) /* columns of a row that a thread has */

/* A thread is at (ROW, COLUMN) of a tile of pairs, and has the columns COLUMN + TILE j of a row. */
#define ROW    (THREAD / TILE)
#define COLUMN (THREAD % TILE)

/* A thread's part of the rows from `begin` on; 0 after the last. */
static inline void attention_load(float *tile, const void *x, attention_rows rows, uint32_t begin,
                                  const cuda_attention *arg, uint32_t thread)
{
    const float *from = (const float *)x;

    for (uint32_t e = thread; e < TILE * arg->size; e += TILE * TILE) {
        const uint32_t r = e / arg->size, d = e % arg->size;

        tile[r * STEP + d] =
            begin + r < arg->length ? from[rows.first + (begin + r) * rows.step + d] : 0;
    }
}

static inline float attention_dot(const float *a, const float *b, uint32_t size)
{
    float sum = 0;

    for (uint32_t d = 0; d < size; d++)
        sum = FMA(a[d], b[d], sum);
    return sum;
}

/* Keys that queries of the tile from `begin` on look at: up to this one. */
static inline uint32_t attention_end(const cuda_attention *arg, uint32_t begin)
{
    return arg->causal && begin + TILE < arg->length ? begin + TILE : arg->length;
}

/* A thread's part of sum_c weight[c] tile[c], added; weights are `step` apart. */
INLINE void attention_gather(float *sum, const float *weight, uint32_t step, const float *tile,
                             const cuda_attention *arg)
{
    for (uint32_t j = 0; j < PART; j++)
        for (uint32_t c = 0; c < TILE && COLUMN + j * TILE < arg->size; c++)
            sum[j] = FMA(weight[c * step], tile[c * STEP + COLUMN + j * TILE], sum[j]);
}

/* A thread's part of the row at `begin` + ROW. */
INLINE void attention_store(void *out, attention_rows rows, uint32_t begin, const float *part,
                            float divisor, const cuda_attention *arg)
{
    const uint32_t t = begin + ROW;
    float *to = (float *)out;

    for (uint32_t j = 0; j < PART; j++)
        if (t < arg->length && COLUMN + j * TILE < arg->size)
            to[rows.first + t * rows.step + COLUMN + j * TILE] = part[j] / divisor;
}

static inline float attention_row_max(const float *p, float most)
{
    for (uint32_t c = 0; c < TILE; c++)
        most = fmaxf(most, p[ROW * TILE + c]);
    return most;
}

static inline float attention_row_sum(const float *p, float sum)
{
    for (uint32_t c = 0; c < TILE; c++)
        sum += p[ROW * TILE + c];
    return sum;
}

/* exp(z - now); 0 where nothing has been seen yet. */
static inline float attention_exp(float z, float now)
{
    return now > -INFINITY ? expf(z - now) : 0;
}

/* The tile of queries from `begin` on with one tile of keys and values: of each query the sum so
   far shrinks as its maximum grows. */
INLINE void attention_take_keys(const cuda_attention *arg, const float *q, float *kv, float *p,
                                float *most, float *sum, float *shrink, uint32_t n, uint32_t head,
                                uint32_t begin, uint32_t first)
{
    const uint32_t key = attention_key_head(arg, head);

    PHASE
        attention_load(kv, arg->x, attention_input(arg, n, key), first, arg, THREAD);
    PHASE
        p[THREAD] = attention_sees(arg, begin + ROW, first + COLUMN)
                        ? attention_dot(q + ROW * STEP, kv + COLUMN * STEP, arg->size) * arg->scale
                        : -INFINITY;
    PHASE {
        attention_load(kv, arg->x, attention_input(arg, n, key + arg->kv_heads), first, arg,
                       THREAD);
        if (COLUMN > 0)
            continue;
        shrink[ROW] = attention_exp(most[ROW], attention_row_max(p, most[ROW]));
        most[ROW] = attention_row_max(p, most[ROW]);
    }
    PHASE
        p[THREAD] = attention_exp(p[THREAD], most[ROW]);
    PHASE
        if (COLUMN == 0)
            sum[ROW] = attention_row_sum(p, sum[ROW] * shrink[ROW]);
    if (arg->dropout > 0) {
        PHASE
            p[THREAD] *= attention_factor(arg, n, head, begin + ROW, first + COLUMN);
    }
}

KERNEL(attention_forward, cuda_attention)
{
    SHARED float q[TILE * STEP], kv[TILE * STEP], p[TILE * TILE];
    SHARED float most[TILE], sum[TILE], shrink[TILE];
    OWN(float, y, PART);
    const uint32_t tiles = (arg.length + TILE - 1) / TILE;

    for (uint32_t work = BLOCK; work < arg.n * arg.heads * tiles; work += BLOCKS) {
        const uint32_t begin = work % tiles * TILE, head = work / tiles % arg.heads;
        const uint32_t n = work / tiles / arg.heads;

        PHASE {
            attention_load(q, arg.x, attention_input(&arg, n, head), begin, &arg, THREAD);
            for (uint32_t j = 0; j < PART; j++)
                MINE(y)[j] = 0;
            if (COLUMN > 0)
                continue;
            most[ROW] = -INFINITY;
            sum[ROW] = 0;
        }
        for (uint32_t first = 0; first < attention_end(&arg, begin); first += TILE) {
            attention_take_keys(&arg, q, kv, p, most, sum, shrink, n, head, begin, first);
            PHASE {
                for (uint32_t j = 0; j < PART; j++)
                    MINE(y)[j] *= shrink[ROW];
                attention_gather(MINE(y), p + ROW * TILE, 1, kv, &arg);
            }
        }
        PHASE {
            attention_store(arg.out, attention_output(&arg, n, head), begin, MINE(y), sum[ROW],
                            &arg);
            if (COLUMN == 0 && begin + ROW < arg.length)
                arg.norm[((size_t)n * arg.heads + head) * arg.length + begin + ROW] =
                    most[ROW] + logf(sum[ROW]);
        }
    }
}

/* ---- backward ---- */

/* Tiles of the operands, and what is known of the queries. */
typedef struct attention_tiles {
    const float *q, *k, *v, *dy;
    const float *norm, *mean; /* of the query at t: [t] */
    uint32_t n, head;
} attention_tiles;

/* dz of a thread's pair, the query at t and the key at s; *p its weight, as often as it counts. */
static inline float attention_pair(float *p, const attention_tiles *tiles, uint32_t t, uint32_t s,
                                   const cuda_attention *arg)
{
    const float *q = tiles->q + ROW * STEP, *k = tiles->k + COLUMN * STEP;
    const float *dy = tiles->dy + ROW * STEP, *v = tiles->v + COLUMN * STEP;
    const float factor = attention_factor(arg, tiles->n, tiles->head, t, s);
    float dz;

    *p = 0;
    if (!attention_sees(arg, t, s))
        return 0;
    *p = expf(attention_dot(q, k, arg->size) * arg->scale - tiles->norm[t]);
    dz = *p * arg->scale * (factor * attention_dot(dy, v, arg->size) - tiles->mean[t]);
    *p *= factor;
    return dz;
}

/* dq, and the means of dp that the keys' part takes. */
KERNEL(attention_backward_queries, cuda_attention)
{
    SHARED float q[TILE * STEP], dy[TILE * STEP], k[TILE * STEP], v[TILE * STEP];
    SHARED float dz[TILE * TILE];
    OWN(float, dq, PART);
    const uint32_t tiles = (arg.length + TILE - 1) / TILE;

    for (uint32_t work = BLOCK; work < arg.n * arg.heads * tiles; work += BLOCKS) {
        const uint32_t begin = work % tiles * TILE, head = work / tiles % arg.heads;
        const uint32_t n = work / tiles / arg.heads, key = attention_key_head(&arg, head);
        const attention_rows in = attention_input(&arg, n, head);
        const attention_rows out = attention_output(&arg, n, head);
        const size_t line = ((size_t)n * arg.heads + head) * arg.length;
        const attention_tiles all = {q, k, v, dy, arg.norm + line, arg.mean + line, n, head};

        PHASE {
            const uint32_t t = begin + ROW;

            attention_load(q, arg.x, in, begin, &arg, THREAD);
            attention_load(dy, arg.dy, out, begin, &arg, THREAD);
            for (uint32_t j = 0; j < PART; j++)
                MINE(dq)[j] = 0;
            if (COLUMN == 0 && t < arg.length)
                arg.mean[line + t] =
                    attention_dot((const float *)arg.dy + out.first + t * out.step,
                                  (const float *)arg.y + out.first + t * out.step, arg.size);
        }
        for (uint32_t first = 0; first < attention_end(&arg, begin); first += TILE) {
            PHASE {
                attention_load(k, arg.x, attention_input(&arg, n, key), first, &arg, THREAD);
                attention_load(v, arg.x, attention_input(&arg, n, key + arg.kv_heads), first, &arg,
                               THREAD);
            }
            PHASE {
                float p;

                dz[THREAD] = attention_pair(&p, &all, begin + ROW, first + COLUMN, &arg);
            }
            PHASE
                attention_gather(MINE(dq), dz + ROW * TILE, 1, k, &arg);
        }
        PHASE
            attention_store(arg.out, in, begin, MINE(dq), 1, &arg);
    }
}

/* dk and dv of a tile of keys, over all queries of the heads that share them. */
KERNEL(attention_backward_keys, cuda_attention)
{
    SHARED float q[TILE * STEP], dy[TILE * STEP], k[TILE * STEP], v[TILE * STEP];
    SHARED float p[TILE * TILE], dz[TILE * TILE];
    OWN(float, dk, PART);
    OWN(float, dv, PART);
    const uint32_t tiles = (arg.length + TILE - 1) / TILE, shared = arg.heads / arg.kv_heads;

    for (uint32_t work = BLOCK; work < arg.n * arg.kv_heads * tiles; work += BLOCKS) {
        const uint32_t begin = work % tiles * TILE, own = work / tiles % arg.kv_heads;
        const uint32_t n = work / tiles / arg.kv_heads, start = arg.causal ? begin : 0;
        const uint32_t steps = (arg.length - start + TILE - 1) / TILE;
        const attention_rows keys = attention_input(&arg, n, arg.heads + own);
        const attention_rows values = attention_input(&arg, n, arg.heads + arg.kv_heads + own);

        PHASE {
            attention_load(k, arg.x, keys, begin, &arg, THREAD);
            attention_load(v, arg.x, values, begin, &arg, THREAD);
            for (uint32_t j = 0; j < PART; j++)
                MINE(dk)[j] = MINE(dv)[j] = 0;
        }
        for (uint32_t step = 0; step < shared * steps; step++) {
            const uint32_t head = own * shared + step / steps, first = start + step % steps * TILE;
            const size_t line = ((size_t)n * arg.heads + head) * arg.length;
            const attention_tiles all = {q, k, v, dy, arg.norm + line, arg.mean + line, n, head};

            PHASE {
                attention_load(q, arg.x, attention_input(&arg, n, head), first, &arg, THREAD);
                attention_load(dy, arg.dy, attention_output(&arg, n, head), first, &arg, THREAD);
            }
            PHASE
                dz[THREAD] = attention_pair(&p[THREAD], &all, first + ROW, begin + COLUMN, &arg);
            PHASE {
                attention_gather(MINE(dk), dz + ROW, TILE, q, &arg);
                attention_gather(MINE(dv), p + ROW, TILE, dy, &arg);
            }
        }
        PHASE {
            attention_store(arg.out, keys, begin, MINE(dk), 1, &arg);
            attention_store(arg.out, values, begin, MINE(dv), 1, &arg);
        }
    }
}
