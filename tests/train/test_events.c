/*
 * test_events.c - step events report the last steps over all ranks; compared with the ranks' own
 * figures, with events of single steps, and with the run's clock.
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

#include <jansson.h>

#include <cohort.h>

#include "folder.h"
#include "shell.h"

#define MAX_EVENTS 64
#define MAX_RANKS  4

/* 100 samples of 64 bytes in batches of 16: 7 steps per epoch, the last with 4 samples. */
#define SAMPLES 100
#define BATCH   16
#define STEPS   7

static const char config[] =
    "model: {name: mlp, hidden: 16}\n"
    "data: {name: synthetic, shape: [1, 8, 8], classes: 10, samples: 100, test_samples: 20}\n"
    "batch: 16\n"
    "epochs: 3\n"
    "optimizer: {name: sgd, lr: 0.1}\n"
    "checkpoint: {every: 5 steps, keep: 100}\n"
    "threads: 1\n";

typedef struct figures {
    int step, steps, epoch;
    bool rank0;
    double loss, accuracy, rate, seconds, read_samples, read_bytes;
    double rank_loss[MAX_RANKS]; /* of an epoch, with `log: ranks`; NaN: null */
} figures;

typedef struct journal {
    figures step[MAX_EVENTS], epoch[MAX_EVENTS];
    int steps, epochs;
} journal;

static double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void read_event(journal *j, const json_t *object, const char *kind)
{
    const bool step = strcmp(kind, "step") == 0;
    figures *f = step ? &j->step[j->steps++] : &j->epoch[j->epochs++];
    const json_t *ranks = json_object_get(object, "ranks");
    const char *over = json_string_value(json_object_get(object, "over"));

    assert_true(j->steps <= MAX_EVENTS && j->epochs <= MAX_EVENTS);
    f->step = (int)number(object, "step");
    f->epoch = (int)number(object, "epoch");
    f->loss = number(object, "train_loss");
    f->accuracy = number(object, "train_accuracy");
    f->seconds = number(object, "train_seconds");
    f->rate = number(object, "samples_per_second");
    for (size_t r = 0; r < json_array_size(ranks); r++)
        f->rank_loss[r] = number(json_array_get(ranks, r), "train_loss");
    if (!step)
        return;
    f->steps = (int)number(object, "steps");
    f->rank0 = over != NULL;
    if (over)
        assert_string_equal(over, "rank 0");
    f->read_samples = number(object, "read_samples_per_second");
    f->read_bytes = number(object, "read_bytes_per_second");
}

static void read_journal(journal *j, const char *name)
{
    char line[8192], path[400];
    FILE *in;

    memset(j, 0, sizeof(*j));
    snprintf(path, sizeof(path), "%s/metrics.jsonl", folder_path(name));
    in = fopen(path, "r");
    assert_non_null(in);
    while (fgets(line, sizeof(line), in)) {
        json_t *object = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
        const char *kind = json_string_value(json_object_get(object, "event"));

        assert_non_null(kind);
        if (strcmp(kind, "step") == 0 || strcmp(kind, "epoch") == 0)
            read_event(j, object, kind);
        json_decref(object);
    }
    fclose(in);
}

static void train(const char *name, int ranks, bool resume, const char *const *set)
{
    const co_train_options options = {.config_text = config,
                                      .set = set,
                                      .ranks = ranks,
                                      .run_dir = folder_path(name),
                                      .quiet = true,
                                      .resume = resume};

    if (co_train(NULL, &options) != CO_OK)
        fail_msg("%s: %s", name, co_error_message());
}

static void clear(void)
{
    assert_int_equal(shell_run("rm -rf %s/*", folder), 0);
}

static void close_to(double a, double b)
{
    if (!(fabs(a - b) <= 2e-8 * (1 + fabs(b)))) /* files have nine digits */
        fail_msg("%.12g and %.12g", a, b);
}

