/*
 * gpt2.c - the transformer of GPT-2 (Radford et al., 2019): blocks of attention and two linear
 * layers, each after a layer norm and added to what it read; a token is predicted at each position.
 *
 *   x = wte[token] + wpe[position]
 *   x = x + attn.c_proj(attention(attn.c_attn(ln_1(x))))       in each of the layers h.0, h.1, ...
 *   x = x + mlp.c_proj(gelu(mlp.c_fc(ln_2(x))))
 *   logits = ln_f(x) times the weight of wte (tie), or of lm_head
 *
 * Dropout is where GPT-2 has it: of the first x, of the weights of attention, and of what is added.
 * It starts as GPT-2 does: weights normal with a standard deviation of 0.02, those that are added
 * to x with 0.02 / sqrt(2 layers), biases 0. Files have the tensors of
 * Hugging Face's GPT2Model.
 */
#include <inttypes.h>
#include <math.h>

#include "models/models.h"

#define GPT2_STD        0.02
#define GPT2_AS_DROPOUT (-1.0) /* of attention_dropout */

typedef struct gpt2 {
    int64_t layers, heads, width, context, vocab;
    double dropout, attention_dropout;
    bool tie;
} gpt2;

static const co_key gpt2_keys[] = {
    {.name = "layers",
     .type = CO_KEY_INT,
     .offset = offsetof(gpt2, layers),
     .fallback = "12",
     .min = 1,
     .max = 256,
     .help = "blocks"},
    {.name = "heads",
     .type = CO_KEY_INT,
     .offset = offsetof(gpt2, heads),
     .fallback = "12",
     .min = 1,
     .max = 1 << 16,
     .help = "heads of attention; they divide the width"},
    {.name = "width",
     .type = CO_KEY_INT,
     .offset = offsetof(gpt2, width),
     .fallback = "768",
     .min = 1,
     .max = 1 << 16,
     .help = "features of a position"},
    {.name = "context",
     .type = CO_KEY_INT,
     .offset = offsetof(gpt2, context),
     .fallback = "0",
     .min = 0,
     .max = 1 << 20,
     .help = "positions that it has rows for; 0: those of the data"},
    {.name = "vocab",
     .type = CO_KEY_INT,
     .offset = offsetof(gpt2, vocab),
     .fallback = "0",
     .min = 0,
     .max = 1 << 20,
     .help = "tokens; 0: those of the data"},
    {.name = "dropout",
     .type = CO_KEY_REAL,
     .offset = offsetof(gpt2, dropout),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "probability of dropping an element after the embedding, of what a block adds, and of "
             "the weights of attention"},
    {.name = "attention_dropout",
     .type = CO_KEY_REAL,
     .offset = offsetof(gpt2, attention_dropout),
     .fallback = "-1",
     .min = GPT2_AS_DROPOUT,
     .max = 1,
     .help = "the same for the weights of attention; -1: as dropout"},
    {.name = "tie",
     .type = CO_KEY_BOOL,
     .offset = offsetof(gpt2, tie),
     .fallback = "true",
     .help = "the last layer has the weight of the embedding; else one of its own, lm_head"},
    CO_KEYS_END,
};

/* What GPT-2's own program calls Conv1D: files have its weight as (in, out). */
static co_status gpt2_conv1d(co_builder *b, const char *name, int64_t out, double std)
{
    CO_TRY(co_build_format(b, "linear", name,
                           "{out: %" PRId64 ", init: normal, init_std: %.17g, bias_init: zero}",
                           out, std));
    co_graph_transpose(b->graph);
    return CO_OK;
}

/* The current tensor, after dropout, is added to `x`. */
static co_status gpt2_add(const gpt2 *g, co_builder *b, int x)
{
    if (g->dropout > 0)
        CO_TRY(co_build_format(b, "dropout", NULL, "{p: %.17g}", g->dropout));
    return co_build_add(b, x);
}

static co_status gpt2_block(const gpt2 *g, co_builder *b, int64_t index)
{
    const double added = GPT2_STD / sqrt(2 * (double)g->layers);
    const double dropped = g->attention_dropout < 0 ? g->dropout : g->attention_dropout;
    int x = b->x;

    CO_TRY(co_build_begin_block(b, "h.%" PRId64 ".", index));
    CO_TRY(co_build(b, "layernorm", "ln_1", NULL));
    CO_TRY(gpt2_conv1d(b, "attn.c_attn", 3 * g->width, GPT2_STD));
    CO_TRY(co_build_format(b, "attention", "attn", "{heads: %" PRId64 ", dropout: %.17g}", g->heads,
                           dropped));
    CO_TRY(gpt2_conv1d(b, "attn.c_proj", g->width, added));
    CO_TRY(gpt2_add(g, b, x));
    x = b->x;
    CO_TRY(co_build(b, "layernorm", "ln_2", NULL));
    CO_TRY(gpt2_conv1d(b, "mlp.c_fc", 4 * g->width, GPT2_STD));
    CO_TRY(co_build(b, "gelu", "mlp.act", "{approximate: tanh}"));
    CO_TRY(gpt2_conv1d(b, "mlp.c_proj", g->width, added));
    CO_TRY(gpt2_add(g, b, x));
    co_build_end_block(b);
    return CO_OK;
}

static co_status gpt2_build(const void *self, co_builder *b)
{
    const gpt2 *g = self;
    const int64_t vocab = g->vocab ? g->vocab : b->classes;

    if (g->attention_dropout < 0 && g->attention_dropout > GPT2_AS_DROPOUT)
        return co_fail(CO_E_USAGE,
                       "model gpt2: attention_dropout: expected a number from 0 to 1, or -1 for "
                       "that of dropout, got %g",
                       g->attention_dropout);
    if (g->width % g->heads)
        return co_fail(CO_E_USAGE,
                       "model gpt2: %" PRId64 " heads do not divide the width of %" PRId64,
                       g->heads, g->width);
    CO_TRY(co_build_format(b, "embedding", "wte",
                           "{vocab: %" PRId64 ", out: %" PRId64 ", init_std: %.17g}", vocab,
                           g->width, GPT2_STD));
    CO_TRY(co_build_format(b, "positions", "wpe", "{length: %" PRId64 ", init_std: %.17g}",
                           g->context, GPT2_STD));
    if (g->dropout > 0)
        CO_TRY(co_build_format(b, "dropout", NULL, "{p: %.17g}", g->dropout));
    for (int64_t i = 0; i < g->layers; i++)
        CO_TRY(gpt2_block(g, b, i));
    CO_TRY(co_build(b, "layernorm", "ln_f", NULL));
    CO_TRY(co_build_format(b, "linear", "lm_head",
                           "{out: %" PRId64 ", bias: false, init: normal, init_std: %.17g}", vocab,
                           GPT2_STD));
    b->graph->decay_matrices = true;
    return g->tie ? co_graph_tie(b->graph, "wte.weight") : CO_OK;
}

/* Masks, which older versions of Hugging Face's transformers kept. */
static const char *const gpt2_extra[] = {"h.*.attn.bias", "h.*.attn.masked_bias",
                                         "transformer.h.*.attn.bias",
                                         "transformer.h.*.attn.masked_bias", NULL};

const co_model_ops co_model_gpt2 = {
    .name = "gpt2",
    .summary = "transformer for tokens, as GPT-2",
    .keys = gpt2_keys,
    .self_size = sizeof(gpt2),
    .sample = {1, {1024}},
    .build = gpt2_build,
    .prefix = "transformer.",
    .extra = gpt2_extra,
};
