/* test_device_cuda_optim.c - optimizers of a GPU against the host's bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/optim_laws.h"
#include "standin/open_gpu.h"

static void updates_on_a_gpu_have_bits_of_host(void **state)
{
    static const char *const optimizers[] = {
        "{name: sgd, lr: 1, weight_decay: 0.1}",
        "{name: sgd, lr: 1, momentum: 0.9, nesterov: true, weight_decay: 0.01}",
        "{name: sgd, lr: 1, momentum: 0.9, dampening: 0.1, bias_weight_decay: 0.1}",
        "{name: adam, lr: 1, weight_decay: 0.01}",
        "{name: adamw, lr: 1, norm_weight_decay: 0}",
        "{name: adadelta, lr: 1, weight_decay: 0.01}",
        "{name: lars, lr: 1, weight_decay: 0.01}",
        "{name: lars, lr: 1, exclude_norm_bias: true}",
        "{name: lamb, lr: 1}",
        "{name: lamb, lr: 1, exclude_norm_bias: true}",
    };
    co_device *device = open_gpu();

    (void)state;
    for (size_t i = 0; i < sizeof(optimizers) / sizeof(optimizers[0]); i++)
        optim_check_bits(device, optimizers[i]);
    co_cuda_close(device);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_on_a_gpu_have_bits_of_host),
    };

    open_gpu_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
