/*
 * test_explain.c - what runs record of their time and their gradients, and what `cohort explain`
 * says of them. Causes that are a matter of time: tests/explain.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "fixtures.h"
#include "program.h"

static void assert_near(double value, double wanted, double tolerance)
{
    if (!(fabs(value - wanted) <= tolerance))
        fail_msg("%g, not %g", value, wanted);
}

static int explain_setup(void **state)
{
    (void)state;
    program_write_text("good.yaml", FIXTURES_CONFIG "log_every: 4\n");
    return 0;
}

static bool explain_has(const json_t *root, const char *cause)
{
    const json_t *list = json_object_get(root, "findings");

    for (size_t i = 0; i < json_array_size(list); i++)
        if (strcmp(json_string_value(json_object_get(json_array_get(list, i), "cause")), cause) ==
            0)
            return true;
    return false;
}

/* Train with more words of --set, and explain. */
static json_t *explain_run(const char *dir, const char *set, int exit_code)
{
    char line[512];

    snprintf(line, sizeof(line), "train good.yaml -n 2 --quiet --run-dir %s %s", dir, set);
    assert_int_equal(program_line(line)->exit_code, exit_code);
    snprintf(line, sizeof(line), "explain %s --json", dir);
    return program_json(line);
}

static void explain_parts_sum_to_wall_time(void **state)
{
    json_t *root = explain_run("parts", "", 0), *summary = program_summary("parts");
    const json_t *seconds = json_object_get(root, "seconds"), *value;
    const double wall = json_number_value(json_object_get(root, "wall_seconds"));
    const char *key;
    double sum = 0;

    (void)state;
    json_object_foreach((json_t *)seconds, key, value)
    {
        assert_true(json_number_value(value) > -0.01);
        sum += json_number_value(value);
    }
    assert_int_equal(json_object_size(seconds), 8);
    assert_near(sum, wall, 1e-6);
    assert_true(json_number_value(json_object_get(seconds, "other")) < 0.3 * wall);
    assert_true(wall >= json_number_value(json_object_get(summary, "wall_seconds")));
    assert_int_equal(json_array_size(json_object_get(root, "ranks")), 2);
    for (size_t r = 0; r < 2; r++)
        assert_int_equal(json_integer_value(json_object_get(
                             json_array_get(json_object_get(root, "ranks"), r), "samples")),
                         2 * 256 / 2);
    for (const char *const *cause =
             (const char *const[]){"high-rate", "frozen-layer", "wrong-normalisation",
                                   "duplicated-test", "shuffled-labels", NULL};
         *cause; cause++)
        assert_false(explain_has(root, *cause));
    json_decref(summary);
    json_decref(root);
}

/* What other ranks took before is apart: else it would be in the rest, and each share too small. */
static void explain_resized_run_has_times_of_last_ranks(void **state)
{
    json_t *root = explain_run("whole", "--set epochs=3", 0);
    const double whole = json_number_value(json_object_get(root, "wall_seconds"));
    double wall, earlier, rest;

    (void)state;
    assert_true(json_number_value(json_object_get(root, "earlier_seconds")) == 0);
    json_decref(root);
    program_assert_success(
        program_line("train --resume --run-dir whole -n 3 --quiet --set epochs=4"));
    root = program_json("explain whole --json");
    wall = json_number_value(json_object_get(root, "wall_seconds"));
    earlier = json_number_value(json_object_get(root, "earlier_seconds"));
    rest = json_number_value(json_object_get(json_object_get(root, "seconds"), "other"));
    assert_true(earlier > 0.5 * whole && earlier < whole + 1e-6);
    assert_true(wall > 0 && rest < 0.5 * wall);
    json_decref(root);
    assert_non_null(
        strstr(program_line("explain whole --quick")->out, "before that, on another number"));
}

