/*
 * test_sync.c - `sync` over shared memory, ranks as threads: common initial weights, the exact sum
 * on every rank for any order of ready ranges, ranks without samples, a rank that gives up.
 */
#include "strategy/rank_threads.h"

#include <stdlib.h>

#define N         1008
#define N_BUFFER  32
#define STEPS     5
#define MAX_RANKS 4
#define CONFIG    "strategy: {name: sync, bucket_mib: 0.0005}" /* full: 128 elements */

typedef struct job {
    const char *config;
    int ranks;
    bool gives_up; /* rank 1 leaves in the middle of a step */
} job;

typedef struct rank {
    rank_thread base;
    const job *job;
    const char *wrong; /* the failed check; NULL: none */
} rank;

/* Small whole numbers: every sum is exact. Rank 2 has no samples in odd steps. */
static bool has_samples(int index, int step)
{
    return index != 2 || step % 2 == 0;
}

static float gradient(int index, int step, size_t e)
{
    return has_samples(index, step)
               ? (float)((int)(e * 7 + (size_t)step * 3) % 101 - 50) * (float)(index + 1)
               : 0;
}

/* Reports the gradient ready piece by piece, as backward does; elements not ready yet hold
   garbage. */
static co_status announce(const strategy_test *t, int index, int step)
{
    float *grad = t->store->grad;
    size_t begin = 0;

    for (size_t e = 0; e < N; e++)
        grad[e] = has_samples(index, step) ? -1e9F : 0;
    if (!has_samples(index, step))
        return CO_OK;
    /* Each rank in other pieces; rank 3 does not report the last. */
    for (size_t i = 1; begin < N; i++) {
        size_t end = begin + (size_t)(index + 1) * 16 * i;

        if (end > N)
            end = N;
        for (size_t e = begin; e < end; e++)
            grad[e] = gradient(index, step, e);
        if (index == 3 && end == N)
            return CO_OK;
        CO_TRY(co_strategy_grad_ready(t->strategy, begin, end));
        begin = end;
    }
    return CO_OK;
}

static bool sums_are_right(const rank *r, const float *grad, int step)
{
    for (size_t e = 0; e < N; e++) {
        float sum = 0;

        for (int i = 0; i < r->job->ranks; i++)
            sum += gradient(i, step, e);
        if (strstr(r->job->config, "mean"))
            sum /= (float)r->job->ranks;
        if (grad[e] != sum)
            return false;
    }
    return true;
}

static co_status rank_steps(rank *r, strategy_test *t)
{
    for (int step = 0; step < STEPS; step++) {
        CO_TRY(announce(t, r->base.index, step));
        if (r->job->gives_up && r->base.index == 1 && step == 2)
            return co_fail(CO_E_FAILED, "out of patience");
        CO_TRY(co_strategy_before_update(t->strategy, &(co_strategy_step){.step = (uint64_t)step}));
        if (!sums_are_right(r, t->store->grad, step))
            r->wrong = "the sum of the gradients";
        CO_TRY(co_strategy_after_update(t->strategy, &(co_strategy_step){.step = (uint64_t)step}));
    }
    return co_strategy_finish(t->strategy);
}

static co_status rank_run(rank_thread *base, strategy_test *t, co_comm *comm)
{
    rank *r = (rank *)base;
    CO_TRY(co_comm_set_timeout(comm, WAITS_MS));
    CO_TRY(strategy_test_open(t, r->job->config, comm, N, N_BUFFER));
    for (size_t e = 0; e < N; e++)
        t->store->param[e] = (float)(r->base.index + 1) * (float)e;
    for (size_t e = 0; e < N_BUFFER; e++)
        t->store->buffer[e] = (float)(r->base.index + 5);
    CO_TRY(co_strategy_start(t->strategy));
    for (size_t e = 0; e < N; e++)
        if (t->store->param[e] != (float)e)
            r->wrong = "the weights of rank 0";
    for (size_t e = 0; e < N_BUFFER; e++)
        if (t->store->buffer[e] != 5)
            r->wrong = "the buffers of rank 0";
    return rank_steps(r, t);
}

static void run(rank *ranks, const job *j)
{
    for (int i = 0; i < j->ranks; i++)
        ranks[i] = (rank){.job = j};
    rank_threads_run(ranks, sizeof(*ranks), j->ranks, rank_run);
}

static void sync_every_rank_has_exact_sum(void **state)
{
    static const char *const configs[] = {
        CONFIG,
        "strategy: sync", /* one bucket */
        "",
        "strategy: {name: sync, bucket_mib: 0.0001}",
    };

    (void)state;
    for (size_t c = 0; c < sizeof(configs) / sizeof(configs[0]); c++)
        for (int n = 1; n <= MAX_RANKS; n++) {
            const job j = {.config = configs[c], .ranks = n};
            rank ranks[MAX_RANKS];

            run(ranks, &j);
            for (int i = 0; i < n; i++) {
                if (ranks[i].base.status != CO_OK)
                    fail_msg("%d ranks, rank %d: %s", n, i, ranks[i].base.message);
                if (ranks[i].wrong)
                    fail_msg("%d ranks, rank %d: not %s", n, i, ranks[i].wrong);
            }
        }
}

static void sync_mean_divides_by_ranks(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_RANKS; n *= 2) {
        const job j = {.config = "strategy: {name: sync, reduction: mean}", .ranks = n};
        rank ranks[MAX_RANKS];

        run(ranks, &j);
        for (int i = 0; i < n; i++) {
            assert_int_equal(ranks[i].base.status, CO_OK);
            assert_null(ranks[i].wrong);
        }
    }
}

/* The others fail at once, with the cause, instead of after their timeout. */
static void sync_failed_rank_ends_the_others(void **state)
{
    const job j = {.config = CONFIG, .ranks = 3, .gives_up = true};
    rank ranks[MAX_RANKS];

    (void)state;
    run(ranks, &j);
    assert_int_equal(ranks[1].base.status, CO_E_FAILED);
    for (int i = 0; i < 3; i += 2) {
        assert_int_equal(ranks[i].base.status, CO_E_PEER);
        assert_non_null(strstr(ranks[i].base.message, "rank 1"));
        assert_non_null(strstr(ranks[i].base.message, "out of patience"));
        assert_null(ranks[i].wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sync_every_rank_has_exact_sum),
        cmocka_unit_test(sync_mean_divides_by_ranks),
        cmocka_unit_test(sync_failed_rank_ends_the_others),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