/* An epoch is one step of all 100 samples, divided among ranks as in `part`. */
static void check_ranks(int ranks, const char *extra, const char *partition, const int *part)
{
    const char *const set[] = {extra,       partition,     "batch=100", "epochs=4",
                               "log=ranks", "log_every=1", NULL};
    journal j;

    train("run", ranks, false, set);
    read_journal(&j, "run");
    assert_int_equal(j.steps, 4);
    assert_int_equal(j.epochs, 4);
    for (int e = 0; e < 4; e++) {
        double sum = 0;

        for (int r = 0; r < ranks; r++)
            sum += part[r] ? part[r] * j.epoch[e].rank_loss[r] : 0;
        close_to(j.step[e].loss, sum / SAMPLES);
        close_to(j.step[e].loss, j.epoch[e].loss);
        close_to(j.step[e].accuracy, j.epoch[e].accuracy);
        assert_int_equal(j.step[e].steps, 1);
        assert_false(j.step[e].rank0);
        assert_true(ranks == 1 || j.epoch[e].rank_loss[0] != j.step[e].loss);
    }
    clear();
}

static void events_step_figures_are_means_over_samples(void **state)
{
    static const int one[] = {100}, halves[] = {50, 50}, unequal[] = {70, 30},
                     empty[] = {60, 0, 40}, rounded[] = {34, 33, 33};
    const char *const own = "partition={kind: random, ratios: [0.7, 0.3]}";

    (void)state;
    check_ranks(1, "strategy=sync", "partition=global", one);
    check_ranks(2, "strategy=sync", "partition=global", halves);
    check_ranks(3, "strategy=sync", "partition=global", rounded);
    check_ranks(2, "strategy=sync", own, unequal);
    check_ranks(2, "accumulate=3", own, unequal);
    check_ranks(2, "strategy=threads", own, unequal);
    check_ranks(2, "strategy={name: stale, k: 1}", own, unequal);
    check_ranks(2, "strategy={name: sync, compress: bf16}", own, unequal);
    check_ranks(2, "strategy={name: local, period: 1}", own, unequal);
    check_ranks(3, "strategy=sync", "partition={kind: random, ratios: [0.6, 0, 0.4]}", empty);
}

/* Check events of `every` steps against the events of single steps. */
static void check_windows(const journal *ones, const journal *j, int every)
{
    assert_int_equal(ones->steps, 3 * STEPS);
    assert_int_equal(j->steps, 3 * STEPS / every);
    for (int i = 0; i < j->steps; i++) {
        double loss = 0, right = 0, n = 0;

        for (int s = i * every; s < (i + 1) * every; s++) {
            const int samples = s % STEPS == STEPS - 1 ? SAMPLES % BATCH : BATCH;

            assert_int_equal(ones->step[s].step, s + 1);
            loss += samples * ones->step[s].loss;
            right += samples * ones->step[s].accuracy;
            n += samples;
        }
        assert_int_equal(j->step[i].step, (i + 1) * every);
        assert_int_equal(j->step[i].steps, every);
        assert_false(j->step[i].rank0);
        close_to(j->step[i].loss, loss / n);
        close_to(j->step[i].accuracy, right / n);
    }
}

/* Spans that cross epochs, and the end of a run that is resumed on `later` ranks. */
static void check_spans(int ranks, int later, const char *extra)
{
    const char *const single[] = {extra, "log_every=1", NULL};
    const char *const three[] = {extra, "log_every=3", NULL};
    const char *const cut[] = {extra, "log_every=3", "max_steps=5", NULL};
    journal ones, whole, parts;

    train("ones", ranks, false, single);
    train("whole", ranks, false, three);
    train("parts", ranks, false, cut);
    train("parts", later, true, three);
    read_journal(&ones, "ones");
    read_journal(&whole, "whole");
    read_journal(&parts, "parts");
    check_windows(&ones, &whole, 3);
    for (int e = 0; e < 3; e++)
        close_to(whole.epoch[e].loss, ones.epoch[e].loss);
    if (ranks == later)
        check_windows(&ones, &parts, 3);
    /* steps before the cut are the same on any ranks, those after it up to rounding */
    assert_int_equal(parts.steps, whole.steps);
    assert_int_equal(parts.step[1].steps, 3);
    assert_true(fabs(parts.step[1].loss - whole.step[1].loss) < 1e-5);
    clear();
}

static void events_cover_steps_since_last_one(void **state)
{
    (void)state;
    check_spans(1, 1, "strategy=sync");
    check_spans(2, 2, "strategy=sync");
    check_spans(2, 3, "strategy=sync");
    check_spans(3, 3, "partition={kind: random, ratios: [0.5, 0.3, 0.2]}");
    check_spans(2, 2, "strategy={name: stale, k: 1}");
    check_spans(2, 2, "strategy=threads");
    check_spans(2, 1, "shards=4");
    check_spans(2, 2, "precision=bf16");
    check_spans(2, 2, "accumulate=2");
}

