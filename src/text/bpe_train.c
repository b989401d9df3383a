/*
 * bpe_train.c - merges found in a text.
 *
 * Counts different words, then merges within these. Each pair has a list of words that may hold it,
 * so a merge visits those alone; a heap has each pair with its count, which may be out of date.
 */
#include "text/bpe_train.h"

#include <string.h>

#include "core/mem.h"
#include "text/bpe_internal.h"

#define TRAIN_WORD  64                  /* bytes counted as one word */
#define TRAIN_WORDS ((uint32_t)1 << 21) /* different words */
#define TRAIN_NONE  UINT32_MAX

typedef struct train_word {
    uint64_t count;
    uint8_t size;
    uint8_t byte[TRAIN_WORD];
} train_word;

typedef struct train_pair {
    uint32_t left, right;
    int64_t count;
    uint32_t *word; /* owned: (n) words that may hold it */
    uint32_t n, room;
    bool merged; /* it is a token already */
} train_pair;

typedef struct train_entry {
    int64_t count;
    uint32_t pair;
} train_entry;

struct co_bpe_trainer {
    train_word *word; /* owned: (n_word) */
    uint32_t n_word, word_room;
    uint32_t *slot; /* owned: (slots) words by hash; TRAIN_NONE: free */
    uint32_t slots; /* 2^k */
    /* while merging: */
    uint32_t *first;  /* owned: (n_word + 1) where words begin in `token` */
    uint32_t *token;  /* owned */
    uint32_t *length; /* owned: (n_word) tokens left */
    train_pair *pair; /* owned: (n_pair) */
    uint32_t n_pair, pair_room;
    co_pairs pairs;    /* owned: index into `pair` */
    train_entry *heap; /* owned: (heap_n) */
    size_t heap_n, heap_room;
};

/* ---- words ---- */

static uint32_t *train_find(const co_bpe_trainer *t, const uint8_t *word, size_t size)
{
    uint64_t hash = size;

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ word[i]) * UINT64_C(0x9E3779B97F4A7C15);
    for (uint32_t i = (uint32_t)(hash >> 32);; i++) {
        uint32_t *slot = &t->slot[i & (t->slots - 1)];

        if (*slot == TRAIN_NONE ||
            (t->word[*slot].size == size && memcmp(t->word[*slot].byte, word, size) == 0))
            return slot;
    }
}

/* Forget the words that came once. */
static void train_forget(co_bpe_trainer *t)
{
    uint32_t kept = 0;

    memset(t->slot, 0xff, t->slots * sizeof(*t->slot));
    for (uint32_t w = 0; w < t->n_word; w++)
        if (t->word[w].count > 1)
            t->word[kept++] = t->word[w];
    t->n_word = kept < TRAIN_WORDS ? kept : TRAIN_WORDS / 2;
    for (uint32_t w = 0; w < t->n_word; w++)
        *train_find(t, t->word[w].byte, t->word[w].size) = w;
}

static co_status train_grow(co_bpe_trainer *t)
{
    train_word *word = co_realloc(t->word, 2 * (size_t)t->word_room, sizeof(*word));

    if (!word)
        return CO_E_NOMEM;
    t->word = word;
    t->word_room *= 2;
    return CO_OK;
}

co_status co_bpe_trainer_create(co_bpe_trainer **out)
{
    co_bpe_trainer *t = co_calloc(1, sizeof(*t));

    if (!t)
        return CO_E_NOMEM;
    t->word_room = 1024;
    t->slots = 2 * TRAIN_WORDS;
    t->word = co_calloc(t->word_room, sizeof(*t->word));
    t->slot = co_calloc(t->slots, sizeof(*t->slot));
    if (!t->word || !t->slot) {
        co_bpe_trainer_destroy(t);
        return CO_E_NOMEM;
    }
    memset(t->slot, 0xff, t->slots * sizeof(*t->slot));
    *out = t;
    return CO_OK;
}

static co_status train_count(co_bpe_trainer *t, const uint8_t *word, size_t size)
{
    uint32_t *slot = train_find(t, word, size);

    if (*slot != TRAIN_NONE) {
        t->word[*slot].count++;
        return CO_OK;
    }
    if (t->n_word == TRAIN_WORDS) {
        train_forget(t);
        slot = train_find(t, word, size);
    }
    if (t->n_word == t->word_room)
        CO_TRY(train_grow(t));
    *slot = t->n_word;
    t->word[t->n_word] = (train_word){.count = 1, .size = (uint8_t)size};
    memcpy(t->word[t->n_word++].byte, word, size);
    return CO_OK;
}

