/*
 * test_device_train.c - whole trainings on a device other than the host end with the bits of the
 * same run on the host, also when split in two by a checkpoint.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "device/trainings.h"

/* Together they cover dropout, batch norm, clipping by norm and by value, a moving average of
   weights, micro-batches, checkpoints, a dynamic loss scale that overflows in the first steps, a
   short last batch, and blocks that are computed again. */
static const char mnist_net[] =
    "model: {name: mnist-net, batch_norm: true}\n"
    "data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 44}\n"
    "batch: 12\n"
    "accumulate: 2\n"
    "epochs: 2\n"
    "log_every: 1\n"
    "backend: ref\n"
    "optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 0.001}\n"
    "schedule: {name: step, every: 3, gamma: 0.5, unit: step}\n"
    "clip: {norm: 0.5}\n"
    "ema: {decay: 0.9}\n"
    "precision: {level: O1, dtype: fp16, loss_scale: dynamic, loss_scale_window: 1}\n"
    "checkpoint: {every: 3 steps}\n"
    "threads: 1\n";

static const char resnet9[] =
    "model: resnet9\n"
    "data: {name: synthetic, shape: [3, 32, 32], classes: 10, samples: 10}\n"
    "batch: 4\n"
    "recompute: true\n"
    "epochs: 1\n"
    "log_every: 1\n"
    "backend: ref\n"
    "optimizer: {name: adam, lr: 0.002}\n"
    "clip: {value: 0.01}\n"
    "checkpoint: {every: 2 steps}\n"
    "threads: 1\n";

static void device_train_mnist_net_gives_the_bits_of_the_host(void **state)
{
    (void)state;
    training_check(mnist_net, "max_steps=5", 1);
}

static void device_train_resnet9_gives_the_bits_of_the_host(void **state)
{
    (void)state;
    training_check(resnet9, "max_steps=2", 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(device_train_mnist_net_gives_the_bits_of_the_host,
                                        training_make_folder, training_remove_folder),
        cmocka_unit_test_setup_teardown(device_train_resnet9_gives_the_bits_of_the_host,
                                        training_make_folder, training_remove_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