/* With shards every digit is the same on any ranks. */
static void events_with_shards_are_same_on_any_ranks(void **state)
{
    const char *const set[] = {"shards=4", "log_every=3", NULL};
    journal one, three;

    (void)state;
    train("one", 1, false, set);
    train("three", 3, false, set);
    read_journal(&one, "one");
    read_journal(&three, "three");
    assert_int_equal(one.steps, three.steps);
    for (int i = 0; i < one.steps; i++)
        assert_true(one.step[i].loss == three.step[i].loss &&
                    one.step[i].accuracy == three.step[i].accuracy);
    clear();
}

/* Rounds of 7 steps, which is also an epoch; an event is due every 3 steps. */
static void events_between_rounds_are_of_rank_0(void **state)
{
    const char *const set[] = {"strategy={name: local, period: 7}", "log_every=3", "log=ranks",
                               NULL};
    static const int step[] = {3, 6, 7, 9, 12, 14, 15, 18, 21};
    journal j;
    int rounds = 0;

    (void)state;
    train("run", 2, false, set);
    read_journal(&j, "run");
    assert_int_equal(j.steps, sizeof(step) / sizeof(step[0]));
    for (int i = 0; i < j.steps; i++) {
        const bool met = step[i] % 7 == 0;

        assert_int_equal(j.step[i].step, step[i]);
        assert_int_equal(j.step[i].steps, met ? 7 : 3);
        assert_int_equal(j.step[i].rank0, !met);
        if (met)
            close_to(j.step[i].loss, j.epoch[rounds++].loss);
    }
    assert_int_equal(rounds, 3);
    clear();
}

/* With one rank, rank 0's figures are those of all ranks. */
static void events_without_synchronization_are_of_rank_0(void **state)
{
    static const char *const strategies[] = {"strategy=one-shot", "strategy=hogwild",
                                             "strategy=ssp"};

    (void)state;
    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++)
        for (int ranks = 1; ranks <= 2; ranks++) {
            const char *const set[] = {strategies[s], "log_every=7", NULL};
            journal j;

            train("run", ranks, false, set);
            read_journal(&j, "run");
            assert_int_equal(j.steps, 3);
            for (int i = 0; i < 3; i++) {
                assert_int_equal(j.step[i].rank0, ranks == 2);
                if (ranks == 1)
                    close_to(j.step[i].loss, j.epoch[i].loss);
                else
                    assert_true(isfinite(j.step[i].loss) && j.step[i].loss != j.epoch[i].loss);
            }
            clear();
        }
}

/* The spans that the rates refer to add up to the training time, so a slow step is in one of them;
   and the bytes read are those stored. */
static void events_rates_are_of_steps_since_last_one(void **state)
{
    const char *const set[] = {"log_every=3", NULL};
    double seconds = 0, read = 0, trained = 0;
    journal j;

    (void)state;
    train("run", 2, false, set);
    read_journal(&j, "run");
    assert_int_equal(j.steps, 7);
    for (int i = 0; i < j.steps; i++) {
        int samples = 0;

        for (int s = 3 * i; s < 3 * i + 3; s++)
            samples += s % STEPS == STEPS - 1 ? SAMPLES % BATCH : BATCH;
        assert_true(j.step[i].rate > 0);
        trained += samples;
        seconds += samples / j.step[i].rate;
        read += j.step[i].read_samples * samples / j.step[i].rate;
        assert_true(seconds <= j.step[i].seconds * (1 + 1e-6));
        assert_true(i == 0 || seconds >= j.step[i - 1].seconds * (1 - 1e-6));
        assert_true(fabs(j.step[i].read_bytes - 64 * j.step[i].read_samples) <=
                    1e-6 * j.step[i].read_bytes);
        assert_true(read >= trained * (1 - 1e-6)); /* the loader reads ahead */
    }
    clear();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_step_figures_are_means_over_samples),
        cmocka_unit_test(events_cover_steps_since_last_one),
        cmocka_unit_test(events_with_shards_are_same_on_any_ranks),
        cmocka_unit_test(events_between_rounds_are_of_rank_0),
        cmocka_unit_test(events_without_synchronization_are_of_rank_0),
        cmocka_unit_test(events_rates_are_of_steps_since_last_one),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
