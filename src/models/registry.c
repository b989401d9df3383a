/*
 * registry.c - every model by name.
 */
#include <string.h>

#include "models/models.h"

const co_model_ops *const co_models[] = {
    &co_model_mnist_net, &co_model_lenet5, &co_model_mlp, &co_model_psgd_cnn, NULL,
};

const co_model_ops *co_model_find(const char *name)
{
    for (const co_model_ops *const *ops = co_models; *ops; ops++)
        if (strcmp((*ops)->name, name) == 0)
            return *ops;
    return NULL;
}
