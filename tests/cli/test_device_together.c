/* test_device_together.c - several steps in one launch on GPUs, with the program, on the stand-in
   of tests/device: what a run leaves is what it leaves with one step in a launch. */
#include "cli/device_runs.h"

/* Ten steps in an epoch, of which the last has fewer samples, so that neither 4 nor 3 fill it. What
   goes from step to step besides the weights: statistics, a moving average, a loss scale. */
#define TOGETHER                                                                                   \
    DEVICE_SMALL "ema: {decay: 0.9, every: 2, warmup: true}\n"                                     \
                 "schedule: {name: cosine, unit: step}\n"

#ifdef TEST_NCCL
#define QUICK 2
#else
#define QUICK 1
#endif
static bool everything; /* all rows; else the first QUICK ones */

static void together_line(char line[512], const char *options, int steps, const char *dir)
{
    snprintf(line, 512,
             "train %s -s batch=5 -s epochs=4 -s device.name=cuda "
             "-s device.ranks_per_gpu=2 -s device.steps_per_launch=%d --run-dir %s",
             options, steps, dir);
}

/* Launches of all ranks. */
static long together_run(const char *options, int steps, const char *dir)
{
    char line[512];

    (void)device_graphs();
    together_line(line, options, steps, dir);
    check_used(device_run("STANDIN_GPUS=4", line));
    return device_graphs();
}

/* What the events of two runs say of training, which a user may look at. */
static void check_events(const char *got, const char *want)
{
    static const char *const keys[] = {"event",         "step",       "lr",
                                       "loss",          "train_loss", "test_loss",
                                       "gradient_norm", "loss_scale", "last_loss"};
    char path[2][64], *text[2], *line[2], *rest[2];
    size_t found = 0;

    snprintf(path[0], sizeof(path[0]), "%s/metrics.jsonl", got);
    snprintf(path[1], sizeof(path[1]), "%s/metrics.jsonl", want);
    for (int k = 0; k < 2; k++) {
        text[k] = program_read(path[k]);
        assert_non_null(text[k]);
        line[k] = strtok_r(text[k], "\n", &rest[k]);
    }
    while (line[0] && line[1]) {
        json_t *event[2] = {json_loads(line[0], 0, NULL), json_loads(line[1], 0, NULL)};

        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
            json_t *a = json_object_get(event[0], keys[i]), *b = json_object_get(event[1], keys[i]);

            assert_int_equal(!a, !b);
            assert_true(!a || json_equal(a, b));
            found += a != NULL;
        }
        for (int k = 0; k < 2; k++) {
            json_decref(event[k]);
            line[k] = strtok_r(NULL, "\n", &rest[k]);
        }
    }
    assert_true(!line[0] && !line[1]);
    assert_true(found > 10);
    free(text[0]);
    free(text[1]);
}

static void check_weights(const char *got, const char *want)
{
    char a[65], b[65];

    program_weights(a, got);
    program_weights(b, want);
    assert_string_equal(a, b);
}

static void check_same(const char *got, const char *want)
{
    check_weights(got, want);
    check_events(got, want);
}

/* Events after every sixth step, and checkpoints after every seventh, end a launch; a run of
   several ranks exchanges by NCCL within it. */
static void together_steps_leave_what_single_steps_leave(void **state)
{
    static const struct {
        const char *options;
        int steps, part; /* launches are at most one in so many of those of single steps */
    } run[] = {
        {"saved.yaml -s log_every=6", 3, 1},
#ifdef TEST_NCCL
        {"together.yaml -n 2 -s log_every=20", 4, 2},
#endif
        /* of make test-device: */
        {"together.yaml -s log_every=20", 4, 2},
        {"half.yaml -s log_every=9", 4, 1},
#ifdef TEST_NCCL
        {"together.yaml -n 2 -s shards=4 -s log_every=20", 4, 2},
        {"together.yaml -n 2 -s strategy.update=zero -s log_every=20", 4, 2},
#endif
    };

    (void)state;
    for (size_t i = 0; i < (everything ? sizeof(run) / sizeof(run[0]) : QUICK); i++) {
        const long single = together_run(run[i].options, 1, "single");
        const long launches = together_run(run[i].options, run[i].steps, "together");

        assert_true(launches > 0 && launches < single && launches <= single / run[i].part);
        check_same("together", "single");
        assert_int_equal(program_count_entries("together/checkpoints"),
                         program_count_entries("single/checkpoints"));
        program_remove("single");
        program_remove("together");
    }
}

