/* sha256.h - SHA-256 (FIPS 180-4), to detect damaged files and to compare weights. */
#ifndef CO_CORE_SHA256_H
#define CO_CORE_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct co_sha256 {
    uint32_t state[8];
    uint8_t block[64]; /* the last bytes, which do not fill a block yet */
    uint64_t bytes;    /* added so far */
} co_sha256;

void co_sha256_begin(co_sha256 *hash);
void co_sha256_add(co_sha256 *hash, const void *bytes, size_t n);
/* 64 hex digits and a NUL. */
void co_sha256_end(char out[65], co_sha256 *hash);

#endif
