/* pairs.c - a table from pairs of tokens to numbers. */
#include "text/pairs.h"

#include <string.h>

#include "core/mem.h"

#define PAIRS_FIRST 1024

static void pairs_insert(co_pairs *pairs, const co_pairs_entry *entry)
{
    size_t i = co_pairs_hash(entry->left, entry->right);

    while (pairs->entry[i & (pairs->room - 1)].value != CO_PAIRS_NONE)
        i++;
    pairs->entry[i & (pairs->room - 1)] = *entry;
    pairs->n++;
}

static co_status pairs_grow(co_pairs *pairs)
{
    const size_t room = pairs->room ? 2 * pairs->room : PAIRS_FIRST;
    co_pairs grown = {.entry = co_calloc(room, sizeof(*grown.entry)), .room = room};

    if (!grown.entry)
        return CO_E_NOMEM;
    memset(grown.entry, 0xff, room * sizeof(*grown.entry));
    for (size_t i = 0; i < pairs->room; i++)
        if (pairs->entry[i].value != CO_PAIRS_NONE)
            pairs_insert(&grown, &pairs->entry[i]);
    co_free(pairs->entry);
    *pairs = grown;
    return CO_OK;
}

co_status co_pairs_put(co_pairs *pairs, uint32_t left, uint32_t right, uint32_t value)
{
    if (2 * pairs->n >= pairs->room)
        CO_TRY(pairs_grow(pairs));
    pairs_insert(pairs, &(co_pairs_entry){left, right, value});
    return CO_OK;
}

void co_pairs_free(co_pairs *pairs)
{
    co_free(pairs->entry);
    *pairs = (co_pairs){0};
}