co_status co_bpe_trainer_word(co_bpe_trainer *trainer, const uint8_t *word, size_t size)
{
    for (size_t at = 0, n; at < size; at += n) {
        n = size - at < TRAIN_WORD ? size - at : TRAIN_WORD;
        CO_TRY(train_count(trainer, word + at, n));
    }
    return CO_OK;
}

void co_bpe_trainer_destroy(co_bpe_trainer *trainer)
{
    if (!trainer)
        return;
    for (uint32_t p = 0; p < trainer->n_pair; p++)
        co_free(trainer->pair[p].word);
    co_pairs_free(&trainer->pairs);
    co_free(trainer->pair);
    co_free(trainer->heap);
    co_free(trainer->first);
    co_free(trainer->token);
    co_free(trainer->length);
    co_free(trainer->word);
    co_free(trainer->slot);
    co_free(trainer);
}

/* ---- pairs ---- */

/* The more frequent first; of those as frequent, the one of lower tokens. */
static bool train_before(const co_bpe_trainer *t, const train_entry *a, const train_entry *b)
{
    const train_pair *p = &t->pair[a->pair], *q = &t->pair[b->pair];

    if (a->count != b->count)
        return a->count > b->count;
    return p->left != q->left ? p->left < q->left : p->right < q->right;
}

static co_status train_push(co_bpe_trainer *t, uint32_t pair)
{
    const train_entry new = {t->pair[pair].count, pair};
    size_t i = t->heap_n;

    if (t->heap_n == t->heap_room) {
        const size_t room = 2 * t->heap_room + 1024;
        train_entry *heap = co_realloc(t->heap, room, sizeof(*heap));

        if (!heap)
            return CO_E_NOMEM;
        t->heap = heap;
        t->heap_room = room;
    }
    t->heap_n++;
    for (; i > 0 && train_before(t, &new, &t->heap[(i - 1) / 2]); i = (i - 1) / 2)
        t->heap[i] = t->heap[(i - 1) / 2];
    t->heap[i] = new;
    return CO_OK;
}

static train_entry train_pop(co_bpe_trainer *t)
{
    const train_entry top = t->heap[0], last = t->heap[--t->heap_n];
    size_t i = 0, child;

    for (; (child = 2 * i + 1) < t->heap_n; i = child) {
        if (child + 1 < t->heap_n && train_before(t, &t->heap[child + 1], &t->heap[child]))
            child++;
        if (!train_before(t, &t->heap[child], &last))
            break;
        t->heap[i] = t->heap[child];
    }
    t->heap[i] = last;
    return top;
}

static co_status train_pair_of(uint32_t *out, co_bpe_trainer *t, uint32_t left, uint32_t right)
{
    *out = co_pairs_find(&t->pairs, left, right);
    if (*out != CO_PAIRS_NONE)
        return CO_OK;
    if (t->n_pair == t->pair_room) {
        const uint32_t room = 2 * t->pair_room + 1024;
        train_pair *pair = co_realloc(t->pair, room, sizeof(*pair));

        if (!pair)
            return CO_E_NOMEM;
        t->pair = pair;
        t->pair_room = room;
    }
    *out = t->n_pair;
    CO_TRY(co_pairs_put(&t->pairs, left, right, t->n_pair));
    t->pair[t->n_pair++] = (train_pair){.left = left, .right = right};
    return CO_OK;
}

/* A pair of word w occurs more, or less, often. */
static co_status train_change(co_bpe_trainer *t, uint32_t left, uint32_t right, uint32_t w,
                              int64_t by)
{
    train_pair *pair;
    uint32_t index;

    CO_TRY(train_pair_of(&index, t, left, right));
    pair = &t->pair[index];
    pair->count += by;
    if (by < 0 || (pair->n && pair->word[pair->n - 1] == w))
        return CO_OK;
    if (pair->n == pair->room) {
        const uint32_t room = 2 * pair->room + 4;
        uint32_t *word = co_realloc(pair->word, room, sizeof(*word));

        if (!word)
            return CO_E_NOMEM;
        pair->word = word;
        pair->room = room;
    }
    pair->word[pair->n++] = w;
    return CO_OK;
}

