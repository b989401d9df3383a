/* bpe_internal.h - shared by bpe.c, bpe_encode.c, bpe_train.c and vocab.c. */
#ifndef CO_TEXT_BPE_INTERNAL_H
#define CO_TEXT_BPE_INTERNAL_H

#include "core/utf8.h"
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
    uint32_t n; /* tokens, the special ones last */
    uint32_t n_special;
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

/* The character for each token of one byte. */
void co_bpe_alphabet(uint32_t character[CO_BPE_BYTES]);
/* The token whose characters of the alphabet are `size` bytes at `text`. CO_E_DATA: there is none.
 */
co_status co_bpe_named(uint32_t *out, const co_bpe *bpe, const uint8_t *text, size_t size);
/* One more token, of any bytes, that no merge makes. */
co_status co_bpe_add_special(co_bpe *bpe, const uint8_t *text, size_t size);

/* The end of making one: *out is `bpe` if `st` is CO_OK, else it is destroyed. Returns `st`. */
co_status co_bpe_give(co_bpe **out, co_bpe *bpe, co_status st);

#endif
