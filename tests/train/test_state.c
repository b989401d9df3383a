/*
 * test_state.c - a run that continues from a state makes the steps of the original run.
 *
 * For every reproducible strategy: 5 steps, a state, 6 more steps, another state; then 6 steps from
 * the first state, in new processes, which must give the second state. Batches are uneven, and the
 * state is within an epoch.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cohort.h>

#include "core/arena.h"
#include "core/mem.h"
#include "data/data.h"
#include "state/save_policy.h"
#include "state/state.h"
#include "train/trainer_internal.h"
#include "waits.h"

#define BEFORE 5
#define AFTER  6

static const char config[] =
    "model: {name: mnist-net, batch_norm: true}\n"
    "data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 37}\n"
    "batch: 12\n"
    "epochs: 100\n"
    "optimizer: {name: adam, lr: 0.01}\n"
    "schedule: {name: cosine, unit: step}\n"
    "evaluate: false\n"
    "threads: 1\n";

typedef struct states_job {
    co_job job;
    co_state *at[3]; /* after BEFORE steps, after AFTER more, and again */
    const co_state *from;
    co_state *to;
    int before; /* steps before AFTER more */
} states_job;

static co_status run_rank(co_comm *comm, void *arg)
{
    states_job *s = arg;
    co_job job = s->job;
    trainer t = {.comm = comm, .job = &job};
    co_status st;

    job.state = s->from;
    if (job.replica)
        job.model = job.replica[co_comm_rank(comm)];
    st = trainer_open(&t);
    for (int i = 0; i < s->before + AFTER && st == CO_OK; i++) {
        if (s->before && i == s->before)
            st = co_state_capture(s->at[0], &t.source);
        if (st == CO_OK && t.epoch_step == t.info.steps_per_epoch)
            trainer_next_epoch(&t);
        if (st == CO_OK)
            st = trainer_step(&t);
    }
    if (st == CO_OK)
        st = co_state_capture(s->to, &t.source);
    if (st == CO_OK)
        st = co_distributed_finish(t.distributed);
    trainer_close(&t);
    return st;
}