/* ---- merging ---- */

static co_status train_change_word(co_bpe_trainer *t, uint32_t w, int64_t sign)
{
    const uint32_t *token = t->token + t->first[w];

    for (uint32_t i = 0; i + 1 < t->length[w]; i++)
        CO_TRY(train_change(t, token[i], token[i + 1], w, sign * (int64_t)t->word[w].count));
    return CO_OK;
}

static co_status train_start(co_bpe_trainer *t, const co_bpe *bpe)
{
    uint32_t of_byte[CO_BPE_BYTES];
    uint64_t total = 0;

    for (uint32_t token = 0; token < CO_BPE_BYTES; token++) {
        size_t n;

        of_byte[*co_bpe_piece(bpe, &n, token)] = token;
    }
    for (uint32_t w = 0; w < t->n_word; w++)
        total += t->word[w].size;
    t->first = co_calloc((size_t)t->n_word + 1, sizeof(*t->first));
    t->length = co_calloc((size_t)t->n_word + 1, sizeof(*t->length));
    t->token = co_calloc(total + 1, sizeof(*t->token));
    if (!t->first || !t->length || !t->token)
        return CO_E_NOMEM;
    for (uint32_t w = 0; w < t->n_word; w++) {
        t->first[w + 1] = t->first[w] + t->word[w].size;
        t->length[w] = t->word[w].size;
        for (uint32_t i = 0; i < t->length[w]; i++)
            t->token[t->first[w] + i] = of_byte[t->word[w].byte[i]];
        CO_TRY(train_change_word(t, w, 1));
    }
    for (uint32_t p = 0; p < t->n_pair; p++)
        CO_TRY(train_push(t, p));
    return CO_OK;
}

/* Replace the pair in word w by `merged`. */
static co_status train_merge_word(co_bpe_trainer *t, uint32_t w, uint32_t left, uint32_t right,
                                  uint32_t merged)
{
    uint32_t *token = t->token + t->first[w];
    uint32_t n = 0, i = 0;

    while (i + 1 < t->length[w] && (token[i] != left || token[i + 1] != right))
        i++;
    if (i + 1 >= t->length[w])
        return CO_OK; /* the list is out of date */
    CO_TRY(train_change_word(t, w, -1));
    for (i = 0; i < t->length[w]; n++) {
        const bool found = i + 1 < t->length[w] && token[i] == left && token[i + 1] == right;

        token[n] = found ? merged : token[i];
        i += found ? 2 : 1;
    }
    t->length[w] = n;
    CO_TRY(train_change_word(t, w, 1));
    for (i = 0; i + 1 < n; i++)
        if (token[i] == merged || token[i + 1] == merged)
            CO_TRY(train_push(t, co_pairs_find(&t->pairs, token[i], token[i + 1])));
    return CO_OK;
}

static co_status train_merge(co_bpe_trainer *t, co_bpe *bpe, uint32_t pair)
{
    const train_pair taken = t->pair[pair];
    co_status st = CO_OK;
    uint32_t merged;

    CO_TRY(co_bpe_merge(&merged, bpe, taken.left, taken.right));
    t->pair[pair] = (train_pair){.left = taken.left, .right = taken.right, .merged = true};
    for (uint32_t i = 0; i < taken.n && st == CO_OK; i++)
        st = train_merge_word(t, taken.word[i], taken.left, taken.right, merged);
    co_free(taken.word);
    return st;
}

static co_status train_all(co_bpe *bpe, co_bpe_trainer *t, uint32_t tokens)
{
    CO_TRY(train_start(t, bpe));
    while (t->heap_n && co_bpe_tokens(bpe) < tokens) {
        const train_entry top = train_pop(t);
        const train_pair *pair = &t->pair[top.pair];

        if (pair->merged || pair->count < 2)
            continue;
        if (pair->count != top.count)
            CO_TRY(train_push(t, top.pair));
        else
            CO_TRY(train_merge(t, bpe, top.pair));
    }
    return CO_OK;
}

co_status co_bpe_train(co_bpe **out, co_bpe_trainer *trainer, uint32_t tokens)
{
    co_bpe *bpe;

    CO_TRY(co_bpe_create(&bpe));
    return co_bpe_give(out, bpe, train_all(bpe, trainer, tokens));
}
