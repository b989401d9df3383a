/* cases_sequence.c - layers for sequences of rows (N, T, F), and attention between the rows. */
#include "cases.h"

#define SEQUENCE(name, batch, t, f, net)                                                           \
    {                                                                                              \
        name, batch, {2, {t, f}}, net, false                                                       \
    }

#define TOKENS(name, batch, t, net)                                                                \
    {                                                                                              \
        name, batch, {1, {t}}, net, false                                                          \
    }

const ops_case cases_sequence[] = {
    SEQUENCE("linear of sequences", 3, 5, 13, "linear {out: 7}"),
    SEQUENCE("linear of a sequence", 1, 70, 65, "linear {out: 33, bias: false}"),
    SEQUENCE("linear of many sequences", 33, 3, 48, "linear {out: 35}"),
    SEQUENCE("linear of 1 position", 5, 1, 17, "linear {out: 3}"),
    {"layernorm", 4, {1, {10}}, "layernorm", false},
    {"layernorm of 3", 3, {1, {3}}, "layernorm {eps: 0.1}", false},
    {"layernorm vector + 1", 2, {1, {17}}, "layernorm {bias: false}", false},
    SEQUENCE("layernorm of sequences", 3, 5, 33, "layernorm"),
    SEQUENCE("layernorm whole vectors", 2, 37, 64, "layernorm"),
    {"rmsnorm", 4, {1, {10}}, "rmsnorm", false},
    {"rmsnorm vector + 1", 2, {1, {17}}, "rmsnorm {eps: 0.1}", false},
    SEQUENCE("rmsnorm of sequences", 3, 5, 33, "rmsnorm"),
    SEQUENCE("rmsnorm whole vectors", 2, 37, 64, "rmsnorm"),
    SEQUENCE("rotary", 2, 5, 12, "rotary {heads: 2}"),
    SEQUENCE("rotary of 1 position", 3, 1, 6, "rotary {heads: 1}"),
    SEQUENCE("rotary whole vectors", 2, 9, 96, "rotary {heads: 1, theta: 500}"),
    SEQUENCE("rotary with shared keys", 2, 37, 108, "rotary {heads: 4, kv_heads: 1}"),
    SEQUENCE("concat", 2, 5, 12, "keep; linear {out: 7}; concat"),
    SEQUENCE("concat of 1 position", 3, 1, 33, "keep; linear {out: 64}; concat"),
    {"patches", 2, {3, {5, 3, 4}}, "patches", false},
    {"patches after a convolution",
     3,
     {3, {3, 8, 8}},
     "conv2d {out: 16, kernel: 4, stride: 4}; patches; linear {out: 5}",
     false},
    {"patches of many channels", 1, {3, {67, 3, 3}}, "patches", false},
    SEQUENCE("class_token", 3, 5, 7, "class_token"),
    SEQUENCE("class_token of 1 position", 2, 1, 33, "linear {out: 3}; class_token"),
    SEQUENCE("first", 3, 5, 7, "first"),
    SEQUENCE("first of 1 position", 2, 1, 33, "linear {out: 64}; first"),
    {"classes of patches",
     2,
     {3, {3, 8, 4}},
     "conv2d {out: 12, kernel: 2, stride: 2}; patches; class_token; positions; layernorm;"
     "linear {out: 36}; attention {heads: 3, causal: false}; first; linear {out: 4}; cross_entropy",
     false},
    SEQUENCE("attention", 2, 5, 12, "attention {heads: 2}"),
    SEQUENCE("attention of 1 position", 2, 1, 6, "attention {heads: 1}"),
    SEQUENCE("attention vector + 1", 1, 17, 51, "attention {heads: 1}"),
    SEQUENCE("attention whole vectors", 2, 16, 96, "attention {heads: 2}"),
    SEQUENCE("attention of many", 1, 70, 24, "attention {heads: 1}"),
    SEQUENCE("attention both ways", 2, 9, 18, "attention {heads: 2, causal: false}"),
    SEQUENCE("attention with shared keys", 2, 7, 40, "attention {heads: 6, kv_heads: 2}"),
    SEQUENCE("attention with shared keys of many", 1, 37, 32, "attention {heads: 4, kv_heads: 2}"),
    SEQUENCE("attention with dropout", 2, 5, 12, "attention {heads: 2, dropout: 0.3}"),
    SEQUENCE("attention with dropout both ways", 3, 37, 18,
             "attention {heads: 2, causal: false, dropout: 0.5}"),
    SEQUENCE("attention with dropout of shared keys", 2, 70, 40,
             "attention {heads: 6, kv_heads: 2, dropout: 0.1}"),
    SEQUENCE("attention with dropout of whole blocks", 1, 64, 96,
             "attention {heads: 1, dropout: 0.2}"),
    SEQUENCE("attention without any weight", 2, 9, 12, "attention {heads: 2, dropout: 1}"),
    SEQUENCE("attention block", 2, 6, 8,
             "keep; layernorm; linear {out: 24}; attention {heads: 2}; linear {out: 8}; add"),
    SEQUENCE("gated block", 2, 6, 8,
             "rmsnorm; keep; linear {out: 8, bias: false}; concat; rotary {heads: 2}; "
             "attention {heads: 2}; linear {out: 8, bias: false}; silu; mul"),
    SEQUENCE("positions", 3, 5, 7, "positions"),
    SEQUENCE("positions, more than there are", 4, 3, 33, "positions {length: 9}; linear {out: 2}"),
    TOKENS("embedding", 3, 5, "embedding {vocab: 7, out: 5}"),
    TOKENS("embedding vector + 1", 2, 9, "embedding {vocab: 3, out: 33}; linear {out: 4}"),
    TOKENS("tokens and positions", 4, 6,
           "embedding {vocab: 50, out: 16, init_std: 1}; positions; layernorm; linear {out: 50}; "
           "cross_entropy"),
    TOKENS("tied weights", 3, 5,
           "embedding {vocab: 7, out: 6, init_std: 1}; gelu; linear {out: 7, bias: false}; tie; "
           "cross_entropy"),
    SEQUENCE("cross_entropy of positions", 3, 7, 6, "cross_entropy"),
    SEQUENCE("cross_entropy of positions, smoothed", 2, 5, 17,
             "linear {out: 19}; cross_entropy {label_smoothing: 0.1}"),
    {0},
};
