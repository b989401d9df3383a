/* test_partition.c - partitions: shown, plotted, used for training, rejected. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/fixtures.h"
#include "cli/program.h"
#include "shell.h"

#define PARTITION_ONCE "An epoch takes 256 samples in 8 steps: each of the set exactly once.\n"

/* `cohort data partition good.yaml -n RANKS --set partition=PARTITION [OPTION] [VALUE]` */
static const program_result *partition_show(const char *ranks, const char *partition,
                                            const char *option, const char *value)
{
    char set[256];
    const char *args[] = {"data",  "partition", "good.yaml", "-n",  ranks,
                          "--set", set,         option,      value, NULL};

    snprintf(set, sizeof(set), "partition=%s", partition);
    program_write_text("good.yaml", FIXTURES_CONFIG);
    return program_run(args, NULL);
}

static void partition_every_kind_takes_each_sample_once(void **state)
{
    static const struct {
        const char *ranks, *partition, *words;
    } cases[] = {
        {"1", "global", PARTITION_ONCE},
        {"3", "global", PARTITION_ONCE},
        {"2", "{kind: random, ratios: [1, 0]}",
         "    1          0    0.0%            0           8\n"},
        {"2", "{kind: random, ratios: [0.97, 0.03]}", PARTITION_ONCE},
        {"3", "{kind: contiguous, ratios: [0.6, 0.3, 0.1]}", PARTITION_ONCE},
        {"3", "interleaved", PARTITION_ONCE},
        {"4", "{kind: interleaved, pad: true}", PARTITION_ONCE},
        {"2", "{kind: labels, labels: [[0, 1], [2, 3]]}",
         "    0         64        64         0  0"},
        {"7", "dirichlet", PARTITION_ONCE},
        {"2", "{kind: contiguous, ratios: [0.75, 0.25], batching: equal}",
         "256 samples in 12 steps: each of the set exactly once.\n"},
        {"64", "interleaved", "(--csv prints each rank's numbers)"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const program_result *r = partition_show(cases[i].ranks, cases[i].partition, NULL, NULL);

        print_message("  %s\n", cases[i].partition);
        program_assert_success(r);
        if (!strstr(r->out, cases[i].words))
            fail_msg("'%s' is not in\n%s", cases[i].words, r->out);
    }
}

static void partition_repeated_samples_are_named(void **state)
{
    const program_result *r;

    (void)state;
    r = partition_show("3", "{kind: interleaved, pad: true}", NULL, NULL);
    program_assert_success(r);
    assert_non_null(strstr(r->out, "takes 258 samples in 9 steps. Of the 256 of the set:\n"
                                   "  254 exactly once\n  2 more than once (the set is padded"));
    assert_non_null(strstr(r->out, "ranks): 0 1\n"));
    program_write_text("parts.txt", "0-99\n\n103-255\n");
    r = partition_show("3", "{kind: file, path: parts.txt}", NULL, NULL);
    program_assert_success(r);
    assert_non_null(strstr(r->out, "takes 253 samples in 8 steps. Of the 256 of the set:\n"
                                   "  253 exactly once\n  3 not taken (the file does not name "
                                   "them): 100 101 102\n"));
}

static void partition_csv_has_numbers(void **state)
{
    const program_result *r =
        partition_show("2", "{kind: labels, labels: [[0, 1], [1, 2, 3]]}", "--csv", NULL);

    (void)state;
    program_assert_success(r);
    assert_string_equal(r->out, "rank,label,samples\n0,0,64\n0,1,32\n0,2,0\n0,3,0\n"
                                "1,0,0\n1,1,32\n1,2,64\n1,3,64\n");
}

static void partition_samples_without_labels_are_not_counted_by_label(void **state)
{
#define WITHOUT_LABELS                                                                             \
    "data partition good.yaml -n 2 --set 'data={name: synthetic-tokens, samples: 256}'"
    const program_result *r;

    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    r = program_line(WITHOUT_LABELS);
    program_assert_success(r);
    assert_non_null(strstr(r->out, "256 samples, without labels\n"));
    assert_null(strstr(r->out, "\nlabel "));
    assert_non_null(strstr(r->out, PARTITION_ONCE));
    r = program_line(WITHOUT_LABELS " --csv");
    program_assert_success(r);
    assert_string_equal(r->out, "rank,label,samples\n0,,128\n1,,128\n");
#undef WITHOUT_LABELS
}

static void partition_svg_is_drawn_or_refused(void **state)
{
    const bool gnuplot = shell_has("gnuplot");
    const program_result *r = partition_show("3", "dirichlet", "--svg", "it's.svg");

    (void)state;
    if (!gnuplot) {
        program_assert_error(r, 1, "install gnuplot");
        print_message("skipped: no gnuplot here\n");
        skip();
    }
    program_assert_success(r);
    assert_true(program_exists("it's.svg"));
    program_assert_success(partition_show("3", "dirichlet", "--png", "parts.png"));
    assert_true(program_exists("parts.png"));
    program_assert_error(partition_show("3", "dirichlet", "--png", "no/such/folder.png"), 1,
                         "no/such/folder.png");
}

static const program_result *partition_train(const char *ranks, const char *partition)
{
    char set[256];
    const char *args[] = {"train", "good.yaml", "--run-dir", "out", "-q",
                          "-n",    ranks,       "--set",     set,   NULL};

    snprintf(set, sizeof(set), "partition=%s", partition);
    program_remove("out");
    return program_run(args, NULL);
}

/* Ranks without samples in a step, in all steps, or from some step on. */
static void partition_with_empty_ranks_trains(void **state)
{
    static const struct {
        const char *ranks, *partition;
    } cases[] = {
        {"2", "{kind: random, ratios: [1, 0]}"},
        {"2", "{kind: random, ratios: [0, 1], batching: equal}"},
        {"2", "{kind: random, ratios: [0.97, 0.03]}"},
        {"2", "{kind: random, ratios: [0.7, 0.3], batching: equal}"},
        {"3", "{kind: contiguous, ratios: [0.6, 0.3, 0.1], batching: equal}"},
        {"3", "{kind: interleaved, pad: true, shuffle: set}"},
        {"2", "{kind: labels, labels: [[0, 1], [2, 3]]}"},
        {"3", "{kind: labels, labels: [[0, 1, 2, 3], [], [3]], batching: equal}"},
        {"3", "{kind: dirichlet, alpha: 0.01}"},
        {"2", "{kind: file, path: parts.txt}"},
    };

    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    program_write_text("parts.txt", "\n0-99\n");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("  %s\n", cases[i].partition);
        program_assert_success(partition_train(cases[i].ranks, cases[i].partition));
        assert_true(program_exists("out/summary.json"));
    }
}

