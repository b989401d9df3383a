/*
 * vit.c - vision transformers (Dosovitskiy et al., arXiv:2010.11929): patches of an image are the
 * positions of a sequence, in front of which a trained row gathers what the image is.
 *
 *   x = encoder.pos_embedding + (class_token, conv_proj of each patch)
 *   x = x + self_attention(ln_1(x))                in each of the layers encoder_layer_0, ...
 *   x = x + mlp.3(gelu(mlp.0(ln_2(x))))
 *   logits = heads.head(the first row of encoder.ln(x))
 *
 * Names, shapes and initial values are those of torchvision's VisionTransformer, but for the biases
 * of mlp, which start at 0 and not with a standard deviation of 1e-6.
 */
#include <inttypes.h>
#include <math.h>

#include "models/models.h"

typedef struct vit {
    int64_t layers, heads, width, hidden, patch;
    double dropout, attention_dropout;
} vit;

static const co_key vit_keys[] = {
    {.name = "layers",
     .type = CO_KEY_INT,
     .offset = offsetof(vit, layers),
     .fallback = "12",
     .min = 1,
     .max = 256,
     .help = "blocks"},
    {.name = "heads",
     .type = CO_KEY_INT,
     .offset = offsetof(vit, heads),
     .fallback = "6",
     .min = 1,
     .max = 1 << 16,
     .help = "heads of attention; they divide the width"},
    {.name = "width",
     .type = CO_KEY_INT,
     .offset = offsetof(vit, width),
     .fallback = "384",
     .min = 1,
     .max = 1 << 16,
     .help = "features of a position"},
    {.name = "hidden",
     .type = CO_KEY_INT,
     .offset = offsetof(vit, hidden),
     .fallback = "0",
     .min = 0,
     .max = 1 << 18,
     .help = "features between the two linear layers of a block; 0: four times the width"},
    {.name = "patch",
     .type = CO_KEY_INT,
     .offset = offsetof(vit, patch),
     .fallback = "16",
     .min = 1,
     .max = 1 << 10,
     .help = "pixels of a side of a patch; it divides both sides of the image"},
    {.name = "dropout",
     .type = CO_KEY_REAL,
     .offset = offsetof(vit, dropout),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "probability of dropping an element after the positions, after attention and after "
             "each linear layer of a block"},
    {.name = "attention_dropout",
     .type = CO_KEY_REAL,
     .offset = offsetof(vit, attention_dropout),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "probability of dropping a weight of attention"},
    CO_KEYS_END,
};

static co_status vit_drop(const vit *v, co_builder *b)
{
    return v->dropout > 0 ? co_build_format(b, "dropout", NULL, "{p: %.17g}", v->dropout) : CO_OK;
}

static co_status vit_norm(co_builder *b, const char *name)
{
    return co_build(b, "layernorm", name, "{eps: 1e-6}");
}

static co_status vit_linear(co_builder *b, const char *name, int64_t out, const char *init)
{
    return co_build_format(b, "linear", name, "{out: %" PRId64 ", init: %s, bias_init: zero}", out,
                           init);
}

static co_status vit_block(const vit *v, co_builder *b, int64_t index)
{
    int x = b->x;

    CO_TRY(co_build_begin_block(b, "encoder.layers.encoder_layer_%" PRId64 ".", index));
    CO_TRY(vit_norm(b, "ln_1"));
    CO_TRY(vit_linear(b, "self_attention.in_proj", 3 * v->width, "xavier_uniform"));
    CO_TRY(co_build_name_param(b, 0, "self_attention.in_proj_weight", 0));
    CO_TRY(co_build_name_param(b, 1, "self_attention.in_proj_bias", 0));
    CO_TRY(co_build_format(b, "attention", "self_attention",
                           "{heads: %" PRId64 ", causal: false, dropout: %.17g}", v->heads,
                           v->attention_dropout));
    CO_TRY(vit_linear(b, "self_attention.out_proj", v->width, "default"));
    CO_TRY(vit_drop(v, b));
    CO_TRY(co_build_add(b, x));
    x = b->x;
    CO_TRY(vit_norm(b, "ln_2"));
    CO_TRY(vit_linear(b, "mlp.0", v->hidden ? v->hidden : 4 * v->width, "xavier_uniform"));
    CO_TRY(co_build(b, "gelu", "mlp.1", NULL));
    CO_TRY(vit_drop(v, b));
    CO_TRY(vit_linear(b, "mlp.3", v->width, "xavier_uniform"));
    CO_TRY(vit_drop(v, b));
    CO_TRY(co_build_add(b, x));
    co_build_end_block(b);
    return CO_OK;
}

static co_status vit_check(const vit *v, const co_shape *image)
{
    if (v->width % v->heads)
        return co_fail(CO_E_USAGE,
                       "model vit-s16: %" PRId64 " heads do not divide the width of %" PRId64,
                       v->heads, v->width);
    if (image->ndim != 4)
        return co_fail(CO_E_USAGE, "model vit-s16: takes images (C, H, W)");
    if ((image->dim[2] % v->patch || image->dim[3] % v->patch))
        return co_fail(CO_E_USAGE,
                       "model vit-s16: patches of %" PRId64 " do not divide images of %" PRId64
                       "x%" PRId64 "; set `patch`, or the data's `resize`",
                       v->patch, image->dim[2], image->dim[3]);
    return CO_OK;
}

static co_status vit_build(const void *self, co_builder *b)
{
    const vit *v = self;
    const co_shape image = b->graph->var[b->x].shape;
    double inputs;

    CO_TRY(vit_check(v, &image));
    inputs = (double)(image.dim[1] * v->patch * v->patch);
    CO_TRY(co_build_format(b, "conv2d", "conv_proj",
                           "{out: %" PRId64 ", kernel: %" PRId64 ", stride: %" PRId64
                           ", init: normal, init_std: %.17g, bias_init: zero}",
                           v->width, v->patch, v->patch, sqrt(1 / inputs)));
    CO_TRY(co_build(b, "patches", NULL, NULL));
    CO_TRY(co_build(b, "class_token", "class_token", NULL));
    CO_TRY(co_build_name_param(b, 0, "class_token", 2));
    CO_TRY(co_build(b, "positions", "encoder.pos_embedding", "{init_std: 0.02}"));
    CO_TRY(co_build_name_param(b, 0, "encoder.pos_embedding", 1));
    CO_TRY(vit_drop(v, b));
    for (int64_t i = 0; i < v->layers; i++)
        CO_TRY(vit_block(v, b, i));
    CO_TRY(vit_norm(b, "encoder.ln"));
    CO_TRY(co_build(b, "first", NULL, NULL));
    b->graph->decay_matrices = true;
    return co_build_format(b, "linear", "heads.head",
                           "{out: %" PRId64 ", init: normal, init_std: 0, bias_init: zero}",
                           b->classes);
}

const co_model_ops co_model_vit_s16 = {
    .name = "vit-s16",
    .summary = "vision transformer for images of 224x224 in patches of 16x16, smaller by its keys",
    .keys = vit_keys,
    .self_size = sizeof(vit),
    .sample = {3, {3, 224, 224}},
    .build = vit_build,
};
