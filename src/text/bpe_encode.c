/*
 * bpe_encode.c - the tokens of a word.
 *
 * Candidates are in a heap, the earliest merge first and of those the leftmost, so a word of n
 * bytes takes n log n steps. Tokens of short words are kept: most words of a text have come before.
 */
#include <string.h>

#include "core/mem.h"
#include "text/bpe_internal.h"

static bool bpe_before(const bpe_candidate *a, const bpe_candidate *b)
{
    return a->rank != b->rank ? a->rank < b->rank : a->at < b->at;
}

static void bpe_push(co_bpe *bpe, uint32_t at)
{
    const bpe_symbol *s = &bpe->symbol[at];
    bpe_candidate new = {.at = at, .left = s->token};
    size_t i = bpe->heap_n;

    if (s->next == BPE_END)
        return;
    new.right = bpe->symbol[s->next].token;
    new.rank = co_pairs_find(&bpe->ranks, new.left, new.right);
    if (new.rank == CO_PAIRS_NONE)
        return;
    bpe->heap_n++;
    for (; i > 0 && bpe_before(&new, &bpe->heap[(i - 1) / 2]); i = (i - 1) / 2)
        bpe->heap[i] = bpe->heap[(i - 1) / 2];
    bpe->heap[i] = new;
}

static bpe_candidate bpe_pop(co_bpe *bpe)
{
    const bpe_candidate top = bpe->heap[0], last = bpe->heap[--bpe->heap_n];
    size_t i = 0, child;

    for (; (child = 2 * i + 1) < bpe->heap_n; i = child) {
        if (child + 1 < bpe->heap_n && bpe_before(&bpe->heap[child + 1], &bpe->heap[child]))
            child++;
        if (!bpe_before(&bpe->heap[child], &last))
            break;
        bpe->heap[i] = bpe->heap[child];
    }
    bpe->heap[i] = last;
    return top;
}

static co_status bpe_reserve(co_bpe *bpe, size_t size)
{
    const size_t room = 2 * size;
    void *symbol, *heap, *token;

    if (size <= bpe->word_room)
        return CO_OK;
    symbol = co_realloc(bpe->symbol, room, sizeof(*bpe->symbol));
    bpe->symbol = symbol ? symbol : bpe->symbol;
    /* Each merge removes one token and adds at most two candidates. */
    heap = co_realloc(bpe->heap, 3 * room, sizeof(*bpe->heap));
    bpe->heap = heap ? heap : bpe->heap;
    token = co_realloc(bpe->token, room, sizeof(*bpe->token));
    bpe->token = token ? token : bpe->token;
    if (!symbol || !heap || !token)
        return CO_E_NOMEM;
    bpe->word_room = room;
    return CO_OK;
}

/* Merge the candidate's two tokens, unless one of them has changed. */
static void bpe_apply(co_bpe *bpe, const bpe_candidate *c)
{
    bpe_symbol *s = &bpe->symbol[c->at];
    uint32_t next = s->next;

    if (s->token != c->left || next == BPE_END || bpe->symbol[next].token != c->right)
        return;
    s->token = bpe->merge[c->rank].value;
    bpe->symbol[next].token = BPE_END;
    s->next = bpe->symbol[next].next;
    if (s->next != BPE_END)
        bpe->symbol[s->next].previous = c->at;
    bpe_push(bpe, c->at);
    if (s->previous != BPE_END)
        bpe_push(bpe, s->previous);
}

static size_t bpe_merge_all(co_bpe *bpe, const uint8_t *word, size_t size)
{
    size_t n = 0;

    bpe->heap_n = 0;
    for (size_t i = 0; i < size; i++)
        bpe->symbol[i] = (bpe_symbol){bpe->of_byte[word[i]], (uint32_t)i - 1,
                                      i + 1 < size ? (uint32_t)i + 1 : BPE_END};
    for (size_t i = 0; i + 1 < size; i++)
        bpe_push(bpe, (uint32_t)i);
    while (bpe->heap_n) {
        const bpe_candidate top = bpe_pop(bpe);

        bpe_apply(bpe, &top);
    }
    for (uint32_t i = 0; i != BPE_END; i = bpe->symbol[i].next)
        bpe->token[n++] = bpe->symbol[i].token;
    return n;
}

static bpe_cached *bpe_slot(const co_bpe *bpe, const uint8_t *word, size_t size)
{
    uint64_t hash = size;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ word[i]) * UINT64_C(0x9E3779B97F4A7C15);
    return &bpe->cache[(hash >> 32) & (BPE_CACHE - 1)];
}

co_status co_bpe_word(const uint32_t **out, size_t *n, co_bpe *bpe, const uint8_t *word,
                      size_t size)
{
    const bool small = size > 0 && size <= BPE_CACHED_WORD;
    bpe_cached *kept = small ? bpe_slot(bpe, word, size) : NULL;

    if (kept && kept->size == size && memcmp(kept->word, word, size) == 0) {
        *out = kept->token;
        *n = kept->n;
        return CO_OK;
    }
    CO_TRY(bpe_reserve(bpe, size));
    *n = size ? bpe_merge_all(bpe, word, size) : 0;
    *out = bpe->token;
    if (kept && *n <= BPE_CACHED) {
        kept->size = (uint8_t)size;
        kept->n = (uint8_t)*n;
        memcpy(kept->word, word, size);
        memcpy(kept->token, bpe->token, *n * sizeof(*kept->token));
    }
    return CO_OK;
}
