/* test_stop.c - runs that end by `stop_at`, and epochs without evaluation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <jansson.h>

#include <cohort.h>

#include "folder.h"
#include "state/best.h"
#include "waits.h"

#define EPOCHS 8

/* Converges within a few epochs of 4 steps. */
static const char config[] =
    "model: {name: mlp, hidden: 32}\n"
    "data: {name: synthetic, shape: [1, 8, 8], classes: 10, samples: 200, test_samples: 100}\n"
    "batch: 50\n"
    "epochs: 8\n"
    "optimizer: {name: sgd, lr: 0.5}\n"
    "threads: 1\n";

/* Test accuracies and losses by epoch; -1: not evaluated. */
typedef struct curve {
    double accuracy[EPOCHS], loss[EPOCHS];
    int epochs;
    co_train_summary summary;
    bool reached; /* recorded in summary.json */
    char stopped_by[16];
    int best_epoch; /* -1: not recorded */
    double best_accuracy;
} curve;

static void read_curve(curve *c, const char *run_dir)
{
    char path[320], line[4096];
    json_t *summary;
    FILE *in;

    snprintf(path, sizeof(path), "%s/metrics.jsonl", run_dir);
    in = fopen(path, "r");
    assert_non_null(in);
    while (fgets(line, sizeof(line), in)) {
        json_t *object = json_loads(line, 0, NULL);
        const json_t *accuracy = json_object_get(object, "test_accuracy");

        assert_non_null(object);
        if (strcmp(json_string_value(json_object_get(object, "event")), "epoch") == 0) {
            assert_true(c->epochs < EPOCHS);
            c->loss[c->epochs] = json_number_value(json_object_get(object, "test_loss"));
            c->accuracy[c->epochs++] = accuracy ? json_real_value(accuracy) : -1;
        }
        json_decref(object);
    }
    fclose(in);
    snprintf(path, sizeof(path), "%s/summary.json", run_dir);
    summary = json_load_file(path, 0, NULL);
    assert_non_null(summary);
    c->reached = json_number_value(json_object_get(summary, "reached_seconds")) > 0;
    if (json_object_get(summary, "stopped_by"))
        snprintf(c->stopped_by, sizeof(c->stopped_by), "%s",
                 json_string_value(json_object_get(summary, "stopped_by")));
    c->best_epoch = json_object_get(summary, "best_epoch")
                        ? (int)json_integer_value(json_object_get(summary, "best_epoch"))
                        : -1;
    c->best_accuracy = json_number_value(json_object_get(summary, "best_test_accuracy"));
    json_decref(summary);
}

static int runs;

/* In a new directory; or resume the last one. */
static curve train_on(int ranks, const char *const *set, bool resume)
{
    char run_dir[256];
    const co_train_options options = {.config_text = config,
                                      .set = set,
                                      .ranks = ranks,
                                      .run_dir = run_dir,
                                      .resume = resume,
                                      .quiet = true};
    curve c = {.epochs = 0};

    runs += !resume;
    snprintf(run_dir, sizeof(run_dir), "%s/%d", folder, runs);
    if (co_train(&c.summary, &options) != CO_OK)
        fail_msg("%s", co_error_message());
    read_curve(&c, run_dir);
    return c;
}

static curve train(int ranks, const char *const *set)
{
    return train_on(ranks, set, false);
}

static void stop_at_reached_metric_ends_run(void **state)
{
    static const char *const strategies[] = {"strategy=sync", "strategy=threads",
                                             "strategy={name: local, period: 2}"};

    (void)state;
    for (size_t s = 0; s < sizeof(strategies) / sizeof(strategies[0]); s++)
        for (int ranks = 1; ranks <= 3; ranks += 2) {
            const char *const whole_set[] = {strategies[s], NULL};
            const curve whole = train(ranks, whole_set);
            char stop_at[64];
            const char *const set[] = {strategies[s], stop_at,
                                       "checkpoint={every: 100 epochs, best: false}", NULL};
            char checkpoint[1200];
            int first = 0;
            curve stopped;

            /* reached in the third epoch of the whole run at the latest */
            while (whole.accuracy[first] < whole.accuracy[2])
                first++;
            assert_true(whole.accuracy[first] < 1 && whole.epochs == EPOCHS && !whole.reached);
            snprintf(stop_at, sizeof(stop_at), "stop_at={accuracy: %.17g}", whole.accuracy[2]);
            stopped = train(ranks, set);
            assert_int_equal(stopped.epochs, first + 1);
            assert_true(stopped.reached);
            assert_int_equal(stopped.summary.steps, 4 * (first + 1));
            assert_true(stopped.accuracy[first] == whole.accuracy[first]);
            /* its last step makes a checkpoint, whether due or not */
            snprintf(checkpoint, sizeof(checkpoint), "%s/checkpoints/step-%d/manifest.json",
                     stopped.summary.run_dir, 4 * (first + 1));
            assert_int_equal(access(checkpoint, F_OK), 0);
        }
}

