/*
 * test_step.c - what must hold of single steps: the public loop of the C API, taken apart.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cohort.h>

#include "core/mem.h"

/* One rank's end of a training, as a program sets it up. */
typedef struct setup {
    co_dataset *data;
    co_sampler *sampler;
    co_loader *loader;
    co_model *model;
    co_distributed *optimizer;
} setup;

static co_status setup_open(setup *s, co_comm *world, const char *model, int loader_threads)
{
    CO_TRY(co_dataset_open(&s->data, "{name: synthetic, samples: 100, shape: [1, 28, 28]}",
                           CO_SPLIT_TRAIN));
    CO_TRY(co_sampler_create(
        &s->sampler,
        &(co_sampler_options){.count = 100, .batch = 24, .ranks = co_comm_size(world), .seed = 1}));
    CO_TRY(co_loader_create(&s->loader, &(co_loader_options){.dataset = s->data,
                                                             .sampler = s->sampler,
                                                             .rank = co_comm_rank(world),
                                                             .threads = loader_threads}));
    CO_TRY(co_model_create(&s->model, &(co_model_options){.model = model,
                                                          .sample = *co_dataset_shape(s->data),
                                                          .classes = 10,
                                                          .seed = 1}));
    return co_distributed_create(
        &s->optimizer,
        &(co_distributed_options){.model = s->model,
                                  .comm = world,
                                  .optimizer = "{name: sgd, lr: 0.05, momentum: 0.9}",
                                  .strategy = "{name: sync, bucket_mib: 0.01}"});
}

static void setup_close(setup *s)
{
    co_distributed_destroy(s->optimizer);
    co_model_destroy(s->model);
    co_loader_destroy(s->loader);
    co_sampler_destroy(s->sampler);
    co_dataset_destroy(s->data);
}

static co_status run_epochs(setup *s, int epochs)
{
    for (uint64_t step = 0; step < (uint64_t)epochs * co_sampler_steps(s->sampler); step++) {
        co_batch batch;
        co_result result;

        CO_TRY(co_loader_next(&batch, s->loader));
        CO_TRY(co_model_forward(&result, s->model, &batch));
        CO_TRY(co_distributed_backward(s->optimizer, &batch, false));
        CO_TRY(co_distributed_step(s->optimizer));
    }
    return CO_OK;
}

/* Batches of 24, 24, 24, 24 and 4: after an epoch every size has been seen. */
static co_status count_allocations(co_comm *world, void *arg)
{
    setup s = {NULL};
    uint64_t before, after;

    CO_TRY(setup_open(&s, world, arg, 0));
    CO_TRY(run_epochs(&s, 1));
    before = co_mem_count();
    CO_TRY(run_epochs(&s, 3));
    after = co_mem_count();
    setup_close(&s);
    return after == before ? CO_OK
                           : co_fail(CO_E_FAILED, "15 steps took memory %llu times",
                                     (unsigned long long)(after - before));
}

static void a_step_allocates_nothing(void **state)
{
    static char *const models[] = {"mnist-net", "{name: mnist-net, batch_norm: true}", "lenet5"};

    (void)state;
    for (int ranks = 1; ranks <= 3; ranks++)
        for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++)
            if (co_launch(&(co_launch_options){.ranks = ranks}, count_allocations, models[m]) !=
                CO_OK)
                fail_msg("%s, %d ranks: %s", models[m], ranks, co_error_message());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_allocates_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
