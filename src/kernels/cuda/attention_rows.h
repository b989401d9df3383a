/* attention_rows.h - where the heads of a sequence are, and which positions look at which. */
#ifndef CO_KERNELS_CUDA_ATTENTION_ROWS_H
#define CO_KERNELS_CUDA_ATTENTION_ROWS_H

#include "core/rng.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/grid.h"

/* One head of a sequence: where its rows begin, and what is between them. */
typedef struct attention_rows {
    size_t first, step;
} attention_rows;

static inline attention_rows attention_input(const cuda_attention *arg, uint32_t n, uint32_t head)
{
    attention_rows rows;

    rows.step = (size_t)(arg->heads + 2 * arg->kv_heads) * arg->size;
    rows.first = (size_t)n * arg->length * rows.step + (size_t)head * arg->size;
    return rows;
}

static inline attention_rows attention_output(const cuda_attention *arg, uint32_t n, uint32_t head)
{
    attention_rows rows;

    rows.step = (size_t)arg->heads * arg->size;
    rows.first = (size_t)n * arg->length * rows.step + (size_t)head * arg->size;
    return rows;
}

/* Head of keys of a head; those of values are kv_heads later. */
static inline uint32_t attention_key_head(const cuda_attention *arg, uint32_t head)
{
    return arg->heads + head * arg->kv_heads / arg->heads;
}

/* Whether the query at t looks at the key at s. */
static inline bool attention_sees(const cuda_attention *arg, uint32_t t, uint32_t s)
{
    return t < arg->length && s < arg->length && (s <= t || !arg->causal);
}

/* `kept`, or 0 for a weight that is dropped: the one of this number. */
CALLED float attention_draw(co_rng rng, uint64_t number, double dropout, float kept)
{
    uint32_t word[4];

    co_rng_philox(word, &rng, (uint32_t)(number / 4));
    return (double)co_rng_to_unit(word[number % 4]) < dropout ? 0 : kept;
}

/* By what the weight of the key at s is multiplied for the query at t. */
static inline float attention_factor(const cuda_attention *arg, uint32_t n, uint32_t head,
                                     uint32_t t, uint32_t s)
{
    const uint64_t number = ((uint64_t)head * arg->length + t) * arg->length + s;
    co_rng rng;

    if (arg->dropout <= 0 || !attention_sees(arg, t, s))
        return 1;
    rng.seed = arg->seed;
    rng.stream = arg->stream;
    rng.step = arg->values->given.step;
    rng.item = arg->sample[n];
    return attention_draw(rng, number, arg->dropout, arg->kept);
}

#endif
