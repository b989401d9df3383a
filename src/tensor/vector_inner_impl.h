/*
 * vector_inner_impl.h - the loops of vector_inner.h. Included once for each level of instructions;
 * VECTOR_FIND_LARGE is a find_large of the level's own, where it has one.
 *
 * Products and sums are rounded one by one (no fused multiply-add), so that levels agree.
 */
#include <string.h>

#include "tensor/vector_inner.h"

#define VECTOR_LANES 16

typedef float vector
    __attribute__((vector_size(VECTOR_LANES * sizeof(float)), aligned(4), may_alias));

/* A macro, since a function that returns a vector has another calling convention on each level. */
#define VECTOR_AT(from) (*(const vector *)(const void *)(from))

/* `terms` is a constant where this is inlined. */
static inline __attribute__((always_inline)) void
inner_add_terms(float *y, const float *const *x, const float *a, int terms, size_t n)
{
    size_t i = 0;

    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES) {
        vector sum = VECTOR_AT(y + i);

        for (int t = 0; t < terms; t++)
            sum += a[t] * VECTOR_AT(x[t] + i);
        memcpy(y + i, &sum, sizeof(sum));
    }
    for (; i < n; i++)
        for (int t = 0; t < terms; t++)
            y[i] += a[t] * x[t][i];
}

static void inner_add_scaled(float *y, const float *const *x, const float *a, int terms, size_t n)
{
    if (terms == 1)
        inner_add_terms(y, x, a, 1, n);
    else if (terms == 2)
        inner_add_terms(y, x, a, 2, n);
    else if (terms == 3)
        inner_add_terms(y, x, a, 3, n);
    else
        inner_add_terms(y, x, a, CO_VECTOR_TERMS, n);
}

static float inner_sum(const vector *lane)
{
    float sum[VECTOR_LANES];

    memcpy(sum, lane, sizeof(sum));
    for (int half = VECTOR_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            sum[l] += sum[l + half];
    return sum[0];
}

static inline __attribute__((always_inline)) void
inner_dot_terms(float *out, const float *a, const float *const *b, int terms, size_t n)
{
    vector lane[CO_VECTOR_TERMS];
    size_t i = 0;

    for (int t = 0; t < terms; t++)
        lane[t] = (vector){0};
    for (; i + VECTOR_LANES <= n; i += VECTOR_LANES)
        for (int t = 0; t < terms; t++)
            lane[t] += VECTOR_AT(a + i) * VECTOR_AT(b[t] + i);
    for (int t = 0; t < terms; t++) {
        out[t] = inner_sum(&lane[t]);
        for (size_t k = i; k < n; k++)
            out[t] += a[k] * b[t][k];
    }
}

static void inner_dot(float *out, const float *a, const float *const *b, int terms, size_t n)
{
    if (terms == 1)
        inner_dot_terms(out, a, b, 1, n);
    else if (terms == 2)
        inner_dot_terms(out, a, b, 2, n);
    else if (terms == 3)
        inner_dot_terms(out, a, b, 3, n);
    else
        inner_dot_terms(out, a, b, CO_VECTOR_TERMS, n);
}

static inline uint32_t inner_key(const float *x)
{
    uint32_t bits;

    memcpy(&bits, x, sizeof(bits));
    return bits & 0x7fffffffU;
}

static inline size_t inner_find_some(uint32_t *out, const float *x, size_t begin, size_t end,
                                     uint32_t bound)
{
    size_t found = 0;

    for (size_t i = begin; i < end; i++) {
        out[found] = (uint32_t)i;
        found += inner_key(x + i) >= bound;
    }
    return found;
}

#ifndef VECTOR_FIND_LARGE
#define VECTOR_FIND_LARGE inner_find_large

/* Most cache lines have none. */
static size_t inner_find_large(uint32_t *out, const float *x, size_t n, uint32_t bound, size_t most)
{
    size_t found = 0, i = 0;

    for (; i + VECTOR_LANES <= n && found <= most; i += VECTOR_LANES) {
        uint32_t any = 0;

        for (size_t l = 0; l < VECTOR_LANES; l++)
            any |= (uint32_t) - (inner_key(x + i + l) >= bound);
        if (any)
            found += inner_find_some(out + found, x, i, i + VECTOR_LANES, bound);
    }
    if (found <= most)
        found += inner_find_some(out + found, x, i, n, bound);
    return found;
}
#endif

static const co_vector_inner vector_inner = {
    .add_scaled = inner_add_scaled,
    .dot = inner_dot,
    .find_large = VECTOR_FIND_LARGE,
};