static void stop_at_unreached_metric_changes_nothing(void **state)
{
    const char *const set[] = {"stop_at={accuracy: 1}", "optimizer.lr=0.0001", NULL};
    const curve c = train(2, set);

    (void)state;
    assert_int_equal(c.epochs, EPOCHS);
    assert_false(c.reached);
}

/* Epochs of a run with this patience, whose complete curve is `c`. */
static int epochs_with(const curve *c, int patience, bool by_loss)
{
    int best = 0, e = 1;

    for (; e < c->epochs && e - best <= patience; e++)
        if (by_loss ? c->loss[e] < c->loss[best] : c->accuracy[e] > c->accuracy[best])
            best = e;
    return e - best > patience ? e : c->epochs;
}

static int best_of(const curve *c)
{
    int best = 0;

    for (int e = 1; e < c->epochs; e++)
        if (c->accuracy[e] > c->accuracy[best])
            best = e;
    return best;
}

static void ends_by(const curve *c, int epochs)
{
    assert_int_equal(c->epochs, epochs);
    assert_string_equal(c->stopped_by, epochs < EPOCHS ? "patience" : "");
    assert_false(c->reached);
    assert_int_equal(c->best_epoch, best_of(c));
    assert_true(c->best_accuracy == c->accuracy[best_of(c)]);
}

/* On any number of ranks; also if the run is stopped within an epoch and resumed. */
static void stop_patience_counts_evaluations(void **state)
{
    static const char *const metric[] = {"accuracy", "loss"};
    const char *const rough = "optimizer.lr=4"; /* makes the curve uneven */
    int early = 0;

    (void)state;
    for (int patience = 1; patience <= 3; patience++)
        for (int by_loss = 0; by_loss <= 1; by_loss++) {
            const int ranks = patience;
            const char *const whole_set[] = {rough, NULL};
            const curve whole = train(ranks, whole_set);
            const int epochs = epochs_with(&whole, patience, by_loss);
            char stop_at[64], max_steps[32];
            const char *const set[] = {rough, stop_at, NULL};
            const char *const cut[] = {rough, stop_at, max_steps, NULL};
            curve c;

            snprintf(stop_at, sizeof(stop_at), "stop_at={patience: %d, metric: %s}", patience,
                     metric[by_loss]);
            snprintf(max_steps, sizeof(max_steps), "max_steps=%d", 4 * epochs - 2);
            c = train(ranks, set);
            ends_by(&c, epochs);
            (void)train(ranks, cut);
            c = train_on(ranks, set, true);
            ends_by(&c, epochs);
            /* resuming a complete run changes nothing; with more patience it continues */
            c = train_on(ranks, set, true);
            ends_by(&c, epochs);
            c = train_on(ranks, whole_set, true);
            assert_int_equal(c.epochs, EPOCHS);
            early += epochs < EPOCHS;
        }
    assert_true(early > 0);
}

static void evaluate_every_skips_epochs_between(void **state)
{
    const char *const all[] = {"epochs=7", NULL}, *const some[] = {"epochs=7", "evaluate_every=3",
                                                                   NULL};
    const curve a = train(2, all), b = train(2, some);

    (void)state;
    assert_int_equal(b.epochs, 7);
    for (int e = 0; e < 7; e++)
        assert_true(b.accuracy[e] == (e == 2 || e == 5 || e == 6 ? a.accuracy[e] : -1));
    assert_true(a.summary.test_accuracy == b.summary.test_accuracy);
    assert_string_equal(a.summary.weights_sha256, b.summary.weights_sha256);
}