static void open_job(states_job *s, const char *strategy, int ranks, bool threads)
{
    const char *const set[] = {strategy, strstr(strategy, "sync") ? "ema={every: 2}" : "ema=~",
                               NULL};
    const co_train_options options = {.config_text = config, .set = set, .ranks = ranks};
    co_spec *spec = &s->job.spec;
    const co_shape sample = {3, {1, 28, 28}};
    co_state_shape shape;

    memset(s, 0, sizeof(*s));
    s->job.quiet = true;
    assert_int_equal(co_spec_load(spec, &options), CO_OK);
    assert_int_equal(co_dataset_open_value(&s->job.train, spec->data, spec->config, CO_SPLIT_TRAIN),
                     CO_OK);
    assert_int_equal(co_spec_create_model(&s->job.model, spec, &sample, 10), CO_OK);
    assert_int_equal(co_model_draw(s->job.model), CO_OK);
    if (threads) {
        s->job.replica = co_calloc((size_t)ranks, sizeof(co_model *));
        for (int r = 0; r < ranks; r++) {
            assert_int_equal(co_spec_create_model(&s->job.replica[r], spec, &sample, 10), CO_OK);
            assert_int_equal(co_model_draw(s->job.replica[r]), CO_OK);
        }
    }
    assert_int_equal(co_job_state_shape(&shape, &s->job, ranks + 1), CO_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(co_state_create(&s->at[i], &shape, true), CO_OK);
}

static void close_job(states_job *s, int ranks)
{
    for (int i = 0; i < 3; i++)
        co_state_destroy(s->at[i]);
    for (int r = 0; s->job.replica && r < ranks; r++)
        co_model_destroy(s->job.replica[r]);
    co_free(s->job.replica);
    co_model_destroy(s->job.model);
    co_dataset_destroy(s->job.train);
    co_spec_unload(&s->job.spec);
}

static co_status run(states_job *s, const co_state *from, co_state *to, int before, int ranks)
{
    const co_launch_options options = {.ranks = ranks,
                                       .timeout_ms = WAITS_MS,
                                       .fork_one = true,
                                       .threads = s->job.replica != NULL};

    s->from = from;
    s->to = to;
    s->before = before;
    return co_launch(&options, run_rank, s);
}

/* Without what depends on the clock: time of the last event, and how far the loader is ahead. */
static co_rank_point timeless(const co_rank_point *rank)
{
    co_rank_point out = *rank;

    out.recent.all.begin_seconds = out.recent.last.begin_seconds = 0;
    out.recent.all.reads = out.recent.last.reads = (co_loader_reads){0, 0};
    return out;
}

static void assert_same(const co_state *a, const co_state *b)
{
    assert_int_equal(a->point.step, b->point.step);
    assert_int_equal(a->point.epoch, b->point.epoch);
    assert_int_equal(a->point.epoch_step, b->point.epoch_step);
    assert_int_equal(a->point.samples, b->point.samples);
    assert_int_equal(a->point.epoch_samples, b->point.epoch_samples);
    assert_int_equal(a->ranks, b->ranks);
    for (int r = 0; r < a->ranks; r++) {
        const co_rank_point x = timeless(&a->rank[r]), y = timeless(&b->rank[r]);

        assert_memory_equal(&x, &y, sizeof(x));
    }
    for (int i = 0; i < a->shape.n_array; i++) {
        const co_state_array *x = &a->shape.array[i], *y = &b->shape.array[i];
        const size_t n = (size_t)co_state_copies(a, i) * x->n;

        if (n && memcmp(x->data, y->data, n * sizeof(float)) != 0)
            fail_msg("array %s differs", x->name);
    }
}

static bool differ(const co_state *a, const co_state *b, int array)
{
    return memcmp(a->shape.array[array].data, b->shape.array[array].data,
                  a->shape.array[array].n * sizeof(float)) != 0;
}

static void check(const char *strategy, int ranks, bool threads)
{
    states_job s;

    open_job(&s, strategy, ranks, threads);
    if (run(&s, NULL, s.at[1], BEFORE, ranks) != CO_OK)
        fail_msg("%s", co_error_message());
    assert_int_equal(s.at[0]->point.step, BEFORE);
    assert_int_equal(s.at[0]->point.epoch, 1);
    assert_int_equal(s.at[0]->point.epoch_step, 1);
    assert_int_equal(s.at[1]->point.step, BEFORE + AFTER);
    assert_true(differ(s.at[0], s.at[1], CO_STATE_PARAM));
    assert_true(differ(s.at[0], s.at[1], CO_STATE_BUFFER));
    assert_true(differ(s.at[0], s.at[1], CO_STATE_MORE));
    if (run(&s, s.at[0], s.at[2], 0, ranks) != CO_OK)
        fail_msg("%s", co_error_message());
    assert_same(s.at[1], s.at[2]);
    close_job(&s, ranks);
}

static void state_restored_takes_same_steps(void **test)
{
    (void)test;
    check("strategy=sync", 1, false);
    check("strategy=sync", 2, false);
    check("strategy={name: stale, k: 3}", 2, false);
    check("strategy={name: local, period: 4}", 2, false);
    check("strategy={name: local, period: 4, start: 2, outer: {momentum: 0.5}}", 2, false);
    check("strategy={name: one-shot, init: per-rank}", 2, false);
    check("strategy=threads", 2, true);
    check("strategy={name: sync, compress: {name: topk, momentum: 0.5}}", 2, false);
    check("strategy={name: sync, compress: powersgd}", 2, false);
}

/* Strategies that are not reproducible continue, too. */
static void state_of_racy_strategy_continues(void **test)
{
    static const char *const strategies[] = {"strategy=hogwild", "strategy={name: ssp, bound: 2}"};

    (void)test;
    for (int i = 0; i < 2; i++) {
        states_job s;

        open_job(&s, strategies[i], 2, false);
        if (run(&s, NULL, s.at[1], BEFORE, 2) != CO_OK || run(&s, s.at[0], s.at[2], 0, 2) != CO_OK)
            fail_msg("%s", co_error_message());
        assert_int_equal(s.at[2]->point.step, BEFORE + AFTER);
        assert_true(differ(s.at[0], s.at[2], CO_STATE_PARAM));
        close_job(&s, 2);
    }
}

/* Equal weights continue on any number of ranks, different ones only on the same number. */
static void state_on_other_ranks_continues_or_is_refused(void **test)
{
    states_job s;

    (void)test;
    open_job(&s, "strategy=sync", 2, false);
    assert_int_equal(run(&s, NULL, s.at[1], BEFORE, 2), CO_OK);
    assert_int_equal(run(&s, s.at[0], s.at[2], 0, 3), CO_OK);
    assert_int_equal(s.at[2]->ranks, 3);
    assert_int_equal(s.at[2]->point.step, BEFORE + AFTER);
    assert_int_equal(run(&s, s.at[0], s.at[2], 0, 1), CO_OK);
    close_job(&s, 2);

    open_job(&s, "strategy={name: local, period: 4}", 2, false);
    assert_int_equal(run(&s, NULL, s.at[1], BEFORE, 2), CO_OK);
    assert_int_equal(run(&s, s.at[0], s.at[2], 0, 3), CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), "2 ranks had weights of their own at step 5"));
    close_job(&s, 2);
}

