/*
 * mnist_net.c - the small convolutional network of the first PyTorch tutorials: 21,840 parameters
 * on (1, 28, 28), 21,870 with batch norm (whose shift replaces the convolutions' bias).
 *
 *   conv1 (10, 24, 24) -> [bn1] -> pool (10, 12, 12) -> relu
 *   conv2 (20, 8, 8) -> [bn2] -> drop channels -> pool (20, 4, 4) -> relu
 *   fc1 50 -> relu -> dropout -> fc2 -> log_softmax
 */
#include <inttypes.h>

#include "models/models.h"

typedef struct mnist_net {
    bool batch_norm;
} mnist_net;

static const co_key mnist_net_keys[] = {
    {.name = "batch_norm",
     .type = CO_KEY_BOOL,
     .offset = offsetof(mnist_net, batch_norm),
     .fallback = "false",
     .help = "normalise after each convolution"},
    CO_KEYS_END,
};

static co_status mnist_net_build(const void *self, co_builder *b)
{
    const mnist_net *m = self;
    const bool bn = m->batch_norm;
    const char *fc2 = co_arena_printf(co_config_arena(b->config), "{out: %" PRId64 "}", b->classes);

    if (!fc2)
        return CO_E_NOMEM;
    CO_TRY(co_build(b, "conv2d", "conv1",
                    bn ? "{out: 10, kernel: 5, bias: false}" : "{out: 10, kernel: 5}"));
    if (bn)
        CO_TRY(co_build(b, "batchnorm", "bn1", NULL));
    CO_TRY(co_build(b, "maxpool", NULL, "{kernel: 2}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "conv2d", "conv2",
                    bn ? "{out: 20, kernel: 5, bias: false}" : "{out: 20, kernel: 5}"));
    if (bn)
        CO_TRY(co_build(b, "batchnorm", "bn2", NULL));
    CO_TRY(co_build(b, "dropout2d", "conv2_drop", "{p: 0.5}"));
    CO_TRY(co_build(b, "maxpool", NULL, "{kernel: 2}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "flatten", NULL, NULL));
    CO_TRY(co_build(b, "linear", "fc1", "{out: 50}"));
    CO_TRY(co_build(b, "relu", NULL, NULL));
    CO_TRY(co_build(b, "dropout", "fc1_drop", "{p: 0.5}"));
    CO_TRY(co_build(b, "linear", "fc2", fc2));
    return co_build(b, "log_softmax", NULL, NULL);
}

const co_model_ops co_model_mnist_net = {
    .name = "mnist-net",
    .summary = "two convolutions, two linear layers, dropout; for MNIST",
    .keys = mnist_net_keys,
    .self_size = sizeof(mnist_net),
    .sample = {3, {1, 28, 28}},
    .build = mnist_net_build,
};
