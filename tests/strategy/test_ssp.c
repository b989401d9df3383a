/*
 * test_ssp.c - `ssp`, ranks as threads: with one slow rank no other is ever more than `bound` steps
 * ahead; a missing rank ends the others' wait.
 */
#include "strategy/rank_threads.h"

#include <math.h>
#include <stdatomic.h>

#include "core/clock.h"

#define N         40000 /* several locks */
#define RANKS     3
#define STEPS     30
#define SLOW      2 /* the rank that sleeps in every step */
#define MAX_BOUND 4

typedef struct job {
    const char *config;
    int stays_away; /* the step that SLOW never makes; 0: none */
    uint32_t timeout_ms;
    int bound;
    _Atomic int begun[RANKS]; /* the step a rank has begun */
    _Atomic int made[RANKS];  /* steps a rank has computed */
} job;

typedef struct rank {
    rank_thread base;
    job *job;
    int lead; /* largest lead over the slowest rank when beginning a step */
    uint64_t lack[MAX_BOUND + 1];
    float weight[2]; /* the first and the last, at the end */
} rank;

static int slowest(const job *j)
{
    int least = STEPS;

    for (int i = 0; i < RANKS; i++)
        least = j->made[i] < least ? j->made[i] : least;
    return least;
}

/* Waits, within limits, until the others are as far ahead as allowed, however busy the machine
   is. */
static void fall_behind(const job *j, int step)
{
    const int ahead = step + j->bound < STEPS ? step + j->bound : STEPS - 1;

    const uint64_t start = co_clock_ns();

    for (int i = 0; i < RANKS; i++)
        while (i != SLOW && j->begun[i] < ahead && waits_more(start))
            ;
    co_clock_sleep_us(3000); /* the others have begun; most of them also reach their wait */
}

/* Plain SGD with a gradient of ones, of which each rank has a third. */
static co_status rank_step(rank *r, const strategy_test *t, int step)
{
    const co_strategy_step at = {.step = (uint64_t)step, .local = 1, .global = RANKS};
    const int lead = step - slowest(r->job);

    r->lead = lead > r->lead ? lead : r->lead;
    r->job->begun[r->base.index] = step;
    if (r->base.index == SLOW)
        fall_behind(r->job, step);
    for (size_t e = 0; e < N; e++)
        t->store->grad[e] = 1.0F / RANKS;
    CO_TRY(co_strategy_before_update(t->strategy, &at));
    for (size_t e = 0; e < N; e++)
        t->store->param[e] -= t->store->grad[e];
    r->job->made[r->base.index] = step + 1;
    return co_strategy_after_update(t->strategy, &at);
}

static co_status rank_run(rank_thread *base, strategy_test *t, co_comm *comm)
{
    rank *r = (rank *)base;
    co_strategy_counts counts;

    CO_TRY(co_comm_set_timeout(comm, r->job->timeout_ms));
    CO_TRY(strategy_test_open(t, r->job->config, comm, N, 0));
    CO_TRY(co_strategy_start(t->strategy));
    for (int step = 0; step < STEPS; step++) {
        if (r->base.index == SLOW && r->job->stays_away && step == r->job->stays_away)
            return CO_OK;
        CO_TRY(rank_step(r, t, step));
    }
    CO_TRY(co_strategy_finish(t->strategy));
    counts = co_strategy_report(t->strategy);
    for (size_t i = 0; i < counts.n && i <= MAX_BOUND; i++)
        r->lack[i] = counts.count[i];
    r->weight[0] = t->store->param[0];
    r->weight[1] = t->store->param[N - 1];
    return CO_OK;
}

static void run(rank *ranks, job *j)
{
    for (int i = 0; i < RANKS; i++)
        ranks[i] = (rank){.job = j};
    rank_threads_run(ranks, sizeof(*ranks), RANKS, rank_run);
}

static void ssp_any_bound_limits_lead_of_ranks(void **state)
{
    (void)state;
    for (int bound = 0; bound <= MAX_BOUND; bound++) {
        char config[64];
        job j = {.config = config, .bound = bound, .timeout_ms = WAITS_MS};
        rank ranks[RANKS];
        uint64_t reads = 0;

        snprintf(config, sizeof(config), "strategy: {name: ssp, bound: %d}", bound);
        run(ranks, &j);
        for (int i = 0; i < RANKS; i++) {
            if (ranks[i].base.status != CO_OK)
                fail_msg("bound %d, rank %d: %s", bound, i, ranks[i].base.message);
            assert_true(ranks[i].lead <= bound);
            assert_true(i == SLOW || ranks[i].lead == bound); /* the bound is used */
            for (int w = 0; w < 2; w++) /* steps are added in any order, chunk by chunk */
                assert_true(fabsf(ranks[i].weight[w] + STEPS) < 0.01F);
            assert_memory_equal(ranks[i].lack, ranks[0].lack, sizeof(ranks[i].lack));
        }
        for (int i = 0; i <= bound; i++)
            reads += ranks[0].lack[i];
        assert_int_equal(reads, RANKS * STEPS);
        assert_true(ranks[0].lack[bound] >= STEPS / 2); /* the others wait for the slow rank */
    }
}

static void ssp_missing_rank_is_named(void **state)
{
    job j = {.config = "strategy: {name: ssp, bound: 2}",
             .bound = 2,
             .stays_away = 10,
             .timeout_ms = WAITS_SHORT_MS};
    rank ranks[RANKS];

    (void)state;
    run(ranks, &j);
    for (int i = 0; i < RANKS; i++) {
        if (i == SLOW)
            continue;
        assert_int_equal(ranks[i].base.status, CO_E_TIMEOUT);
        assert_non_null(strstr(ranks[i].base.message, "waiting for a step of rank 2"));
        assert_int_equal(ranks[i].lead, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ssp_any_bound_limits_lead_of_ranks),
        cmocka_unit_test(ssp_missing_rank_is_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
