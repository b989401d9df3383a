/*
 * llama.c - the transformer of LLaMA (Touvron et al., arXiv:2302.13971): blocks of attention with
 * rotary positions and of a gated layer, each after an RMS norm and added to what it read; a token
 * is predicted at each position.
 *
 *   x = embed_tokens[token]
 *   x = x + o_proj(attention(rotary(q_proj(h), k_proj(h), v_proj(h)))),  h = input_layernorm(x)
 *   x = x + down_proj(silu(gate_proj(h)) up_proj(h)),                    h =
 * post_attention_layernorm(x) logits = lm_head(norm(x)), or norm(x) times the weight of
 * embed_tokens (tie)
 *
 * Weights start normal with a standard deviation of 0.02, and there are no biases. Files have the
 * tensors of Hugging Face's LlamaForCausalLM.
 */
#include <inttypes.h>

#include "models/models.h"

#define LLAMA_STD      0.02
#define LLAMA_MULTIPLE 32 /* what the width of the gated layer is rounded up to */

typedef struct llama {
    int64_t layers, heads, kv_heads, width, hidden, context, vocab;
    double theta, eps;
    bool tie;
} llama;

static const co_key llama_keys[] = {
    {.name = "layers",
     .type = CO_KEY_INT,
     .offset = offsetof(llama, layers),
     .fallback = "12",
     .min = 1,
     .max = 256,
     .help = "blocks"},
    {.name = "heads",
     .type = CO_KEY_INT,
     .offset = offsetof(llama, heads),
     .fallback = "12",
     .min = 1,
     .max = 1 << 16,
     .help = "heads of attention; they divide the width, into parts of an even length"},
    {.name = "kv_heads",
     .type = CO_KEY_INT,
     .offset = offsetof(llama, kv_heads),
     .fallback = "0",
     .min = 0,
     .max = 1 << 16,
     .help = "heads of keys and values, each shared by as many heads; 0: one for each"},
    {.name = "width",
     .type = CO_KEY_INT,
     .offset = offsetof(llama, width),
     .fallback = "768",
     .min = 1,
     .max = 1 << 16,
     .help = "features of a position"},
    {.name = "hidden",
     .type = CO_KEY_INT,
     .offset = offsetof(llama, hidden),
     .fallback = "0",
     .min = 0,
     .max = 1 << 18,
     .help = "features of the gated layer; 0: 8/3 of the width, rounded up to a multiple of 32"},
    {.name = "context",
     .type = CO_KEY_INT,
     .offset = offsetof(llama, context),
     .fallback = "0",
     .min = 0,
     .max = 1 << 20,
     .help = "positions that it is for at most; 0: those of the data"},
    {.name = "vocab",
     .type = CO_KEY_INT,
     .offset = offsetof(llama, vocab),
     .fallback = "0",
     .min = 0,
     .max = 1 << 20,
     .help = "tokens; 0: those of the data"},
    {.name = "theta",
     .type = CO_KEY_REAL,
     .offset = offsetof(llama, theta),
     .fallback = "10000",
     .min = 1,
     .max = 1e12,
     .help = "base of the frequencies of the rotary positions (rope_theta)"},
    {.name = "eps",
     .type = CO_KEY_REAL,
     .offset = offsetof(llama, eps),
     .fallback = "1e-6",
     .min = 1e-12,
     .max = 1,
     .help = "added to the mean of the squares in the norms (rms_norm_eps)"},
    {.name = "tie",
     .type = CO_KEY_BOOL,
     .offset = offsetof(llama, tie),
     .fallback = "false",
     .help = "the last layer has the weight of the embedding; else one of its own, lm_head"},
    CO_KEYS_END,
};

static co_status llama_linear(co_builder *b, const char *name, int64_t out)
{
    return co_build_format(b, "linear", name,
                           "{out: %" PRId64 ", bias: false, init: normal, init_std: %.17g}", out,
                           LLAMA_STD);
}

static co_status llama_norm(const llama *l, co_builder *b, const char *name)
{
    return co_build_format(b, "rmsnorm", name, "{eps: %.17g}", l->eps);
}

