/*
 * test_device_ranks.c - trainings of several ranks, each with its network on a device of its own:
 * what they send is staged in the host's memory, and what a run leaves has the bits of the same
 * ranks on the host, also when it is cut in two by a checkpoint.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "device/trainings.h"

/* Dropout, batch norm, clipping, micro-batches, a loss scale that overflows in the first steps, a
   short last batch. */
static const char mnist_net[] =
    "model: {name: mnist-net, batch_norm: true}\n"
    "data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 44}\n"
    "batch: 12\n"
    "accumulate: 2\n"
    "epochs: 2\n"
    "log_every: 2\n"
    "backend: ref\n"
    "metrics: f1_macro\n"
    "optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 0.001}\n"
    "schedule: {name: step, every: 3, gamma: 0.5, unit: step}\n"
    "clip: {norm: 0.5}\n"
    "precision: {level: O1, dtype: fp16, loss_scale: dynamic, loss_scale_window: 1}\n"
    "checkpoint: {every: 3 steps, keep: 10}\n"
    "threads: 1\n";

static const char resnet[] =
    "layers:\n"
    "  - conv2d: {out: 8, kernel: 3, padding: 1, bias: false}\n"
    "  - batchnorm\n"
    "  - relu\n"
    "  - residual:\n"
    "      body:\n"
    "        - conv2d: {out: 8, kernel: 3, padding: 1, bias: false}\n"
    "        - batchnorm\n"
    "        - relu\n"
    "        - conv2d: {out: 8, kernel: 3, padding: 1, bias: false}\n"
    "        - batchnorm\n"
    "  - relu\n"
    "  - maxpool: 2\n"
    "  - flatten\n"
    "  - dropout: 0.2\n"
    "  - linear: 10\n"
    "data: {name: synthetic, shape: [3, 12, 12], classes: 10, samples: 40}\n"
    "batch: 9\n"
    "epochs: 2\n"
    "log_every: 2\n"
    "backend: ref\n"
    "optimizer: {name: adamw, lr: 0.002}\n"
    "clip: {value: 0.01}\n"
    "checkpoint: {every: 2 steps, keep: 10}\n"
    "threads: 1\n";

static void check(const char *config, const char *more, int ranks)
{
    char text[2048];

    snprintf(text, sizeof(text), "%s%s", config, more);
    training_check(text, "max_steps=5", ranks);
}

static void ranks_of_mnist_net_in_sync_have_bits_of_host(void **state)
{
    (void)state;
    check(mnist_net, "ema: {decay: 0.9}\nstrategy: {name: sync, bucket_mib: 0.02}\n", 2);
}

static void ranks_of_resnet_in_sync_have_bits_of_host(void **state)
{
    (void)state;
    check(resnet,
          "ema: {decay: 0.9, every: 2, warmup: true}\nstrategy: {name: sync, update: whole}\n", 3);
}

static void ranks_of_mnist_net_with_local_steps_have_bits_of_host(void **state)
{
    (void)state;
    check(mnist_net, "strategy: {name: local, period: 3}\n", 3);
}

static void ranks_of_resnet_with_local_steps_have_bits_of_host(void **state)
{
    (void)state;
    check(resnet, "strategy: {name: local, period: 2, outer: {momentum: 0.5, nesterov: true}}\n",
          2);
}

/* The last batch has fewer samples in some shards. */
static void ranks_of_mnist_net_with_shards_have_bits_of_host(void **state)
{
    (void)state;
    check(mnist_net, "shards: 5\n", 2);
}

static void rank_of_resnet_with_shards_has_bits_of_host(void **state)
{
    (void)state;
    check(resnet, "shards: 4\n", 1);
}

static void ranks_that_divide_the_update_have_bits_of_host(void **state)
{
    (void)state;
    check(mnist_net, "strategy: {name: sync, update: zero}\n", 3);
}

static void ranks_that_divide_the_update_by_host_have_its_bits(void **state)
{
    (void)state;
    check(mnist_net, "strategy: {name: sync, update: parts}\n", 2);
}

static void ranks_that_send_16_bits_have_bits_of_host(void **state)
{
    (void)state;
    check(resnet, "strategy: {name: sync, compress: bf16}\n", 3);
}

static void ranks_that_send_large_elements_have_bits_of_host(void **state)
{
    (void)state;
    check(resnet, "strategy: {name: sync, compress: {name: topk, ratio: 0.05, start: 2}}\n", 2);
}

static void ranks_that_send_thin_matrices_have_bits_of_host(void **state)
{
    (void)state;
    check(resnet, "strategy: {name: sync, compress: powersgd}\n", 2);
}

/* The host would scale what is kept a step too late. */
static void ranks_that_keep_gradients_refuse_a_moving_loss_scale(void **state)
{
    char text[2048];
    training t = {.config = text, .name = "run", .ranks = 2, .mock = true, .fails = true};

    (void)state;
    snprintf(text, sizeof(text), "%sstrategy: {name: sync, compress: bf16}\n", mnist_net);
    training_run(&t);
    assert_non_null(strstr(t.message, "give `loss_scale` a number"));
}

int main(void)
{
#define TEST_OF(name)                                                                              \
    cmocka_unit_test_setup_teardown(name, training_make_folder, training_remove_folder)
    const struct CMUnitTest tests[] = {
        TEST_OF(ranks_of_mnist_net_in_sync_have_bits_of_host),
        TEST_OF(ranks_of_resnet_in_sync_have_bits_of_host),
        TEST_OF(ranks_of_mnist_net_with_local_steps_have_bits_of_host),
        TEST_OF(ranks_of_resnet_with_local_steps_have_bits_of_host),
        TEST_OF(ranks_of_mnist_net_with_shards_have_bits_of_host),
        TEST_OF(rank_of_resnet_with_shards_has_bits_of_host),
        TEST_OF(ranks_that_divide_the_update_have_bits_of_host),
        TEST_OF(ranks_that_divide_the_update_by_host_have_its_bits),
        TEST_OF(ranks_that_send_16_bits_have_bits_of_host),
        TEST_OF(ranks_that_send_large_elements_have_bits_of_host),
        TEST_OF(ranks_that_send_thin_matrices_have_bits_of_host),
        TEST_OF(ranks_that_keep_gradients_refuse_a_moving_loss_scale),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
