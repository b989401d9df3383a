/* windows.c - samples of a sequence of tokens: windows of `context` positions. */
#include "data/windows.h"

#include <string.h>

#include "core/rng.h"

#define WINDOWS_CHUNK 4096 /* tokens */

/* In training some tokens at the end are left out, so that each offset gives as many windows. */
static uint64_t windows_count(const co_token_windows *w, uint64_t tokens)
{
    const uint64_t context = (uint64_t)w->context;

    if (w->split == CO_SPLIT_TEST)
        return (tokens - 1 + context - 1) / context;
    return tokens < 2 * context ? 1 : (tokens - context) / context;
}

co_status co_token_windows_describe(co_token_windows *windows, co_dataset_info *info)
{
    const co_shape shape = {1, {windows->context}};

    info->count = 0;
    for (size_t s = 0; s < windows->n; s++) {
        co_token_sequence *sequence = &windows->sequence[s];

        if (sequence->count <= (uint64_t)windows->context)
            return co_fail(CO_E_DATA,
                           "%s: %llu tokens in the %s split; a window of context %lld needs %lld",
                           sequence->path, (unsigned long long)sequence->count,
                           windows->split == CO_SPLIT_TRAIN ? "training" : "test",
                           (long long)windows->context, (long long)windows->context + 1);
        sequence->windows = windows_count(windows, sequence->count);
        info->count += sequence->windows;
    }
    info->classes = windows->vocabulary;
    info->field[0] = (co_field){CO_FIELD_INPUT, CO_I32, shape, NULL};
    info->field[1] = (co_field){CO_FIELD_LABEL, CO_I32, shape, NULL};
    return CO_OK;
}

/* The first token of an epoch's first window: below the context, and so that the last window ends
   with its sequence or before. */
static uint64_t windows_offset(const co_token_windows *w, size_t s, uint64_t seed, uint64_t epoch)
{
    const co_token_sequence *sequence = &w->sequence[s];
    const co_rng rng = {seed, CO_RNG_WINDOWS, epoch, (uint32_t)s};
    const uint64_t room = sequence->count - sequence->windows * (uint64_t)w->context;
    const uint64_t bound = room < (uint64_t)w->context ? room : (uint64_t)w->context;

    return co_rng_word(&rng, 0) * bound >> 32;
}

/* Convert the tokens from `begin` on; returns the highest, as unsigned. */
static uint32_t windows_copy(int32_t *out, const co_token_sequence *from, uint64_t begin, size_t n)
{
    const uint8_t *at = (const uint8_t *)from->at + begin * (uint64_t)from->size;
    uint32_t most = 0;

    if (from->size == 4) {
        memcpy(out, at, n * sizeof(*out));
    } else if (from->size == 2) {
        for (size_t t = 0; t < n; t++) {
            uint16_t token;

            memcpy(&token, at + t * sizeof(token), sizeof(token));
            out[t] = token;
        }
    } else {
        for (size_t t = 0; t < n; t++)
            out[t] = at[t];
    }
    for (size_t t = 0; t < n; t++)
        most = (uint32_t)out[t] > most ? (uint32_t)out[t] : most;
    return most;
}

uint32_t co_token_highest(const co_token_sequence *sequence)
{
    int32_t token[WINDOWS_CHUNK];
    uint32_t most = 0;

    for (uint64_t i = 0; i < sequence->count; i += WINDOWS_CHUNK) {
        const uint64_t left = sequence->count - i;
        const uint32_t highest =
            windows_copy(token, sequence, i, left < WINDOWS_CHUNK ? (size_t)left : WINDOWS_CHUNK);

        most = highest > most ? highest : most;
    }
    return most;
}

void co_token_count(uint64_t *count, uint32_t vocabulary, const co_token_sequence *sequence)
{
    int32_t chunk[WINDOWS_CHUNK];

    for (uint64_t at = 0; at < sequence->count; at += WINDOWS_CHUNK) {
        const uint64_t left = sequence->count - at;
        const size_t n = left < WINDOWS_CHUNK ? (size_t)left : WINDOWS_CHUNK;

        windows_copy(chunk, sequence, at, n);
        for (size_t i = 0; i < n; i++)
            if ((uint32_t)chunk[i] < vocabulary)
                count[chunk[i]]++;
    }
}

static co_status windows_fail(const co_token_windows *w, const co_token_sequence *sequence,
                              const int32_t *token, uint64_t begin)
{
    size_t t = 0;

    while ((uint32_t)token[t] < (uint64_t)w->vocabulary)
        t++;
    return co_fail(CO_E_DATA, "%s: token %llu is %lu; the vocabulary is 0 to %lld", sequence->path,
                   (unsigned long long)(sequence->first + begin + t),
                   (unsigned long)(uint32_t)token[t], (long long)w->vocabulary - 1);
}

/* Field k of the window of sequence s that begins at `begin`. */
static co_status windows_take(const co_token_windows *w, int32_t *out, int k, size_t s,
                              uint64_t begin)
{
    const co_token_sequence *sequence = &w->sequence[s];
    const size_t context = (size_t)w->context;

    if (windows_copy(out, sequence, begin + (uint64_t)k, context) < (uint64_t)w->vocabulary)
        return CO_OK;
    return windows_fail(w, sequence, out, begin + (uint64_t)k);
}

/* The sequence of window *i, which becomes its number in there. */
static size_t windows_find(const co_token_windows *w, uint64_t *i)
{
    size_t s = 0;

    for (; *i >= w->sequence[s].windows; s++)
        *i -= w->sequence[s].windows;
    return s;
}

co_status co_token_windows_draw(const co_token_windows *windows, void *out, int k, uint64_t i,
                                uint64_t seed, uint64_t epoch)
{
    const size_t s = windows_find(windows, &i);

    return windows_take(windows, out, k, s,
                        windows_offset(windows, s, seed, epoch) + i * (uint64_t)windows->context);
}

co_status co_token_windows_read(const co_token_windows *windows, void *out, int k, uint64_t i)
{
    const size_t s = windows_find(windows, &i);
    const uint64_t context = (uint64_t)windows->context, begin = i * context;
    const uint64_t last = windows->sequence[s].count - 1 - context;
    int32_t *token = out;

    CO_TRY(windows_take(windows, token, k, s, begin < last ? begin : last));
    for (uint64_t t = last; k == 1 && t < begin; t++)
        *token++ = CO_NO_LABEL;
    return CO_OK;
}