static void stop_bad_config_is_refused(void **state)
{
    static const struct {
        const char *set[3], *message;
    } cases[] = {
        {{"stop_at={accuracy: 75}", NULL, NULL},
         "accuracy is a fraction above 0 and up to 1, such "
         "as 0.75 for 75%; got 75"},
        {{"stop_at={accuracy: 0}", NULL, NULL}, "give it accuracy, a fraction above 0"},
        {{"stop_at={accuracy: .nan}", NULL, NULL}, "accuracy"},
        {{"stop_at={}", NULL, NULL},
         "give it accuracy, a fraction above 0 such as 0.75, or patience"},
        {{"stop_at={patience: -1}", NULL, NULL}, "patience"},
        {{"stop_at={patience: 2, metric: top5}", NULL, NULL}, "unknown metric 'top5'"},
        {{"stop_at={patience: 2, metric: accuracy_top5}", "data.classes=4", NULL},
         "accuracy_top5: such a network has no accuracy_top5"},
        {{"stop_at={accuracy_top5: 0.9}", "data.classes=5", NULL}, "has no accuracy_top5"},
        {{"checkpoint={best: accuracy_top5}", "data.classes=5", NULL}, "has no accuracy_top5"},
        {{"stop_at={f1_macro: 0.5}", NULL, NULL},
         "stop_at: f1_macro is not measured; name it in `metrics: [f1_macro]` too"},
        {{"checkpoint={best: f1_macro}", NULL, NULL}, "checkpoint.best: f1_macro is not measured"},
        {{"checkpoint={best: maybe}", NULL, NULL}, "unknown metric 'maybe'"},
        {{"stop_at={metric: loss}", NULL, NULL}, "give it accuracy"},
        {{"stop_at={loss: -1}", NULL, NULL}, "'loss'"},
        {{"stop_at={los: 1}", NULL, NULL}, "unknown key 'los'"},
        {{"stop_at={accuracy: 0.5}", "evaluate=false", NULL}, "nothing is measured"},
        {{"checkpoint={best: loss}", "evaluate=false", NULL}, "best: nothing is measured"},
        {{"evaluate_every=0", NULL, NULL}, "evaluate_every"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        const co_train_options options = {
            .config_text = config, .set = cases[c].set, .ranks = 1, .quiet = true};

        assert_int_equal(co_train(NULL, &options), CO_E_USAGE);
        if (!strstr(co_error_message(), cases[c].message))
            fail_msg("%s", co_error_message());
    }
}

/* However long the program has done other things. */
static void stop_max_seconds_counts_from_the_call(void **state)
{
    static const char *const set[] = {"max_seconds=2", NULL};
    const uint64_t start = co_clock_ns();

    (void)state;
    while (co_clock_seconds(co_clock_process_start_ns(), co_clock_ns()) < 2.5)
        assert_true(waits_more(start));
    assert_int_equal(train(1, set).epochs, EPOCHS);
}

/* A state from a version that knew only accuracy and loss. */
static void best_of_earlier_version_is_continued(void **state)
{
    const co_watched accuracy = {&co_metric_accuracy, -1}, loss = {&co_metric_loss, -1};
    const co_stop_at by_accuracy = {.patience = 3, .awaited = accuracy};
    const co_stop_at by_loss = {.patience = 3, .awaited = loss};
    const co_event worse = {.step = 9, .has_test = true, .test_accuracy = 0.8, .test_loss = 0.25};
    const co_best old = {.figures = {.step = 5, .test_accuracy = 0.9, .test_loss = 0.3},
                         .least_loss = 0.2,
                         .waited = 2,
                         .measured = true};
    co_best best = old;

    (void)state;
    co_best_resume(&best, &by_accuracy);
    assert_false(co_best_take(&best, &by_accuracy, &worse));
    assert_int_equal(best.waited, 3);
    assert_int_equal(best.figures.step, 5);
    assert_int_equal(co_best_find_stop(NULL, &best, &by_accuracy, &worse), CO_STOP_PATIENCE);
    best = old;
    co_best_resume(&best, &by_loss);
    assert_true(best.awaited == 0.2);
    assert_false(co_best_take(&best, &by_loss, &worse));
    assert_int_equal(best.waited, 3);
}

/* The best by one metric does not count for another. */
static void best_by_another_metric_starts_anew(void **state)
{
    const co_watched accuracy = {&co_metric_accuracy, -1}, loss = {&co_metric_loss, -1};
    const co_stop_at by_accuracy = {.awaited = accuracy}, by_loss = {.awaited = loss, .best = loss};
    const co_event first = {.step = 5, .has_test = true, .test_accuracy = 0.9, .test_loss = 0.2};
    const co_event then = {.step = 9, .has_test = true, .test_accuracy = 0.8, .test_loss = 0.25};
    co_best best = co_best_none();

    (void)state;
    assert_true(co_best_take(&best, &by_accuracy, &first));
    co_best_resume(&best, &by_accuracy);
    assert_false(co_best_take(&best, &by_accuracy, &then));
    co_best_resume(&best, &by_loss);
    assert_true(co_best_take(&best, &by_loss, &then));
    assert_true(best.figures.step == 9 && best.value == 0.25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stop_at_reached_metric_ends_run),
        cmocka_unit_test(stop_at_unreached_metric_changes_nothing),
        cmocka_unit_test(stop_patience_counts_evaluations),
        cmocka_unit_test(evaluate_every_skips_epochs_between),
        cmocka_unit_test(stop_bad_config_is_refused),
        cmocka_unit_test(stop_max_seconds_counts_from_the_call),
        cmocka_unit_test(best_of_earlier_version_is_continued),
        cmocka_unit_test(best_by_another_metric_starts_anew),
    };

    return cmocka_run_group_tests(tests, folder_make, folder_remove);
}