/* Layers add up to computing, and so to the wall time; what is saved is no more than there is. */
static void explain_profile_divides_computing(void **state)
{
    json_t *root = explain_run("layers", "--profile --set log_every=1 --set epochs=8", 0);
    const json_t *layers = json_object_get(root, "compute"),
                 *savings = json_object_get(root, "savings");
    const double compute =
        json_number_value(json_object_get(json_object_get(root, "seconds"), "compute"));
    const double wall = json_number_value(json_object_get(root, "wall_seconds"));
    double sum = 0, last = wall;
    bool linear = false, optimizer = false;

    (void)state;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        const json_t *layer = json_array_get(layers, i);
        const char *op = json_string_value(json_object_get(layer, "op"));

        sum += json_number_value(json_object_get(layer, "seconds"));
        linear = linear || strcmp(op, "linear") == 0;
        optimizer = optimizer ||
                    strcmp(json_string_value(json_object_get(layer, "name")), "optimizer") == 0;
    }
    assert_near(sum, compute, 1e-6 + 1e-6 * compute);
    assert_true(linear && optimizer);
    for (size_t i = 0; i < json_array_size(savings); i++) {
        const double seconds =
            json_number_value(json_object_get(json_array_get(savings, i), "seconds"));

        assert_true(seconds > 0 && seconds <= last);
        last = seconds;
    }
    json_decref(root);
    assert_non_null(strstr(program_line("explain layers --quick")->out, "(linear)"));
}

/* A run that is over before a step was watched is explained without its kernels. */
static void explain_json_has_dir_as_it_is(void **state)
{
    json_t *root = explain_run("odd\n\x1b", "", 0);

    (void)state;
    assert_string_equal(json_string_value(json_object_get(root, "run_dir")), "odd\n\x1b");
    json_decref(root);
}

static void explain_profile_without_steps_is_none(void **state)
{
    json_t *root = explain_run("short", "--profile --profile-skip 100", 0);

    (void)state;
    assert_int_equal(json_array_size(json_object_get(root, "compute")), 0);
    assert_int_equal(json_array_size(json_object_get(root, "savings")), 0);
    assert_int_equal(json_array_size(json_object_get(root, "ranks")), 2);
    json_decref(root);
}

/* Of `gradient_norm` in step events. */
static int explain_norms(double out[4], const char *path)
{
    char *text = program_read(path), *save = NULL;
    int n = 0;

    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        json_t *event = json_loads(line, 0, NULL);
        const json_t *norm = json_object_get(event, "gradient_norm");

        if (json_is_number(norm) && n < 4)
            out[n++] = json_number_value(norm);
        json_decref(event);
    }
    free(text);
    return n;
}

/* A limit that is never reached makes clipping compute the norm of each step. */
static void train_gradient_norm_equals_that_of_clipping(void **state)
{
    double plain[4] = {0}, clipped[4] = {0};
    char plain_weights[65], clipped_weights[65];

    (void)state;
    program_assert_success(program_line("train good.yaml -n 2 --quiet --run-dir plain"));
    program_assert_success(
        program_line("train good.yaml -n 2 --quiet --run-dir clipped --set clip.norm=1e6"));
    assert_int_equal(explain_norms(plain, "plain/metrics.jsonl"), 4);
    assert_int_equal(explain_norms(clipped, "clipped/metrics.jsonl"), 4);
    for (int i = 0; i < 4; i++) {
        assert_true(plain[i] > 0);
        assert_near(plain[i], clipped[i], 1e-6 * plain[i]);
    }
    program_weights(plain_weights, "plain");
    program_weights(clipped_weights, "clipped");
    assert_string_equal(plain_weights, clipped_weights);
}

/* As those of synthetic data, of which every second one is even. */
static void explain_labels_in_turn_are_not_shuffled(void **state)
{
    json_t *root = explain_run("turn",
                               "--set optimizer.lr=1e-9 --set data.classes=10 "
                               "--set data.samples=1000",
                               0);

    (void)state;
    assert_false(explain_has(root, "shuffled-labels"));
    json_decref(root);
}

static void explain_diverged_run_says_why(void **state)
{
    json_t *root =
        explain_run("diverged", "--set optimizer.lr=1e6 --set optimizer.weight_decay=1", 1);

    (void)state;
    assert_true(explain_has(root, "high-rate"));
    assert_non_null(
        strstr(json_string_value(json_object_get(root, "failure")), "training has diverged"));
    assert_false(json_is_true(json_object_get(root, "finished")));
    json_decref(root);
}

