/* test_step.c - properties of single steps, with the public loop of the C API. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include <cohort.h>

#include "comm/shm/shm.h"
#include "core/mem.h"
#include "model/model.h"
#include "tensor/vector.h"

#define RANKS 3

/* One rank's objects, as a program creates them. */
typedef struct setup {
    co_dataset *data;
    co_sampler *sampler;
    co_loader *loader;
    co_model *model;
    co_distributed *optimizer;
} setup;

/* Together these cover every strategy. */
static const char *const strategies[] = {
    "{name: sync, bucket_mib: 0.01}",
    "{name: local, period: 3, start: 2, outer: {momentum: 0.5}, bucket_mib: 0.01}",
    "one-shot",
    "{name: one-shot, init: per-rank}",
    "{name: stale, k: 2, bucket_mib: 0.01}",
    "{name: threads, bucket_mib: 0.01}",
    "{name: ssp, bound: 2}",
    "{name: stale, racy: true, bucket_mib: 0.01}",
    "hogwild", /* last two: between threads their races are data races */
};
#define N_STRATEGIES (sizeof(strategies) / sizeof(strategies[0]))

typedef struct choice {
    const char *model, *strategy, *backend;
    int loader_threads;
    const char *precision;
    double clip_norm;
} choice;

static co_status setup_open(setup *s, co_comm *world, const choice *c)
{
    CO_TRY(co_dataset_open(&s->data, "{name: synthetic, samples: 100, shape: [1, 28, 28]}",
                           CO_SPLIT_TRAIN));
    CO_TRY(co_sampler_create(
        &s->sampler,
        &(co_sampler_options){.count = 100, .batch = 24, .ranks = co_comm_size(world), .seed = 1}));
    CO_TRY(co_loader_create(&s->loader, &(co_loader_options){.dataset = s->data,
                                                             .sampler = s->sampler,
                                                             .rank = co_comm_rank(world),
                                                             .threads = c->loader_threads}));
    CO_TRY(co_model_create(&s->model, &(co_model_options){.model = c->model,
                                                          .backend = c->backend,
                                                          .precision = c->precision,
                                                          .sample = *co_dataset_shape(s->data),
                                                          .classes = 10,
                                                          .seed = 1}));
    return co_distributed_create(
        &s->optimizer,
        &(co_distributed_options){.model = s->model,
                                  .comm = world,
                                  .optimizer = "{name: sgd, lr: 0.05, momentum: 0.9}",
                                  .strategy = c->strategy,
                                  .clip_norm = c->clip_norm});
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

/* Batches of 24, 24, 24, 24 and 4: every size occurs in the first epoch. */
static co_status count_allocations(co_comm *world, void *arg)
{
    setup s = {NULL};
    uint64_t before, after;

    CO_TRY(setup_open(&s, world, arg));
    CO_TRY(run_epochs(&s, 1));
    before = co_mem_count();
    CO_TRY(run_epochs(&s, 3));
    after = co_mem_count();
    CO_TRY(co_distributed_finish(s.optimizer));
    setup_close(&s);
    return after == before ? CO_OK
                           : co_fail(CO_E_FAILED, "15 steps took memory %llu times",
                                     (unsigned long long)(after - before));
}

static void assert_nothing_allocated(int ranks, choice c)
{
    if (co_launch(&(co_launch_options){.ranks = ranks}, count_allocations, &c) != CO_OK)
        fail_msg("%s, %s, %d ranks: %s", c.model, c.strategy, ranks, co_error_message());
}

static void step_of_training_allocates_nothing(void **state)
{
    static const char *const models[] = {"mnist-net", "{name: mnist-net, batch_norm: true}",
                                         "lenet5"};

    (void)state;
    for (int ranks = 1; ranks <= 3; ranks++) {
        for (size_t m = 0; m < sizeof(models) / sizeof(models[0]); m++)
            assert_nothing_allocated(ranks,
                                     (choice){.model = models[m], .strategy = strategies[0]});
        for (size_t s = 1; s < N_STRATEGIES; s++)
            assert_nothing_allocated(ranks,
                                     (choice){.model = models[1], .strategy = strategies[s]});
    }
}

/* ---- passes over the gradient ---- */

static const float *watched;
static size_t passed; /* elements of it, to find its norm or what is not finite */

static void watch_max_abs(co_queue *queue, float *out, const float *x, size_t n)
{
    passed += x == watched ? n : 0;
    co_vector_host()->max_abs(queue, out, x, n);
}

static void watch_sum_squares(co_queue *queue, double *out, float *most, const float *x, size_t n,
                              const co_grad_rule *rule)
{
    passed += x == watched ? n : 0;
    co_vector_host()->sum_squares(queue, out, most, x, n, rule);
}

static void assert_passes(choice c, size_t passes)
{
    co_vector_ops vector = *co_vector_host();
    co_comm *comm = NULL;
    setup s = {NULL};

    vector.max_abs = watch_max_abs;
    vector.sum_squares = watch_sum_squares;
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    assert_int_equal(setup_open(&s, comm, &c), CO_OK);
    s.model->store->vector = &vector;
    watched = s.model->store->grad;
    passed = 0;
    assert_int_equal(run_epochs(&s, 1), CO_OK);
    assert_int_equal(passed, passes * co_sampler_steps(s.sampler) * s.model->store->n);
    setup_close(&s);
    co_comm_destroy(comm);
}

static void step_with_clipping_and_loss_scale_reads_gradient_once(void **state)
{
    static const char scaled[] = "{level: O1, dtype: fp16, loss_scale: 8}";

    (void)state;
    assert_passes((choice){.model = "lenet5", .precision = scaled, .clip_norm = 1}, 1);
    assert_passes((choice){.model = "lenet5", .precision = scaled}, 1);
    assert_passes((choice){.model = "lenet5", .clip_norm = 1}, 1);
    assert_passes((choice){.model = "lenet5"}, 0);
}

/* A rank as a thread of this process, for the sanitizers. */
typedef struct thread_rank {
    co_shm *shm;
    int rank;
    const char *strategy;
    co_status status;
    double loss; /* of the trained weights, on samples that all ranks read */
    char message[256];
} thread_rank;

static co_status thread_train(thread_rank *t, co_comm *comm)
{
    setup s = {NULL};
    co_result result;
    float pixel[784];
    int32_t label;
    const uint32_t sample = 0;

    /* oneDNN shares its primitive cache between threads with locks that a sanitizer cannot see, as
       the library is not instrumented. */
    CO_TRY(setup_open(&s, comm,
                      &(choice){.model = "{name: mnist-net, batch_norm: true}",
                                .strategy = t->strategy,
                                .backend = "cpu",
                                .loader_threads = 1}));
    CO_TRY(run_epochs(&s, 2));
    CO_TRY(co_distributed_finish(s.optimizer));
    co_distributed_destroy(s.optimizer); /* returns weights that ranks shared */
    s.optimizer = NULL;
    CO_TRY(co_dataset_read(s.data, pixel, sample));
    label = co_dataset_label(s.data, sample);
    CO_TRY(co_model_broadcast(s.model, comm, 0));
    CO_TRY(co_model_evaluate(
        &result, s.model,
        &(co_batch){.count = 1,
                    .global = 1,
                    .sample = &sample,
                    .field = {{CO_FIELD_INPUT, CO_F32, *co_dataset_shape(s.data), pixel},
                              {CO_FIELD_LABEL, CO_I32, {0}, &label}}}));
    t->loss = result.loss_sum;
    setup_close(&s);
    return CO_OK;
}

static void *thread_main(void *arg)
{
    thread_rank *t = arg;
    co_comm *comm = NULL;

    t->status = co_shm_attach(&comm, t->shm, t->rank);
    if (t->status == CO_OK)
        t->status = thread_train(t, comm);
    snprintf(t->message, sizeof(t->message), "%s", co_error_message());
    co_comm_destroy(comm);
    return NULL;
}

static void train_as_threads(const char *strategy)
{
    thread_rank ranks[RANKS];
    pthread_t threads[RANKS];
    co_shm *shm;

    assert_int_equal(co_shm_create(&shm, RANKS), CO_OK);
    for (int r = 0; r < RANKS; r++) {
        ranks[r] = (thread_rank){.shm = shm, .rank = r, .strategy = strategy};
        assert_int_equal(pthread_create(&threads[r], NULL, thread_main, &ranks[r]), 0);
    }
    for (int r = 0; r < RANKS; r++)
        pthread_join(threads[r], NULL);
    for (int r = 0; r < RANKS; r++) {
        if (ranks[r].status != CO_OK)
            fail_msg("%s, rank %d: %s", strategy, r, ranks[r].message);
        assert_true(ranks[r].loss == ranks[0].loss);
    }
    co_shm_destroy(shm);
}

static void step_of_ranks_as_threads_trains(void **state)
{
    (void)state;
    for (size_t s = 0; s + 2 < N_STRATEGIES; s++)
        train_as_threads(strategies[s]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_of_training_allocates_nothing),
        cmocka_unit_test(step_with_clipping_and_loss_scale_reads_gradient_once),
        cmocka_unit_test(step_of_ranks_as_threads_trains),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
