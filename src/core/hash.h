/* hash.h - FNV-1a of 64 bits (Fowler, Noll & Vo), for tables and to notice damage: not against
   someone who looks for bytes with the same hash. */
#ifndef CO_CORE_HASH_H
#define CO_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define CO_HASH UINT64_C(14695981039346656037) /* of nothing */

/* Of what `hash` is of, and `bytes` more. */
static inline uint64_t co_hash(uint64_t hash, const void *at, size_t bytes)
{
    const unsigned char *byte = at;

    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ byte[i]) * UINT64_C(1099511628211);
    return hash;
}

#endif