static double sum_of_copies(double *size, const co_state *state, int array, size_t e)
{
    const co_state_array *a = &state->shape.array[array];
    double sum = 0;

    for (int c = 0; c < co_state_copies(state, array); c++) {
        sum += (double)a->data[(size_t)c * a->n + e];
        *size += fabs((double)a->data[(size_t)c * a->n + e]);
    }
    return sum;
}

/* What ranks have not sent yet is neither lost nor doubled: the sum over ranks is kept. */
static void state_on_other_ranks_keeps_sum_of_residuals(void **test)
{
    static const int ranks[] = {1, 2, 3};

    (void)test;
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        double before = 0, after = 0;
        states_job s;
        int last;

        open_job(&s, "strategy={name: sync, compress: topk}", 2, false);
        last = s.at[0]->shape.n_array - 1;
        assert_string_equal(s.at[0]->shape.array[last].name, "sync.0");
        assert_int_equal(run(&s, NULL, s.at[1], BEFORE, 2), CO_OK);
        /* restore, and capture again without a step */
        assert_int_equal(run(&s, s.at[0], s.at[2], -AFTER, ranks[i]), CO_OK);
        assert_int_equal(s.at[2]->ranks, ranks[i]);
        for (size_t e = 0; e < s.at[0]->shape.array[last].n; e++) {
            const double a = sum_of_copies(&before, s.at[0], last, e);
            const double b = sum_of_copies(&after, s.at[2], last, e);

            assert_true(fabs(a - b) <= 1e-6 * fabs(a));
        }
        assert_true(before > 0.01 && after > 0.01);
        if (ranks[i] == 2)
            assert_true(before == after);
        assert_true(co_state_is_common(s.at[2], last) == (ranks[i] != 2));
        close_job(&s, 2);
    }
}

static void save_policy_units_are_parsed(void **state)
{
    static const struct {
        const char *text;
        co_saver_unit unit;
        uint64_t every;
    } cases[] = {
        {"epoch", CO_SAVER_EPOCHS, 1},      {"2 epochs", CO_SAVER_EPOCHS, 2},
        {"500 steps", CO_SAVER_STEPS, 500}, {"90 seconds", CO_SAVER_SECONDS, 90},
        {"1 minute", CO_SAVER_SECONDS, 60}, {"10 minutes", CO_SAVER_SECONDS, 600},
        {"1 hour", CO_SAVER_SECONDS, 3600}, {"3 hours", CO_SAVER_SECONDS, 10800},
    };
    static const char *const bad[] = {"0 steps",  "steps 5", "5",
                                      "-1 steps", "2 days",  "1000000000001 steps"};
    co_arena *arena = co_arena_create();
    co_saver_policy policy;

    (void)state;
    assert_non_null(arena);
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        co_value value = {.kind = CO_VALUE_SCALAR, .text = cases[c].text};

        assert_int_equal(co_saver_policy_read(&policy, &value, arena), CO_OK);
        assert_int_equal(policy.unit, cases[c].unit);
        assert_int_equal(policy.every, cases[c].every);
    }
    for (size_t c = 0; c < sizeof(bad) / sizeof(bad[0]); c++) {
        co_value value = {.kind = CO_VALUE_SCALAR, .text = bad[c]};

        assert_int_equal(co_saver_policy_read(&policy, &value, arena), CO_E_USAGE);
    }
    co_arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_restored_takes_same_steps),
        cmocka_unit_test(state_of_racy_strategy_continues),
        cmocka_unit_test(state_on_other_ranks_continues_or_is_refused),
        cmocka_unit_test(state_on_other_ranks_keeps_sum_of_residuals),
        cmocka_unit_test(save_policy_units_are_parsed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
