/*
 * test_threads.c - small networks, which Cohort's own kernels and oneDNN's linear layers run, are
 * trained to the same weights whatever the number of threads is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <cohort.h>

#include "core/mem.h"
#include "model/model.h"

#define SAMPLES 500
#define BATCH   140 /* the last batch of an epoch is another, and neither fills vectors of 16 */
#define EPOCHS  2
#define MOST    4

typedef struct network {
    const char *model;
    int64_t width;
} network;

typedef struct setup {
    co_dataset *data;
    co_sampler *sampler;
    co_loader *loader;
    co_model *model;
    co_comm *comm;
    co_distributed *optimizer;
} setup;

static co_status setup_open(setup *s, const network *net, int threads)
{
    char data[128];

    snprintf(data, sizeof(data), "{name: synthetic, samples: %d, shape: [1, %d, %d]}", SAMPLES,
             (int)net->width, (int)net->width);
    CO_TRY(co_comm_create_self(&s->comm));
    CO_TRY(co_dataset_open(&s->data, data, CO_SPLIT_TRAIN));
    CO_TRY(co_sampler_create(
        &s->sampler,
        &(co_sampler_options){.count = SAMPLES, .batch = BATCH, .ranks = 1, .seed = 1}));
    CO_TRY(co_loader_create(
        &s->loader, &(co_loader_options){.dataset = s->data, .sampler = s->sampler, .rank = 0}));
    CO_TRY(co_model_create(&s->model, &(co_model_options){.model = net->model,
                                                          .sample = *co_dataset_shape(s->data),
                                                          .classes = 10,
                                                          .threads = threads,
                                                          .seed = 1}));
    return co_distributed_create(
        &s->optimizer,
        &(co_distributed_options){.model = s->model,
                                  .comm = s->comm,
                                  .optimizer = "{name: sgd, lr: 0.05, momentum: 0.9}",
                                  .strategy = "sync"});
}

static co_status setup_train(setup *s)
{
    for (uint64_t step = 0; step < EPOCHS * co_sampler_steps(s->sampler); step++) {
        co_batch batch;
        co_result result;

        CO_TRY(co_loader_next(&batch, s->loader));
        CO_TRY(co_model_forward(&result, s->model, &batch));
        CO_TRY(co_distributed_backward(s->optimizer, &batch, false));
        CO_TRY(co_distributed_step(s->optimizer));
    }
    return co_distributed_finish(s->optimizer);
}

static co_status fingerprint(char out[65], const co_model *model)
{
    co_named_tensor *tensors;
    size_t n;

    CO_TRY(co_model_tensors(&tensors, &n, model));
    co_safetensors_sha256(out, tensors, n);
    co_free(tensors);
    return CO_OK;
}

static void train(char out[65], const network *net, int threads)
{
    setup s = {NULL};
    co_status st = setup_open(&s, net, threads);

    if (st == CO_OK)
        st = setup_train(&s);
    if (st == CO_OK)
        st = fingerprint(out, s.model);
    if (st != CO_OK)
        fail_msg("%s, %d threads: %s", net->model, threads, co_error_message());
    co_distributed_destroy(s.optimizer);
    co_model_destroy(s.model);
    co_loader_destroy(s.loader);
    co_sampler_destroy(s.sampler);
    co_dataset_destroy(s.data);
    co_comm_destroy(s.comm);
}

static void training_with_any_threads_same_weights(void **state)
{
    static const network nets[] = {{"mnist-net", 28},
                                   {"{name: mnist-net, batch_norm: true}", 28},
                                   {"lenet5", 28},
                                   {"psgd-cnn", 32}};

    (void)state;
    for (size_t i = 0; i < sizeof(nets) / sizeof(nets[0]); i++) {
        char one[65], many[65];

        train(one, &nets[i], 1);
        for (int threads = 2; threads <= MOST; threads++) {
            train(many, &nets[i], threads);
            if (strcmp(one, many) != 0)
                fail_msg("%s: other weights with %d threads than with one", nets[i].model, threads);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(training_with_any_threads_same_weights),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