/* In the middle of what would be a launch. */
static void together_run_that_is_resumed_has_the_bits_of_one(void **state)
{
    static const char rest[] = "train --resume --quiet -s max_steps=0 --run-dir parts";
    char line[512];

    (void)state;
    (void)together_run("together.yaml -s log_every=20 -s schedule=constant", 1, "whole");
    together_line(line, "together.yaml -s log_every=20 -s schedule=constant -s max_steps=17", 4,
                  "parts");
    check_used(device_run("STANDIN_GPUS=4", line));
    program_assert_success(device_run("STANDIN_GPUS=4", rest));
    check_weights("parts", "whole");
    program_remove("parts");
    program_remove("whole");
}

/* A run that ends when its accuracy is reached ends after the same epoch. */
static void together_run_stops_at_the_same_epoch(void **state)
{
    static const char stop[] = "together.yaml -s log_every=20 -s stop_at.accuracy=0.5";

    (void)state;
    (void)together_run(stop, 1, "single");
    (void)together_run(stop, 4, "together");
    assert_true(device_figure("single", "steps") < 40);
    assert_true(device_figure("together", "steps") == device_figure("single", "steps"));
    check_same("together", "single");
    program_remove("single");
    program_remove("together");
}

/* The config's wish stands, and a line says why it is not followed. */
static void together_one_step_in_a_launch_says_why(void **state)
{
    static const struct {
        const char *options, *why;
    } run[] = {
        {"together.yaml -s device.data_mib=0", "batches are read on the host"},
        {"together.yaml -s device.graphs=false", "steps are not given as graphs"},
        {"together.yaml -s on_failure=respawn", "ranks keep the state after each, for a restart"}};
    char line[512];

    (void)state;
    for (size_t i = 0; i < sizeof(run) / sizeof(run[0]); i++) {
        const program_result *r;

        together_line(line, run[i].options, 4, "why");
        r = device_run("STANDIN_GPUS=1", line);
        check_used(r);
        assert_non_null(strstr(r->err, "steps_per_launch: one step in a launch: "));
        assert_non_null(strstr(r->err, run[i].why));
        program_remove("why");
    }
    program_assert_error(
        program_line("train together.yaml -s device.steps_per_launch=2 --run-dir why"), 2,
        "device: steps_per_launch is of GPUs");
}

/* The smallest network, with room for eight steps between two events. */
static void together_auto_is_several_for_a_small_network(void **state)
{
    long single, several;

    (void)state;
    single = together_run("together.yaml -s log_every=8", 1, "single");
    (void)device_graphs();
    check_used(device_run("STANDIN_GPUS=4", "train together.yaml -s batch=5 -s epochs=4 "
                                            "-s log_every=8 -s device=cuda --run-dir auto"));
    several = device_graphs();
    assert_true(several > 0 && several < single);
    check_same("auto", "single");
    program_remove("single");
    program_remove("auto");
}

static int together_setup(void **state)
{
    if (device_setup(state) != 0)
        return 1;
    program_write_text("together.yaml", TOGETHER);
    program_write_text("saved.yaml", TOGETHER "checkpoint: {every: 7 steps, keep: 9}\n");
    program_write_text("half.yaml", TOGETHER "precision: {level: O1, dtype: fp16, loss_scale: "
                                             "dynamic, loss_scale_window: 3}\n"
                                             "clip: {norm: 0.5}\n");
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest quick[] = {
        cmocka_unit_test(together_steps_leave_what_single_steps_leave),
        cmocka_unit_test(together_one_step_in_a_launch_says_why),
    };
    const struct CMUnitTest all[] = {
        cmocka_unit_test(together_steps_leave_what_single_steps_leave),
        cmocka_unit_test(together_run_that_is_resumed_has_the_bits_of_one),
        cmocka_unit_test(together_run_stops_at_the_same_epoch),
        cmocka_unit_test(together_auto_is_several_for_a_small_network),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 1;
    everything = argc > 3 && strcmp(argv[3], "all") == 0;
    failed = everything ? cmocka_run_group_tests(all, together_setup, NULL)
                        : cmocka_run_group_tests(quick, together_setup, NULL);
    program_fini();
    return failed;
}