static void partition_bad_config_starts_no_rank(void **state)
{
    static const struct {
        const char *ranks, *partition;
        int exit_code;
        const char *words;
    } cases[] = {
        {"2", "{kind: random, ratios: [0.5, 0.6]}", 2, "the ratios add up to 1.1, expected 1"},
        {"3", "{kind: contiguous, ratios: [0.5, 0.5]}", 2, "2 ratios for 3 parts"},
        {"2", "{kind: labels, labels: [[0, 1], [2]]}", 2, "label 3, which no rank owns"},
        {"2", "{kind: labels, labels: [[0, 1], [2, 3, 4]]}", 2, "there is no label 4"},
        {"3", "{kind: labels, labels: [[0, 1], [2, 3]]}", 2, "labels for 2 ranks"},
        {"2", "labels", 2, "'labels'"},
        {"2", "{kind: dirichlet, alpha: 0}", 2, "alpha"},
        {"2", "{kind: random, batching: unequal}", 2, "batching"},
        {"33", "{kind: random, batching: equal}", 2, "a batch of 32 has no sample for each of 33"},
        {"257", "interleaved", 2, "257 ranks are more than the 256 samples"},
        {"2", "{kind: file, path: nowhere.txt}", 3, "nowhere.txt"},
        {"2", "{kind: file, path: out-of-range.txt}", 3,
         "out-of-range.txt:2: there is no sample 256"},
        {"2", "{kind: file, path: twice.txt}", 3, "twice.txt:2: sample 7 is in line 1 already"},
        {"2", "{kind: file, path: words.txt}", 3, "words.txt:1: expected the number of a sample"},
        {"3", "{kind: file, path: twice.txt}", 3, "twice.txt:2: sample 7"},
        {"3", "{kind: file, path: empty.txt}", 2, "lines for 0 ranks, but there are 3"},
    };

    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    program_write_text("out-of-range.txt", "0-9\n10-256\n");
    program_write_text("twice.txt", "0-9\n7\n");
    program_write_text("words.txt", "all\nnone\n");
    program_write_text("empty.txt", "");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        print_message("  %s\n", cases[i].partition);
        program_assert_error(partition_train(cases[i].ranks, cases[i].partition),
                             cases[i].exit_code, cases[i].words);
        assert_false(program_exists("out"));
        program_assert_error(partition_show(cases[i].ranks, cases[i].partition, NULL, NULL),
                             cases[i].exit_code, cases[i].words);
    }
}

/* Accuracy is over the test split, however it is divided among ranks. */
static void evaluation_measures_each_test_sample_once(void **state)
{
    static const char *const bad[] = {"test_partition={kind: interleaved, pad: true}",
                                      "test_partition={kind: file, path: parts.txt}"};
    static const char *const good[] = {
        "test_partition={kind: labels, labels: [[0], [], [1, 2, 3]]}",
        "test_partition={kind: interleaved, batching: equal}",
    };

    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG);
    program_write_text("parts.txt", "0-9\n\n11\n");
    program_remove("out");
    for (size_t i = 0; i < 4; i++) {
        const char *args[] = {"train", "good.yaml", "--run-dir", "out",
                              "-n",    "3",         "--set",     i < 2 ? bad[i] : good[i - 2],
                              NULL};

        if (i < 2)
            program_assert_error(program_run(args, NULL), 2, "the test split has 64; let each");
        else
            program_assert_success(program_run(args, NULL));
        assert_int_equal(program_exists("out"), i >= 2);
        program_remove("out");
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(partition_every_kind_takes_each_sample_once),
        cmocka_unit_test(partition_repeated_samples_are_named),
        cmocka_unit_test(partition_csv_has_numbers),
        cmocka_unit_test(partition_samples_without_labels_are_not_counted_by_label),
        cmocka_unit_test(partition_svg_is_drawn_or_refused),
        cmocka_unit_test(partition_with_empty_ranks_trains),
        cmocka_unit_test(partition_bad_config_starts_no_rank),
        cmocka_unit_test(evaluation_measures_each_test_sample_once),
    };
    int failed;

    if (program_init(argc > 1 ? argv[1] : NULL) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    program_fini();
    return failed;
}