static void explain_frozen_drawn_layer_is_found(void **state)
{
    json_t *root = explain_run("frozen", "--set freeze=fc1", 0);

    (void)state;
    assert_true(explain_has(root, "frozen-layer"));
    json_decref(root);
    root = explain_run("tuned", "--set freeze=fc1 --set init=frozen/final.safetensors", 0);
    assert_false(explain_has(root, "frozen-layer"));
    json_decref(root);
}

/* Units that two samples miss are not dead, nor are those of a loss that is 0. */
static void explain_without_gradient_blames_no_unit(void **state)
{
    static const char *const sets[] = {"--set data.samples=2", "--set data.classes=1"};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        char dir[16];
        json_t *root;

        snprintf(dir, sizeof(dir), "units%zu", i);
        root = explain_run(dir, sets[i], 0);
        assert_false(explain_has(root, "dead-units"));
        json_decref(root);
    }
}

static void explain_wrong_normalisation_is_found(void **state)
{
    json_t *root = explain_run(
        "scaled", "--set 'data.normalize={mean: 0.5, std: 0.0005}' --set optimizer.lr=1e-9", 0);

    (void)state;
    assert_true(explain_has(root, "wrong-normalisation"));
    json_decref(root);
}

static void explain_test_samples_of_training_are_found(void **state)
{
    json_t *root;

    (void)state;
    fixtures_make_idx("idx", FIXTURES_SOUND);
    root = explain_run("same",
                       "--set 'data={name: idx, path: idx, test_images: train-images-idx3-ubyte, "
                       "test_labels: train-labels-idx1-ubyte}'",
                       0);
    assert_true(explain_has(root, "duplicated-test"));
    json_decref(root);
}

static void explain_missing_data_is_said(void **state)
{
    json_t *root;

    (void)state;
    program_assert_success(program_line("train good.yaml --quiet --run-dir moved"));
    root = program_json("explain moved --json --set 'data={name: idx, path: gone}'");
    assert_non_null(strstr(json_string_value(json_object_get(root, "data_not_looked_at")), "gone"));
    json_decref(root);
}

static void explain_wrong_folder_is_refused(void **state)
{
    (void)state;
    program_assert_error(program_line("explain nowhere"), 2, "holds no run");
    program_assert_success(program_line("train good.yaml --quiet --run-dir broken"));
    program_write_text("broken/metrics.jsonl", "{\"event\": \"start\"\nno\n");
    program_assert_error(program_line("explain broken"), 3, "metrics.jsonl:1: not a JSON object");
    program_write_text("broken/metrics.jsonl",
                       "{\"event\":\"start\",\"train_samples\":1,\"ranks\":99999999}\n");
    program_assert_error(program_line("explain broken"), 3, "damaged");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(explain_parts_sum_to_wall_time),
        cmocka_unit_test(explain_resized_run_has_times_of_last_ranks),
        cmocka_unit_test(explain_profile_divides_computing),
        cmocka_unit_test(explain_json_has_dir_as_it_is),
        cmocka_unit_test(explain_profile_without_steps_is_none),
        cmocka_unit_test(train_gradient_norm_equals_that_of_clipping),
        cmocka_unit_test(explain_labels_in_turn_are_not_shuffled),
        cmocka_unit_test(explain_diverged_run_says_why),
        cmocka_unit_test(explain_frozen_drawn_layer_is_found),
        cmocka_unit_test(explain_without_gradient_blames_no_unit),
        cmocka_unit_test(explain_wrong_normalisation_is_found),
        cmocka_unit_test(explain_test_samples_of_training_are_found),
        cmocka_unit_test(explain_missing_data_is_said),
        cmocka_unit_test(explain_wrong_folder_is_refused),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 1;
    failed = cmocka_run_group_tests_name("cli_explain", tests, explain_setup, NULL);
    program_fini();
    return failed;
}
