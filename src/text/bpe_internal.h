/* bpe_internal.h - shared by bpe.c, bpe_encode.c and bpe_train.c. */
#ifndef CO_TEXT_BPE_INTERNAL_H
#define CO_TEXT_BPE_INTERNAL_H

#include "text/bpe.h"

#define BPE_CACHE       ((size_t)1 << 16) /* words kept, 2^k */
#define BPE_CACHED_WORD 22                /* bytes of a word that is kept */
#define BPE_CACHED      10                /* tokens of one */

typedef struct bpe_cached {
    uint8_t size, n; /* size 0: free */
    uint8_t word[BPE_CACHED_WORD];
    uint32_t token[BPE_CACHED];
} bpe_cached;

/* A token of the word that is being encoded, in a list. */
typedef struct bpe_symbol {
    uint32_t token, previous, next; /* BPE_END: none */
} bpe_symbol;

/* A pair that could be merged; out of date if its tokens have changed since. */
typedef struct bpe_candidate {
    uint32_t rank, at, left, right;
} bpe_candidate;

#define BPE_END UINT32_MAX

struct co_bpe {
    uint32_t n;      /* tokens */
    size_t room;     /* of `first`, in tokens */
    size_t *first;   /* owned: (n + 1) where pieces begin */
    uint8_t *pieces; /* owned: (pieces_room) */
    size_t pieces_room;
    co_pairs_entry *merge; /* owned: (n_merge), value: the token made */
    size_t n_merge, merge_room;
    co_pairs ranks;                 /* owned: the merge of a pair */
    co_pairs of_piece;              /* owned: the token with a hash of its bytes */
    uint32_t of_byte[CO_BPE_BYTES]; /* the token of a byte */
    /* of the encoder */
    bpe_cached *cache; /* owned: (BPE_CACHE) */
    bpe_symbol *symbol;
    bpe_candidate *heap; /* owned: (2 * word_room) */
    uint32_t *token;     /* owned, as `symbol`: (word_room) */
    size_t word_room, heap_n;
};

/* The end of making one: *out is `bpe` if `st` is CO_OK, else it is destroyed. Returns `st`. */
co_status co_bpe_give(co_bpe **out, co_bpe *bpe, co_status st);

#endif
