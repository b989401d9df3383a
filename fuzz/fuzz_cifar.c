/*
 * fuzz_cifar.c - the CIFAR reader over any bytes, plain or gzip, taken as either of its layouts.
 *
 * What it accepts must be whole records of sound labels.
 */
#include <stdlib.h>

#include "data/cifar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_as(const uint8_t *data, size_t size, const co_cifar_layout *layout)
{
    co_cifar cifar;

    if (co_cifar_parse(&cifar, data, size, layout, "input") != CO_OK)
        return;
    if (cifar.count == 0)
        abort();
    for (size_t i = 0; i < cifar.count; i++) {
        const uint8_t *image = cifar.image + i * cifar.image_step;

        for (size_t k = 0; k < layout->labels; k++)
            if (cifar.label[i * cifar.label_step + k] >= layout->classes[k])
                abort();
        (void)((
            const volatile uint8_t *)image)[CO_CIFAR_IMAGE - 1]; /* volatile, so that it stays */
    }
    co_cifar_close(&cifar);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_as(data, size, &co_cifar10_layout);
    fuzz_as(data, size, &co_cifar100_layout);
    return 0;
}
