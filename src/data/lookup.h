/* lookup.h - bytes to floats through a table. */
#ifndef CO_DATA_LOOKUP_H
#define CO_DATA_LOOKUP_H

#include <stddef.h>
#include <stdint.h>

#define CO_LOOKUP_LEVELS 256

/* out[i] = table[in[i]] for i < n. */
void co_lookup(float *out, const uint8_t *in, size_t n, const float table[CO_LOOKUP_LEVELS]);

/* The same in plain C, and with the byte permutations of AVX-512 (VBMI), where the machine has
   them. */
void co_lookup_plain(float *out, const uint8_t *in, size_t n, const float table[CO_LOOKUP_LEVELS]);
void co_lookup_avx512(float *out, const uint8_t *in, size_t n, const float table[CO_LOOKUP_LEVELS]);

#endif
