/*
 * models.h - from a config value or a name to a graph.
 *
 * A model file says layers through the builder, which reads attributes as config text; so a
 * network written out in a config and one written in C go the same way.
 */
#ifndef CO_MODELS_MODELS_H
#define CO_MODELS_MODELS_H

#include "core/plugin.h"
#include "graph/graph.h"

typedef struct co_builder {
    co_graph *graph;
    co_config *config; /* owns parsed attributes */
    int x;             /* the current tensor: input of the next layer */
    int64_t classes;
    const char *prefix;  /* of the names that co_build gets, "layer1.0."; NULL: none */
    const void *variant; /* the model's (co_model_ops) */
} co_builder;

/* Append an op to the current tensor: co_build(b, "conv2d", "conv1", "{out: 10, kernel: 5}").
   `name` and `attrs` may be NULL. */
co_status co_build(co_builder *b, const char *op, const char *name, const char *attrs);
/* The same with the attributes as a format: co_build_format(b, "linear", "fc", "{out: %d}", 10). */
co_status co_build_format(co_builder *b, const char *op, const char *name, const char *attrs, ...)
    __attribute__((format(printf, 4, 5)));
/* The layers in between are a block of the network (co_graph_begin_block), and their names begin
   with the prefix: co_build_begin_block(b, "h.%d.", i). */
co_status co_build_begin_block(co_builder *b, const char *prefix, ...)
    __attribute__((format(printf, 2, 3)));
void co_build_end_block(co_builder *b);
/* The current tensor is the sum of itself and `other`, an earlier value of b->x. */
co_status co_build_add(co_builder *b, int other);
/* Parameter k of the last layer has the name `name` in place of LAYER.weight and the like, and in
   files `ones` dimensions of 1 before its own. */
co_status co_build_name_param(co_builder *b, int k, const char *name, int ones);
/* An op of several earlier values of b->x, without attributes: co_build_from(b, "mul", "gate", in).
   It is the current tensor. */
co_status co_build_from(co_builder *b, const char *op, const char *name, const int *in);
/* Layers of a config list: `- conv2d: {out: 10, kernel: 5}`, `- relu`, `- residual: {body: [...],
   shortcut: [...]}`. */
co_status co_build_layers(co_builder *b, const co_value *list);
/* The current tensor is the output; put the loss on it: a name or {name, keys}. NULL: nll_loss
   after log_softmax, else cross_entropy. */
co_status co_build_loss(co_builder *b, const co_value *loss);

/* A layer that files of earlier releases have under another name. */
typedef struct co_former_name {
    const char *former, *name;
} co_former_name;

typedef struct co_model_ops {
    const char *name;
    const char *summary;
    const co_key *keys;
    size_t self_size;
    const void *variant; /* which of a family that shares `build`, which finds it in the builder */
    co_shape sample;     /* (C, H, W) that it was made for: what a benchmark takes */
    /* Build up to the logits or log-probabilities; the loss is added by the caller. */
    co_status (*build)(const void *self, co_builder *b);
    const co_former_name *former; /* ended by {NULL, NULL}; NULL: no layer was ever renamed */
    const char *prefix; /* names of tensors may begin with it in files, "model."; NULL: none */
    const char *const *extra; /* co_graph.extra */
} co_model_ops;

extern const co_model_ops *const co_models[]; /* NULL-ended */
extern const co_model_ops co_model_mnist_net, co_model_lenet5, co_model_mlp, co_model_psgd_cnn,
    co_model_mnist_example, co_model_resnet9, co_model_resnet9_wide, co_model_resnet18,
    co_model_resnet34, co_model_resnet50, co_model_resnet101, co_model_resnet152, co_model_alexnet,
    co_model_vgg11, co_model_vgg13, co_model_vgg16, co_model_vgg19, co_model_vgg11_bn,
    co_model_vgg13_bn, co_model_vgg16_bn, co_model_vgg19_bn, co_model_gpt2, co_model_llama,
    co_model_vit_s16;
/* classes: common to every model; the data's unless given. */
extern const co_key co_model_common_keys[];
extern const co_plugins co_model_plugins;

/* From `model: mnist-net`, `model: {name: ..., ...}` or (value NULL) `layers: [...]`, to a finished
   graph with its loss (co_build_loss). `sample` is (C, H, W). The output is (N, F) with F at least
   `classes`. `config` owns the values and outlives the graph's attributes. */
co_status co_model_build(co_graph **out, const co_value *model, const co_value *layers,
                         const co_value *loss, co_config *config, const co_shape *sample,
                         int64_t classes);

#endif
