/* pairs.h - a table from pairs of tokens to numbers. */
#ifndef CO_TEXT_PAIRS_H
#define CO_TEXT_PAIRS_H

#include <cohort/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CO_PAIRS_NONE UINT32_MAX

typedef struct co_pairs_entry {
    uint32_t left, right, value;
} co_pairs_entry;

/* Zero is empty. */
typedef struct co_pairs {
    co_pairs_entry *entry; /* owned: (room); value CO_PAIRS_NONE: free */
    size_t n, room;        /* room is 2^k */
} co_pairs;

static inline size_t co_pairs_hash(uint32_t left, uint32_t right)
{
    const uint64_t key = ((uint64_t)left << 32 | right) * UINT64_C(0x9E3779B97F4A7C15);

    return (size_t)(key ^ key >> 32);
}

/* CO_PAIRS_NONE: it is not there. */
static inline uint32_t co_pairs_find(const co_pairs *pairs, uint32_t left, uint32_t right)
{
    for (size_t i = co_pairs_hash(left, right); pairs->room; i++) {
        const co_pairs_entry *entry = &pairs->entry[i & (pairs->room - 1)];

        if (entry->value == CO_PAIRS_NONE || (entry->left == left && entry->right == right))
            return entry->value;
    }
    return CO_PAIRS_NONE;
}

/* A pair that is not there yet. */
co_status co_pairs_put(co_pairs *pairs, uint32_t left, uint32_t right, uint32_t value);
void co_pairs_free(co_pairs *pairs);

#endif
