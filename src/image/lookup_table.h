/* lookup_table.h - convert bytes to floats through a table. */
#ifndef CO_IMAGE_LOOKUP_TABLE_H
#define CO_IMAGE_LOOKUP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CO_LOOKUP_LEVELS 256

/* (byte / 255 - mean) / std in floats. An inverse is the sum of two, the larger one first. */
typedef struct co_lookup_formula {
    float inverse_of_255[2], mean, inverse_of_std[2];
    bool holds; /* multiplying by the inverses gives exactly the table's floats */
} co_lookup_formula;

/* A float for each byte, and the same floats split into their bytes, the lowest first. */
typedef struct co_lookup_table {
    float value[CO_LOOKUP_LEVELS];
    uint8_t byte[4][CO_LOOKUP_LEVELS];
    co_lookup_formula formula;
} co_lookup_table;

/* Fill the table by the formula. */
void co_lookup_make(co_lookup_table *table, float mean, float std);
/* Fill the rest from `value`, which may be anything. */
void co_lookup_split(co_lookup_table *table);

/* out[i] = table->value[in[i]] for i < n. */
void co_lookup(float *out, const uint8_t *in, size_t n, const co_lookup_table *table);
/* The same with non-temporal stores where possible, for results that are evicted from the caches
   before they are read. Another thread may read them after co_lookup_fence. */
void co_lookup_stream(float *out, const uint8_t *in, size_t n, const co_lookup_table *table);
void co_lookup_fence(void);

/* Loops for these, one set for each instruction set; all give the same bits. */
typedef struct co_lookup_loops {
    const char *name;
    bool by_formula; /* only for tables whose formula holds */
    void (*look)(float *out, const uint8_t *in, size_t n, const co_lookup_table *table);
    void (*stream)(float *out, const uint8_t *in, size_t n, const co_lookup_table *table);
} co_lookup_loops;

extern const co_lookup_loops co_lookup_basic;
extern const co_lookup_loops co_lookup_avx2;
extern const co_lookup_loops co_lookup_avx512; /* with VBMI */
#define CO_LOOKUP_MAX_LOOPS 3
/* The sets that this machine can run, the fastest last. */
size_t co_lookup_loops_list(const co_lookup_loops *out[CO_LOOKUP_MAX_LOOPS]);

#endif
