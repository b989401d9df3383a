/*
 * ranks.h - ranks as threads that minimise a sum of squares under a strategy, with plain SGD.
 *
 * Sample s pulls weight e towards sample_target(s, e): the gradient of its loss is w - target. Step
 * t has GLOBAL samples, divided among the ranks by `split`, so that the path of `sync` does not
 * depend on the division.
 */
#ifndef CO_TESTS_RANKS_H
#define CO_TESTS_RANKS_H

#include "strategy/rank_threads.h"

#define N         160
#define N_BUFFER  16
#define GLOBAL    12
#define LR        0.05F
#define MAX_RANKS 4

typedef struct job {
    const char *config;
    int ranks, steps;
    int split[3][MAX_RANKS]; /* samples of each rank; step t uses row t % 3 */
    bool same_samples;       /* all ranks use those of rank 0 */
    bool draws;              /* initial weights can be drawn again */
    int gives_up;            /* step before which rank 1 leaves; 0: never */
    bool early;              /* update a summed range at once where no rank has to wait */
    co_device *device;       /* of the stores; NULL: the host */
} job;

typedef struct rank {
    rank_thread base;
    const job *job;
    float param[N], buffer[N_BUFFER]; /* at the end */
    uint64_t bytes_sent;              /* in steps and finish */
    int updates;
} rank;

static inline float sample_target(int sample, size_t e)
{
    return (float)((sample * 37 + (int)e * 11) % 23 - 11);
}

static inline float first_weight(int index, size_t e)
{
    return (float)(index + 1) * (float)((int)(e % 7) - 3);
}

static inline co_status draw_weights(void *owner, uint64_t offset)
{
    co_store *store = owner;
    float param[N];

    for (size_t e = 0; e < N; e++)
        param[e] = first_weight((int)offset, e);
    return co_store_write(store, CO_STORE_PARAM, 0, N, param);
}

/* Plain SGD in the store's own memory. */
static inline co_status update_range(void *owner, size_t begin, size_t end)
{
    const co_store *store = owner;

    store->vector->axpby(store->queue, store->param + begin, 1, store->param + begin, -LR,
                         store->grad + begin, end - begin);
    return CO_OK;
}

/* Mean gradient of a rank's samples at a step; 0 without samples. */
static inline double mean_gradient(const job *j, int index, int step, size_t e, double w)
{
    const int *split = j->split[step % 3];
    int first = step * GLOBAL;
    double sum = 0;

    for (int i = 0; i < index && !j->same_samples; i++)
        first += split[i];
    for (int s = first; s < first + split[index]; s++)
        sum += w - (double)sample_target(s, e);
    return split[index] ? sum / split[index] : 0;
}

static inline co_status rank_step(rank *r, strategy_test *t, int step)
{
    const int local = r->job->split[step % 3][r->base.index];
    co_strategy_step at = {.step = (uint64_t)step, .local = (uint64_t)local};
    const bool alone = co_strategy_is_local(t->strategy, at.step);
    co_store *store = t->store;
    float param[N], grad[N], buffer[N_BUFFER];
    double scale;

    for (int i = 0; i < r->job->ranks; i++)
        at.global += (uint64_t)r->job->split[step % 3][i];
    scale = alone ? 1 : (double)local / (double)at.global;

    CO_TRY(co_store_read(store, CO_STORE_PARAM, 0, N, param));
    for (size_t e = 0; e < N; e++)
        grad[e] = (float)(scale * mean_gradient(r->job, r->base.index, step, e, (double)param[e]));
    CO_TRY(co_store_write(store, CO_STORE_GRAD, 0, N, grad));
    t->strategy->update = r->job->early ? update_range : NULL;
    t->strategy->updater = store;
    t->strategy->updated = false;
    if (local) {
        CO_TRY(co_strategy_grad_ready(t->strategy, 0, N / 2));
        CO_TRY(co_strategy_grad_ready(t->strategy, N / 2, N));
    }
    CO_TRY(co_store_read(store, CO_STORE_BUFFER, 0, N_BUFFER, buffer));
    for (size_t e = 0; e < N_BUFFER; e++) /* running statistics follow the rank's own samples */
        buffer[e] += (float)local;
    CO_TRY(co_store_write(store, CO_STORE_BUFFER, 0, N_BUFFER, buffer));
    CO_TRY(co_strategy_before_update(t->strategy, &at));
    for (size_t i = 0, begin, end;
         !t->strategy->updated && co_strategy_own_part(&begin, &end, t->strategy, i); i++)
        CO_TRY(update_range(store, begin, end));
    r->updates += t->strategy->update_begin < t->strategy->update_end;
    return co_strategy_after_update(t->strategy, &at);
}