static co_status llama_attention(const llama *l, co_builder *b)
{
    static const char *const names[3] = {"self_attn.q_proj", "self_attn.k_proj",
                                         "self_attn.v_proj"};
    const int64_t size = l->width / l->heads, kv_heads = l->kv_heads ? l->kv_heads : l->heads;
    const int h = b->x;
    int part[3];

    for (int i = 0; i < 3; i++) {
        b->x = h;
        CO_TRY(llama_linear(b, names[i], (i == 0 ? l->heads : kv_heads) * size));
        part[i] = b->x;
    }
    CO_TRY(co_build_from(b, "concat", "self_attn.qkv", part));
    CO_TRY(co_build_format(b, "rotary", "self_attn.rotary",
                           "{heads: %" PRId64 ", kv_heads: %" PRId64 ", theta: %.17g}", l->heads,
                           kv_heads, l->theta));
    CO_TRY(co_build_format(b, "attention", "self_attn",
                           "{heads: %" PRId64 ", kv_heads: %" PRId64 "}", l->heads, kv_heads));
    return llama_linear(b, "self_attn.o_proj", l->width);
}

static co_status llama_mlp(const llama *l, co_builder *b)
{
    const int64_t third = (8 * l->width + 2) / 3;
    const int64_t hidden =
        l->hidden ? l->hidden : (third + LLAMA_MULTIPLE - 1) / LLAMA_MULTIPLE * LLAMA_MULTIPLE;
    const int h = b->x;
    int part[2];

    CO_TRY(llama_linear(b, "mlp.gate_proj", hidden));
    CO_TRY(co_build(b, "silu", "mlp.act_fn", NULL));
    part[0] = b->x;
    b->x = h;
    CO_TRY(llama_linear(b, "mlp.up_proj", hidden));
    part[1] = b->x;
    CO_TRY(co_build_from(b, "mul", "mlp.gate", part));
    return llama_linear(b, "mlp.down_proj", l->width);
}

static co_status llama_block(const llama *l, co_builder *b, int64_t index)
{
    int x = b->x;

    CO_TRY(co_build_begin_block(b, "model.layers.%" PRId64 ".", index));
    CO_TRY(llama_norm(l, b, "input_layernorm"));
    CO_TRY(llama_attention(l, b));
    CO_TRY(co_build_add(b, x));
    x = b->x;
    CO_TRY(llama_norm(l, b, "post_attention_layernorm"));
    CO_TRY(llama_mlp(l, b));
    CO_TRY(co_build_add(b, x));
    co_build_end_block(b);
    return CO_OK;
}

static co_status llama_check(const llama *l, const co_shape *tokens)
{
    if (l->width % l->heads || l->width / l->heads % 2)
        return co_fail(CO_E_USAGE,
                       "model llama: %" PRId64 " heads do not divide the width of %" PRId64
                       " into parts of an even length",
                       l->heads, l->width);
    if (l->kv_heads && l->heads % l->kv_heads)
        return co_fail(CO_E_USAGE,
                       "model llama: %" PRId64 " heads are no multiple of kv_heads, %" PRId64,
                       l->heads, l->kv_heads);
    if (l->context && tokens->ndim == 2 && tokens->dim[1] > l->context)
        return co_fail(CO_E_USAGE,
                       "model llama: sequences of %" PRId64 " positions, and it is for %" PRId64
                       "; make `context` larger, or the data's `context` smaller",
                       tokens->dim[1], l->context);
    return CO_OK;
}

static co_status llama_build(const void *self, co_builder *b)
{
    const llama *l = self;
    const int64_t vocab = l->vocab ? l->vocab : b->classes;

    CO_TRY(llama_check(l, &b->graph->var[b->x].shape));
    CO_TRY(co_build_format(b, "embedding", "model.embed_tokens",
                           "{vocab: %" PRId64 ", out: %" PRId64 ", init_std: %.17g}", vocab,
                           l->width, LLAMA_STD));
    for (int64_t i = 0; i < l->layers; i++)
        CO_TRY(llama_block(l, b, i));
    CO_TRY(llama_norm(l, b, "model.norm"));
    CO_TRY(llama_linear(b, "lm_head", vocab));
    b->graph->decay_matrices = true;
    return l->tie ? co_graph_tie(b->graph, "model.embed_tokens.weight") : CO_OK;
}

/* What older versions of Hugging Face's transformers kept. */
static const char *const llama_extra[] = {"model.layers.*.self_attn.rotary_emb.inv_freq", NULL};

const co_model_ops co_model_llama = {
    .name = "llama",
    .summary = "transformer for tokens with rotary positions and gated layers, as LLaMA",
    .keys = llama_keys,
    .self_size = sizeof(llama),
    .sample = {1, {1024}},
    .build = llama_build,
    .extra = llama_extra,
};
