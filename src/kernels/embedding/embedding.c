/* embedding.c - the loops of embedding.h, which memory bounds: one build is for all levels. */
#include "kernels/embedding/embedding.h"

#include <string.h>

#define EMBEDDING_BLOCK 64 /* sums kept at a time */

void embedding_take(float *y, const float *w, const int32_t *token, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++)
        memcpy(y + i * size, w + (size_t)token[i] * size, size * sizeof(float));
}

void embedding_add(float *dw, const float *dy, const int32_t *token, size_t n, size_t size,
                   size_t begin, size_t end)
{
    for (size_t i = 0; i < n; i++) {
        const float *restrict from = dy + i * size;
        float *restrict to = dw + (size_t)token[i] * size;

        for (size_t f = begin; f < end; f++)
            to[f] += from[f];
    }
}

void embedding_shift(float *y, const float *x, const float *w, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] + w[i];
}

void embedding_sum(float *to, const float *from, size_t rows, size_t step, size_t n, int add)
{
    for (size_t at = 0; at < n; at += EMBEDDING_BLOCK) {
        const size_t m = n - at < EMBEDDING_BLOCK ? n - at : EMBEDDING_BLOCK;
        float sum[EMBEDDING_BLOCK] = {0};

        for (size_t r = 0; r < rows; r++)
            for (size_t f = 0; f < m; f++)
                sum[f] += from[r * step + at + f];
        for (size_t f = 0; f < m; f++)
            to[at + f] = add ? to[at + f] + sum[f] : sum[f];
    }
}
