/* lookup.h - bytes to floats through a table. */
#ifndef CO_DATA_LOOKUP_H
#define CO_DATA_LOOKUP_H

#include <stddef.h>
#include <stdint.h>

#define CO_LOOKUP_LEVELS 256

/* A float for each byte, and the same floats taken apart into their bytes, the lowest first. */
typedef struct co_lookup_table {
    float value[CO_LOOKUP_LEVELS];
    uint8_t byte[4][CO_LOOKUP_LEVELS];
} co_lookup_table;

/* Sets `byte` from `value`. */
void co_lookup_split(co_lookup_table *table);

/* out[i] = table->value[in[i]] for i < n. */
void co_lookup(float *out, const uint8_t *in, size_t n, const co_lookup_table *table);
/* The same, past the caches where that can be done: for results that are out of them anyway before
   they are read. Another thread may have them after co_lookup_settle. */
void co_lookup_past(float *out, const uint8_t *in, size_t n, const co_lookup_table *table);
void co_lookup_settle(void);

/* The same in plain C, and with the byte permutations of AVX-512 (VBMI), where the machine has
   them. */
void co_lookup_plain(float *out, const uint8_t *in, size_t n, const co_lookup_table *table);
void co_lookup_avx512(float *out, const uint8_t *in, size_t n, const co_lookup_table *table);
void co_lookup_past_avx512(float *out, const uint8_t *in, size_t n, const co_lookup_table *table);
void co_lookup_settle_avx512(void);

#endif
