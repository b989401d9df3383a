/*
 * synthetic_tokens.c - data set "synthetic-tokens": generated sequences of tokens that a network
 * can learn, for tests and for measuring speed.
 *
 * After a token comes mostly the one that a fixed rule says, otherwise any. A window is a function
 * of (seed, split, window), so that nothing is stored.
 */
#include "core/rng.h"
#include "data/formats.h"
#include "data/windows.h"

#define SYNTHETIC_RANDOM (UINT32_MAX / 4) /* words below it draw a token */
#define SYNTHETIC_TOKENS 0x100u /* added to CO_RNG_SYNTHETIC's step: not those of images */

typedef struct synthetic_tokens {
    int64_t context, vocabulary, samples, test_samples, seed;
    uint32_t split; /* set by open */
} synthetic_tokens;

#define TOKENS(field) offsetof(synthetic_tokens, field)

static const co_key synthetic_tokens_keys[] = {
    {"context", CO_KEY_INT, TOKENS(context), "64", 1, CO_CONTEXT_MAX, NULL,
     "positions of a sample"},
    {"vocabulary", CO_KEY_INT, TOKENS(vocabulary), "65", 1, 1 << 24, NULL, "number of tokens"},
    {"samples", CO_KEY_INT, TOKENS(samples), "512", 1, 4e9, NULL, "of the training split"},
    {"test_samples", CO_KEY_INT, TOKENS(test_samples), "0", 0, 4e9, NULL,
     "of the test split; 0: a quarter of samples"},
    {"seed", CO_KEY_INT, TOKENS(seed), "1234", 0, 9e15, NULL, "of the tokens"},
    CO_KEYS_END,
};

static co_status synthetic_tokens_open(void *state, co_dataset_info *info, const char *path,
                                       co_split split)
{
    synthetic_tokens *self = state;
    const co_shape shape = {1, {self->context}};

    if (path)
        return co_fail(CO_E_USAGE, "data synthetic-tokens: takes no path, it is made up");
    self->split = (uint32_t)split;
    info->count = (uint64_t)self->samples;
    info->in_memory = true;
    if (split == CO_SPLIT_TEST)
        info->count = self->test_samples ? (uint64_t)self->test_samples : (info->count + 3) / 4;
    info->classes = self->vocabulary;
    info->field[0] = (co_field){CO_FIELD_INPUT, CO_I32, shape, NULL};
    info->field[1] = (co_field){CO_FIELD_LABEL, CO_I32, shape, NULL};
    return CO_OK;
}

/* Tokens k, k + 1, ... of window i: field 1 is the token after each position. */
static co_status synthetic_tokens_field(const void *state, void *out, int k, uint64_t i)
{
    const synthetic_tokens *self = state;
    const co_rng rng = {(uint64_t)self->seed, CO_RNG_SYNTHETIC, SYNTHETIC_TOKENS + self->split,
                        (uint32_t)i};
    const uint64_t n = (uint64_t)self->vocabulary, end = (uint64_t)self->context + (uint64_t)k;
    int32_t *token = out;
    uint64_t now = 0;
    uint32_t word[4];

    for (uint64_t t = 0; t < end; t++) {
        if (t % 2 == 0)
            co_rng_block(word, &rng, (uint32_t)(t / 2));
        if (t == 0 || word[t % 2 * 2] < SYNTHETIC_RANDOM)
            now = word[t % 2 * 2 + 1] * n >> 32;
        else
            now = (now * 7 + 3) % n;
        if (t >= (uint64_t)k)
            *token++ = (int32_t)now;
    }
    return CO_OK;
}

const co_dataset_ops co_dataset_synthetic_tokens = {
    .name = "synthetic-tokens",
    .summary = "made-up tokens, each mostly a function of the one before; needs no files",
    .keys = synthetic_tokens_keys,
    .self_size = sizeof(synthetic_tokens),
    .open = synthetic_tokens_open,
    .field = synthetic_tokens_field,
};
