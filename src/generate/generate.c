/* generate.c - reads the prompt in blocks, then draws a token, reads it, and so on. */
#include "generate/generate.h"

#include <string.h>

#include "core/mem.h"
#include "core/rng.h"
#include "generate/utf8_stream.h"
#include "model/decode.h"

#define GENERATE_BLOCK 64 /* tokens of a prompt that are read at once; 2^k */

typedef struct generate {
    const co_generate_options *options;
    co_model *model;
    co_tokenizer *tokenizer;
    co_chooser *chooser; /* owned */
    co_utf8_stream stream;
    int32_t *token; /* owned: (length) what the model has been given */
    int64_t n, length;
    float *logits; /* owned: (classes) after the last of them */
} generate;

/* Let the model read tokens from position `from` on, in blocks of a few sizes, as each has a plan.
 */
static co_status generate_read(generate *g, int64_t from)
{
    for (int64_t block = GENERATE_BLOCK; from < g->n; from += block) {
        while (block > g->n - from)
            block /= 2;
        CO_TRY(co_model_next(g->logits, g->model, g->token + from, (uint64_t)block, from));
    }
    return CO_OK;
}

/* One token more; a full sequence first becomes its later half. */
static co_status generate_add(generate *g, uint32_t token)
{
    const int64_t from = g->n;

    if (g->n < g->length) {
        g->token[g->n++] = (int32_t)token;
        return generate_read(g, from);
    }
    g->n = g->length / 2;
    memmove(g->token, g->token + g->length - g->n, (size_t)g->n * sizeof(*g->token));
    g->token[g->n++] = (int32_t)token;
    return generate_read(g, 0);
}

static co_status generate_prompt(generate *g)
{
    const char *prompt = g->options->prompt;
    uint32_t *token;
    int64_t first;
    size_t n;
    co_status st;

    if (!*prompt)
        return co_fail(CO_E_USAGE, "the prompt is empty; give it a character at least");
    st = co_tokenizer_encode(&token, &n, g->tokenizer, (const uint8_t *)prompt, strlen(prompt));
    if (st == CO_E_DATA) {
        char why[256];

        snprintf(why, sizeof(why), "%s", co_error_message());
        return co_fail(CO_E_USAGE, "prompt: %s: the text that the model has learned lacks it", why);
    }
    CO_TRY(st);
    first = (int64_t)n > g->length ? (int64_t)n - g->length : 0;
    for (int64_t i = first; i < (int64_t)n; i++)
        g->token[g->n++] = (int32_t)token[i];
    co_free(token);
    CO_TRY(co_utf8_stream_put(&g->stream, (const uint8_t *)prompt, strlen(prompt)));
    return generate_read(g, 0);
}

static double generate_unit(const generate *g, uint64_t i)
{
    const co_rng rng = {.seed = g->options->seed, .stream = CO_RNG_GENERATE, .step = i};

    return (double)co_rng_word(&rng, 0) / 4294967296.0;
}

static co_status generate_run(generate *g)
{
    const uint32_t tokens = co_tokenizer_tokens(g->tokenizer);

    if ((int64_t)tokens > g->model->classes)
        return co_fail(CO_E_USAGE, "the tokenizer has %u tokens, and the model predicts %lld",
                       tokens, (long long)g->model->classes);
    CO_TRY(co_chooser_create(&g->chooser, &g->options->rule, tokens));
    CO_TRY(co_model_decode(g->model));
    g->length = co_model_length(g->model);
    g->token = co_calloc((size_t)g->length, sizeof(*g->token));
    g->logits = co_calloc((size_t)g->model->classes, sizeof(*g->logits));
    if (!g->token || !g->logits)
        return CO_E_NOMEM;
    CO_TRY(generate_prompt(g));
    for (uint64_t i = 0; i < g->options->tokens; i++) {
        uint8_t room[CO_UTF8_MAX];
        uint32_t token;
        size_t n;
        const uint8_t *piece;

        CO_TRY(co_chooser_draw(&token, g->chooser, g->logits, generate_unit(g, i)));
        piece = co_tokenizer_piece(&n, room, g->tokenizer, token);
        CO_TRY(co_utf8_stream_put(&g->stream, piece, n));
        if (i + 1 < g->options->tokens)
            CO_TRY(generate_add(g, token));
    }
    return co_utf8_stream_end(&g->stream);
}

co_status co_generate(co_model *model, co_tokenizer *tokenizer, const co_generate_options *options)
{
    generate g = {.options = options,
                  .model = model,
                  .tokenizer = tokenizer,
                  .stream = {.write = options->write, .arg = options->arg}};
    co_status st = generate_run(&g);

    co_chooser_destroy(g.chooser);
    co_free(g.token);
    co_free(g.logits);
    return st;
}