static inline co_status rank_run(rank_thread *base, strategy_test *t, co_comm *comm)
{
    rank *r = (rank *)base;
    uint64_t before;

    CO_TRY(co_comm_set_timeout(comm, WAITS_MS));
    CO_TRY(strategy_test_open_on(t, r->job->config, comm, r->job->device, N, N_BUFFER));
    CO_TRY(draw_weights(t->store, r->job->draws ? 0 : (uint64_t)r->base.index));
    t->strategy->draw_weights = r->job->draws ? draw_weights : NULL;
    t->strategy->owner = t->store;
    CO_TRY(co_strategy_start(t->strategy));
    before = co_comm_bytes_sent(comm);
    for (int step = 0; step < r->job->steps; step++) {
        if (r->job->gives_up && r->job->gives_up == step && r->base.index == 1)
            return co_fail(CO_E_FAILED, "out of patience");
        CO_TRY(rank_step(r, t, step));
    }
    CO_TRY(co_strategy_finish(t->strategy));
    r->bytes_sent = co_comm_bytes_sent(comm) - before;
    CO_TRY(co_store_read(t->store, CO_STORE_PARAM, 0, N, r->param));
    return co_store_read(t->store, CO_STORE_BUFFER, 0, N_BUFFER, r->buffer);
}

/* Runs all ranks until they have ended or failed. */
static inline void run_anyway(rank *ranks, const job *j)
{
    for (int i = 0; i < j->ranks; i++)
        ranks[i] = (rank){.job = j};
    rank_threads_run(ranks, sizeof(*ranks), j->ranks, rank_run);
}

static inline void run(rank *ranks, const job *j)
{
    run_anyway(ranks, j);
    for (int i = 0; i < j->ranks; i++)
        if (ranks[i].base.status != CO_OK)
            fail_msg("%s, rank %d: %s", j->config, i, ranks[i].base.message);
}

static inline void assert_same_bytes(const float *a, const float *b)
{
    assert_memory_equal(a, b, N * sizeof(float));
}

static inline void assert_close(const float *got, const double *want, size_t n)
{
    for (size_t e = 0; e < n; e++) {
        const double difference = (double)got[e] - want[e];

        if (difference > 2e-5 || difference < -2e-5)
            fail_msg("element %zu is %.9g, not %.9g", e, (double)got[e], want[e]);
    }
}

/* Even, uneven, and with ranks that have no samples in some or all steps. */
static const job splits[] = {
    {.ranks = 1, .split = {{12}, {12}, {12}}},
    {.ranks = 2, .split = {{6, 6}, {6, 6}, {6, 6}}},
    {.ranks = 2, .split = {{12, 0}, {11, 1}, {0, 12}}},
    {.ranks = 3, .split = {{4, 4, 4}, {1, 4, 7}, {6, 6, 0}}},
    {.ranks = 4, .split = {{3, 3, 3, 3}, {3, 3, 3, 3}, {3, 3, 3, 3}}},
    {.ranks = 4, .split = {{7, 0, 3, 2}, {1, 0, 5, 6}, {9, 0, 3, 0}}},
};
#define N_SPLITS (sizeof(splits) / sizeof(splits[0]))

static inline job job_of(size_t split, const char *config, int steps)
{
    job j = splits[split];

    j.config = config;
    j.steps = steps;
    return j;
}

#endif
