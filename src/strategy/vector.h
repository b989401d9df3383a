/*
 * vector.h - the inner loops of compressors. Each result is that of the same operations in the same
 * order on any machine, whatever instruction set does them.
 */
#ifndef CO_STRATEGY_VECTOR_H
#define CO_STRATEGY_VECTOR_H

#include <stddef.h>
#include <stdint.h>

#define CO_VECTOR_TERMS 4 /* most that add_scaled and dot take at a time */
/* gather may write so many words behind what it says it has. */
#define CO_VECTOR_MORE 16

typedef struct co_vector_loops {
    const char *name;
    /* y[i] += x[i] */
    void (*add)(float *y, const float *x, size_t n);
    /* y[i] = (y[i] + a[0] x[0][i]) + a[1] x[1][i] ..., `terms` of them */
    void (*add_scaled)(float *y, const float *const *x, const float *a, int terms, size_t n);
    /* out[t] = sum of a[i] b[t][i], in 16 lanes that are added up in pairs */
    void (*dot)(float *out, const float *a, const float *const *b, int terms, size_t n);
    /* Positions, in order, of elements whose bits without the sign are at least `bound`; ends early
       when it has more than `most`. How many. `out`: (most + 1 + CO_VECTOR_MORE). */
    size_t (*gather)(uint32_t *out, const float *x, size_t n, uint32_t bound, size_t most);
} co_vector_loops;

/* The best set that this CPU runs. */
const co_vector_loops *co_vector(void);
/* All that it runs, best first; how many in *n. The last is plain C. */
const co_vector_loops *const *co_vector_loops_of_cpu(size_t *n);

extern const co_vector_loops co_vector_plain, co_vector_avx2, co_vector_avx512;

#endif
