/* md5.h - MD5 (RFC 1321): what data sets publish to detect damaged downloads. No protection against
   a file that somebody has made to have the same sum. */
#ifndef CO_FETCH_MD5_H
#define CO_FETCH_MD5_H

#include <stddef.h>
#include <stdint.h>

typedef struct co_md5 {
    uint32_t state[4];
    uint8_t block[64]; /* the last bytes, which do not fill a block yet */
    uint64_t bytes;    /* added so far */
    uint32_t constant[64];
} co_md5;

void co_md5_begin(co_md5 *hash);
void co_md5_add(co_md5 *hash, const void *bytes, size_t n);
/* 32 hex digits and a NUL. */
void co_md5_end(char out[33], co_md5 *hash);

#endif
