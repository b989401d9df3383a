/*
 * fuzz_cifar_python.c - the reader of CIFAR's pickles over any bytes: as a file of either data set,
 * and as the names of their classes.
 *
 * What it accepts must be samples of sound labels whose bytes are all there.
 */
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "data/cifar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_as(const uint8_t *data, size_t size, const co_cifar_layout *layout)
{
    co_cifar cifar;

    if (!co_cifar_is_pickle(data, size) ||
        co_cifar_parse(&cifar, data, size, layout, "input") != CO_OK)
        return;
    if (cifar.count == 0)
        abort();
    for (size_t i = 0; i < cifar.count; i++) {
        const uint8_t *image = cifar.image + i * cifar.image_step;

        for (size_t k = 0; k < layout->labels; k++)
            if (cifar.label[i * cifar.label_step + k] >= layout->classes[k])
                abort();
        (void)((const volatile uint8_t *)image)[0]; /* volatile, so that they stay */
        (void)((const volatile uint8_t *)image)[CO_CIFAR_IMAGE - 1];
    }
    co_cifar_close(&cifar);
}

static void fuzz_names(const uint8_t *data, size_t size, const char *key, size_t classes)
{
    char *names;

    if (co_cifar_python_names(&names, data, size, key, classes, "input") != CO_OK)
        return;
    if (names && strlen(names) < 2 * classes) /* of a letter and an end each, at least */
        abort();
    co_free(names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_as(data, size, &co_cifar10_layout);
    fuzz_as(data, size, &co_cifar100_layout);
    fuzz_names(data, size, "label_names", 10);
    fuzz_names(data, size, "coarse_label_names", 20);
    return 0;
}
