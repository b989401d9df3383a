/*
 * registry.c - every model by name.
 */
#include "models/models.h"

const co_model_ops *const co_models[] = {
    &co_model_mnist_net,
    &co_model_mnist_example,
    &co_model_lenet5,
    &co_model_mlp,
    &co_model_psgd_cnn,
    &co_model_resnet9,
    &co_model_resnet9_wide,
    &co_model_resnet18,
    &co_model_resnet34,
    &co_model_resnet50,
    &co_model_resnet101,
    &co_model_resnet152,
    &co_model_alexnet,
    &co_model_vgg11,
    &co_model_vgg11_bn,
    &co_model_vgg13,
    &co_model_vgg13_bn,
    &co_model_vgg16,
    &co_model_vgg16_bn,
    &co_model_vgg19,
    &co_model_vgg19_bn,
    &co_model_gpt2,
    &co_model_llama,
    &co_model_vit_s16,
    NULL,
};

const co_plugins co_model_plugins = {"model", "model", co_models, 0, co_model_common_keys};

CO_PLUGIN_CHECK(co_model_ops, self_size);
