/* transformers.h - the tensors of small transformers, as PyTorch's modules of the same networks
   have them. */
#ifndef CO_TESTS_MODELS_TRANSFORMERS_H
#define CO_TESTS_MODELS_TRANSFORMERS_H

#include <stdbool.h>

#include <cohort/types.h>

typedef struct tensor {
    const char *name;
    co_shape shape;
    bool buffer;
} tensor;

#define MORE "..." /* ends a list of only the first tensors */

/* Of transformers' GPT2Model, whose linear layers are Conv1D, (in, out). */
static const tensor gpt2_first[] = {
    {"wte.weight", {2, {50, 12}}, false},
    {"wpe.weight", {2, {8, 12}}, false},
    {"h.0.ln_1.weight", {1, {12}}, false},
    {"h.0.ln_1.bias", {1, {12}}, false},
    {"h.0.attn.c_attn.weight", {2, {36, 12}}, false},
    {"h.0.attn.c_attn.bias", {1, {36}}, false},
    {"h.0.attn.c_proj.weight", {2, {12, 12}}, false},
    {"h.0.attn.c_proj.bias", {1, {12}}, false},
    {"h.0.ln_2.weight", {1, {12}}, false},
    {"h.0.ln_2.bias", {1, {12}}, false},
    {"h.0.mlp.c_fc.weight", {2, {48, 12}}, false},
    {"h.0.mlp.c_fc.bias", {1, {48}}, false},
    {"h.0.mlp.c_proj.weight", {2, {12, 48}}, false},
    {"h.0.mlp.c_proj.bias", {1, {12}}, false},
    {"ln_f.weight", {1, {12}}, false},
    {"ln_f.bias", {1, {12}}, false},
    {NULL, {0}, false},
};

/* Of transformers' LlamaForCausalLM. */
static const tensor llama_first[] = {
    {"model.embed_tokens.weight", {2, {50, 24}}, false},
    {"model.layers.0.input_layernorm.weight", {1, {24}}, false},
    {"model.layers.0.self_attn.q_proj.weight", {2, {24, 24}}, false},
    {"model.layers.0.self_attn.k_proj.weight", {2, {12, 24}}, false},
    {"model.layers.0.self_attn.v_proj.weight", {2, {12, 24}}, false},
    {"model.layers.0.self_attn.o_proj.weight", {2, {24, 24}}, false},
    {"model.layers.0.post_attention_layernorm.weight", {1, {24}}, false},
    {"model.layers.0.mlp.gate_proj.weight", {2, {64, 24}}, false},
    {"model.layers.0.mlp.up_proj.weight", {2, {64, 24}}, false},
    {"model.layers.0.mlp.down_proj.weight", {2, {24, 64}}, false},
    {"model.norm.weight", {1, {24}}, false},
    {"lm_head.weight", {2, {50, 24}}, false},
    {NULL, {0}, false},
};

/* Of torchvision's VisionTransformer, which has (1, 1, F) and (1, T, F) for the first two rows. */
static const tensor vit_first[] = {
    {"conv_proj.weight", {4, {12, 3, 4, 4}}, false},
    {"conv_proj.bias", {1, {12}}, false},
    {"class_token", {1, {12}}, false},
    {"encoder.pos_embedding", {2, {5, 12}}, false},
    {"encoder.layers.encoder_layer_0.ln_1.weight", {1, {12}}, false},
    {"encoder.layers.encoder_layer_0.ln_1.bias", {1, {12}}, false},
    {"encoder.layers.encoder_layer_0.self_attention.in_proj_weight", {2, {36, 12}}, false},
    {"encoder.layers.encoder_layer_0.self_attention.in_proj_bias", {1, {36}}, false},
    {"encoder.layers.encoder_layer_0.self_attention.out_proj.weight", {2, {12, 12}}, false},
    {"encoder.layers.encoder_layer_0.self_attention.out_proj.bias", {1, {12}}, false},
    {"encoder.layers.encoder_layer_0.ln_2.weight", {1, {12}}, false},
    {"encoder.layers.encoder_layer_0.ln_2.bias", {1, {12}}, false},
    {"encoder.layers.encoder_layer_0.mlp.0.weight", {2, {20, 12}}, false},
    {"encoder.layers.encoder_layer_0.mlp.0.bias", {1, {20}}, false},
    {"encoder.layers.encoder_layer_0.mlp.3.weight", {2, {12, 20}}, false},
    {"encoder.layers.encoder_layer_0.mlp.3.bias", {1, {12}}, false},
    {"encoder.ln.weight", {1, {12}}, false},
    {"encoder.ln.bias", {1, {12}}, false},
    {"heads.head.weight", {2, {5, 12}}, false},
    {"heads.head.bias", {1, {5}}, false},
    {NULL, {0}, false},
};

#endif
