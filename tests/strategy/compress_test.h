/*
 * compress_test.h - ranks as threads that sum given gradients under a strategy, with what each of
 * them received, kept and sent.
 */
#ifndef CO_TESTS_COMPRESS_TEST_H
#define CO_TESTS_COMPRESS_TEST_H

#include "strategy/rank_threads.h"

#include <math.h>
#include <stdlib.h>

#include "core/rng.h"
#include "device/device.h"

#define N         2000 /* of the store */
#define STEPS     12
#define MAX_RANKS 4

/* With gaps, a vector, a scalar, and wide and tall matrices. */
static const co_store_tensor tensors[] = {
    {0, 10, 1},    {16, 10, 27},  {288, 40, 20}, {1088, 1, 1},
    {1104, 3, 50}, {1264, 40, 3}, {1392, 8, 75},
};
#define N_TENSORS (sizeof(tensors) / sizeof(tensors[0]))

typedef struct job {
    const char *config;
    int ranks;
    bool no_tensors;   /* the store has no list of tensors */
    bool low_rank;     /* each matrix has rank 2 */
    int spoiled;       /* step in which rank 1's gradient is not finite; 0: never */
    int gives_up;      /* step in the middle of which rank 1 leaves; 0: never */
    co_device *device; /* of the stores; NULL: the host */
} job;

typedef struct rank {
    rank_thread base;
    const job *job;
    float sum[STEPS][N]; /* the optimizer's input */
    float memory[N];     /* at the end */
    bool has_memory;
    uint64_t bytes_sent;
} rank;

static rank ranks[MAX_RANKS];

/* Rank 2 has no samples in odd steps; gaps are 0. */
static inline void gradient(float *out, const job *j, int index, int step)
{
    memset(out, 0, N * sizeof(*out));
    if (index == 2 && step % 2 == 1)
        return;
    for (size_t t = 0; t < N_TENSORS; t++) {
        const co_store_tensor *tensor = &tensors[t];
        const co_rng rng = {.seed = (uint64_t)index,
                            .stream = CO_RNG_TEST,
                            .step = (uint32_t)step,
                            .item = (uint32_t)t};
        float *m = out + tensor->begin, u[2 * 40], v[2 * 75];

        co_rng_normal(m, &rng, 0, tensor->rows * tensor->cols);
        if (!j->low_rank || tensor->cols == 1)
            continue;
        co_rng_normal(v, &rng, 0, 2 * tensor->cols);
        for (size_t i = 0; i < 2 * tensor->rows; i++) /* all ranks in one space */
            u[i] = (float)((int)(i * 7 + t) % 11 - 5);
        for (size_t i = 0; i < tensor->rows; i++)
            for (size_t k = 0; k < tensor->cols; k++)
                m[i * tensor->cols + k] = u[2 * i] * v[2 * k] + u[2 * i + 1] * v[2 * k + 1];
    }
    if (j->spoiled && j->spoiled == step && index == 1)
        for (size_t i = 0; i < 270; i++)
            out[16 + i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
}

/* In pieces whose size depends on the rank. */
static inline co_status announce(const strategy_test *t, int index)
{
    const size_t piece = 160 * (size_t)(index + 1);

    for (size_t begin = 0; begin < N && index != 3; begin += piece)
        CO_TRY(co_strategy_grad_ready(t->strategy, begin, begin + piece < N ? begin + piece : N));
    return CO_OK;
}

static inline co_status rank_run(rank_thread *base, strategy_test *t, co_comm *comm)
{
    rank *r = (rank *)base;
    float grad[N];
    const float *carry;
    uint64_t before;

    CO_TRY(co_comm_set_timeout(comm, WAITS_MS));
    CO_TRY(co_config_parse(&t->config, r->job->config, strlen(r->job->config), "bad.yaml"));
    CO_TRY(co_store_create_on(&t->store, r->job->device, N, 0));
    if (!r->job->no_tensors)
        CO_TRY(co_store_set_tensors(t->store, tensors, N_TENSORS));
    CO_TRY(co_strategy_create(&t->strategy, co_value_get(co_config_root(t->config), "strategy"),
                              t->config, comm, t->store, NULL));
    CO_TRY(co_strategy_start(t->strategy));
    before = co_comm_bytes_sent(comm);
    for (int step = 0; step < STEPS; step++) {
        gradient(grad, r->job, r->base.index, step);
        CO_TRY(co_store_write(t->store, CO_STORE_GRAD, 0, N, grad));
        CO_TRY(announce(t, r->base.index));
        if (r->job->gives_up && step == r->job->gives_up && r->base.index == 1)
            return co_fail(CO_E_FAILED, "out of patience");
        CO_TRY(co_strategy_before_update(t->strategy, &(co_strategy_step){.step = (uint64_t)step}));
        CO_TRY(co_store_read(t->store, CO_STORE_GRAD, 0, N, r->sum[step]));
        CO_TRY(co_strategy_after_update(t->strategy, &(co_strategy_step){.step = (uint64_t)step}));
    }
    r->bytes_sent = co_comm_bytes_sent(comm) - before;
    carry = co_strategy_persistent(t->strategy, 0);
    r->has_memory = carry && co_strategy_is_partial_sum(t->strategy, 0);
    if (r->has_memory)
        CO_TRY(co_queue_copy_now(t->store->queue, r->memory, carry, sizeof(r->memory)));
    return CO_OK;
}

static inline void run_anyway(rank *out, const job *j)
{
    for (int i = 0; i < j->ranks; i++) {
        memset(&out[i], 0, sizeof(out[i]));
        out[i].job = j;
    }
    rank_threads_run(out, sizeof(*out), j->ranks, rank_run);
}

/* Same bits, except that any NaN equals any other. */
static inline void assert_same(const float *a, const float *b, const job *j)
{
    for (size_t e = 0; e < N; e++)
        if (memcmp(a + e, b + e, sizeof(*a)) != 0 && !(isnan(a[e]) && isnan(b[e])))
            fail_msg("%s, %d ranks, element %zu: %.9g and %.9g", j->config, j->ranks, e,
                     (double)a[e], (double)b[e]);
}

/* Runs all ranks and checks that they have the same sums. */
static inline void run(rank *out, const job *j)
{
    run_anyway(out, j);
    for (int i = 0; i < j->ranks; i++) {
        if (out[i].base.status != CO_OK)
            fail_msg("%s, rank %d: %s", j->config, i, out[i].base.message);
        for (int step = 0; step < STEPS; step++)
            assert_same(out[i].sum[step], out[0].sum[step], j);
    }
}

static inline void assert_near(double got, double want, double most, const job *j, size_t e)
{
    if (!(fabs(got - want) <= most))
        fail_msg("%s, %d ranks, element %zu: %.9g, not %.9g", j->config, j->ranks, e, got, want);
}

static const char *const lossy[] = {
    "strategy: {name: sync, compress: bf16}",
    "strategy: {name: sync, bucket_mib: 0.001, compress: {name: fp16, start: 2}}",
    "strategy: {name: sync, compress: topk}",
    "strategy: {name: sync, bucket_mib: 0.001, compress: {name: topk, ratio: 0.05}}",
    "strategy: {name: sync, compress: {name: topk, start: 3}}",
    "strategy: {name: sync, compress: {name: powersgd, rank: 1}}",
    "strategy: {name: sync, bucket_mib: 0.001, compress: {name: powersgd, min_compression: 0.5}}",
    "strategy: {name: sync, compress: {name: powersgd, rank: 3, warm_start: false, start: 2}}",
};
#define N_LOSSY (sizeof(lossy) / sizeof(lossy[2]))

#endif
