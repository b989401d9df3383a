/*
 * mutate.h - damaged files, made of good ones by a seed: the same on every machine.
 */
#ifndef FUZZ_MUTATE_H
#define FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

typedef struct mutate_file {
    uint8_t *data;
    size_t size;
} mutate_file;

/* No damaged file is larger. */
#define MUTATE_MAX_BYTES 65536

/* Damaged file number `index` of `seed`: one of the n files with one to eight changes. A block of
   exactly its size (a byte where that is 0), the caller's; `data` NULL without memory. */
mutate_file mutate(const mutate_file *file, size_t n, uint64_t seed, uint32_t index);

#endif
