/*
 * test_mpiexec.c - runs over MPI that are asked to end, or whose ranks are killed: with mpiexec
 * alone, and supervised by cohort; and tuning.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program.h"
#include "shell.h"

static char want[65]; /* final weights of an undisturbed run */

static void assert_same_weights(const char *dir, int ranks)
{
    json_t *summary = program_summary(dir);

    assert_string_equal(json_string_value(json_object_get(summary, "weights_sha256")), want);
    assert_int_equal(json_integer_value(json_object_get(summary, "ranks")), ranks);
    json_decref(summary);
}

/* On SIGUSR1, which mpiexec passes on, the run saves a checkpoint, and resumes to the same bits. */
static void mpiexec_signal_ends_with_checkpoint(void **state)
{
    static const char *const args[] = {"train", "job.yaml",        "--run-dir", "told",
                                       "-s",    "on_failure=stop", NULL};
    program_options options = {.before = {PROGRAM_MPIEXEC, "-n", "2"},
                               .signal = SIGUSR1,
                               .signal_at = "told/metrics.jsonl"};
    const program_result *r;

    (void)state;
    program_need_mpi();
    r = program_run(args, &options);
    assert_int_equal(r->exit_code, 143);
    assert_int_equal(r->orphans, 0);
    assert_non_null(strstr(r->err, "cohort: error: terminated after step "));
    assert_non_null(strstr(r->err, ", which is saved: --resume continues from it"));
    assert_null(strstr(strstr(r->err, "terminated after") + 1, "terminated after"));
    assert_false(program_exists("told/summary.json"));
    program_assert_success(program_line("train job.yaml --run-dir told --resume -q -n 3"));
    assert_same_weights("told", 3);
    program_remove("told");
}

static void mpiexec_max_seconds_ends_with_checkpoint(void **state)
{
    static const char *const args[] = {"train", "job.yaml",        "--run-dir", "late",
                                       "-s",    "max_seconds=1",   "-s",        "epochs=1000000",
                                       "-s",    "on_failure=stop", NULL};
    const program_options options = {.before = {PROGRAM_MPIEXEC, "-n", "2"}};
    const program_result *r;

    (void)state;
    program_need_mpi();
    r = program_run(args, &options);
    program_assert_success(r);
    assert_non_null(strstr(r->err, "the time limit (max_seconds) is reached"));
    assert_false(program_exists("late/summary.json"));
    assert_true(program_count_entries("late/checkpoints") > 0);
    program_remove("late");
}

/* What a strategy has in flight when all leave is not a rank that failed. */
static void mpiexec_max_seconds_ends_with_requests_in_flight(void **state)
{
    static const char *const args[] = {
        "train", "job.yaml",        "--run-dir", "late",
        "-s",    "max_seconds=1",   "-s",        "epochs=1000000",
        "-s",    "on_failure=stop", "-s",        "checkpoint=off",
        "-s",    "shards=auto",     "-s",        "strategy={name: stale, k: 2}",
        NULL};
    const program_options options = {.before = {PROGRAM_MPIEXEC, "-n", "2"}};

    (void)state;
    program_need_mpi();
    program_assert_success(program_run(args, &options));
    program_remove("late");
}

static void mpiexec_without_launcher_does_not_restart(void **state)
{
    static const char *const args[] = {"train", "job.yaml", "--run-dir", "alone", NULL};
    const program_options options = {.before = {PROGRAM_MPIEXEC, "-n", "2"}};
    const program_result *r;

    (void)state;
    program_need_mpi();
    r = program_run(args, &options);
    assert_int_equal(r->exit_code, 2);
    assert_non_null(strstr(r->err, "--mpiexec"));
    assert_false(program_exists("alone"));
}

/* How many ranks there are is known once they have met. */
static void mpiexec_norm_of_single_values_is_refused(void **state)
{
    static const char *const args[] = {"train", "norm.yaml", "--run-dir", "norm", NULL};
    const program_options options = {.before = {PROGRAM_MPIEXEC, "-n", "2"}};
    const program_result *r;

    (void)state;
    program_need_mpi();
    program_write_text("norm.yaml", "layers: [flatten, linear: 8, batchnorm, linear: 4]\n"
                                    "data: {name: synthetic, shape: [1, 4, 4], classes: 4, "
                                    "samples: 32}\n"
                                    "batch: 2\n");
    r = program_run(args, &options);
    assert_int_equal(r->exit_code, 2);
    assert_non_null(strstr(r->err, "takes its mean over the batch, of which 2 ranks have never"));
    assert_false(program_exists("norm"));
}

/* Train in `dir` on 3 ranks under `script`. */
static const program_result *train_under(const char *script, const char *dir, const char *set)
{
    const char *const args[] = {"train",     "job.yaml",           "-n", "3", "--run-dir", dir,
                                "--mpiexec", PROGRAM_MPIEXEC_LINE, "-s", set, NULL};
    const program_options options = {.before = {"sh", script, dir}};

    return program_run(args, &options);
}

static void mpiexec_killed_rank_resumes_from_checkpoint(void **state)
{
    const program_result *r;

    (void)state;
    program_need_mpi();
    r = train_under("kill.sh", "again", "on_failure=respawn");
    program_assert_success(r);
    assert_non_null(strstr(r->err, "warning: rank 1 (process "));
    assert_non_null(strstr(r->err, "3 of 3 ranks start again"));
    assert_same_weights("again", 3);
    assert_false(program_exists("again/.ranks"));
    program_remove("again");
    r = train_under("kill.sh", "fewer", "on_failure=shrink");
    program_assert_success(r);
    assert_non_null(strstr(r->err, "2 of 3 ranks start again"));
    assert_same_weights("fewer", 2);
    program_remove("fewer");
}

/* Sizes double from 128 KiB to the length of the gradients; the proposal is one of them. */
static void assert_tuned(const program_result *r, const char *transport, int sizes)
{
    char *line, *rest = (char *)r->out;
    double proposed = 0, mib = 0.125;

    program_assert_success(r);
    for (int i = 0; i <= sizes; i++) {
        json_t *object;

        line = strtok_r(rest, "\n", &rest);
        assert_non_null(line);
        object = json_loads(line, 0, NULL);
        assert_non_null(object);
        assert_string_equal(json_string_value(json_object_get(object, "transport")), transport);
        proposed = json_number_value(json_object_get(object, "bucket_mib"));
        if (i < sizes) {
            assert_true(proposed == mib);
            assert_true(json_number_value(json_object_get(object, "ms")) > 0);
        } else {
            assert_non_null(strstr(line, "\"config\": \"strategy: {name: sync, bucket_mib: "));
        }
        json_decref(object);
        mib *= 2;
    }
    assert_null(strtok_r(rest, "\n", &rest));
    assert_true(proposed >= 0.125 && proposed < mib);
}

static void bench_comm_tune_prints_bucket_sizes(void **state)
{
    static const char *const args[] = {"bench", "comm", "--tune", "--max-bytes", "2097152", NULL};
    const program_options options = {.before = {PROGRAM_MPIEXEC, "-n", "2"}};

    (void)state;
    assert_tuned(program_line("bench comm --tune -n 2 --max-bytes 2097152"), "shm", 5);
    program_assert_error(program_line("bench comm --tune"), 2, "one rank reduces nothing");
    program_assert_error(program_line("bench comm --tune -n 2 --op bcast"), 2, "leave out --op");
    program_assert_error(program_line("bench comm --tune -n 2 --max-bytes 4096"), 2, "1048576");
    program_need_mpi();
    assert_tuned(program_run(args, &options), "mpi", 5);
}

static void mpiexec_max_restarts_ends_the_job(void **state)
{
    (void)state;
    program_need_mpi();
    program_assert_error(train_under("kill.sh", "never", "max_restarts=0"), 4,
                         "given up: max_restarts");
    program_remove("never");
}

static void mpiexec_signal_to_launcher_ends_with_checkpoint(void **state)
{
    static const struct {
        int signal, exit_code;
        const char *says;
    } cases[] = {{SIGTERM, 143, "terminated after step "},
                 {SIGINT, 130, "interrupted after step "}};
    const char *const args[] = {"train",     "job.yaml",       "-n",        "2",
                                "--run-dir", "asked",          "--mpiexec", PROGRAM_MPIEXEC_LINE,
                                "-s",        "epochs=1000000", NULL};

    (void)state;
    program_need_mpi();
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const program_options options = {.signal = cases[i].signal,
                                         .signal_at = "asked/metrics.jsonl"};

        program_assert_error(program_run(args, &options), cases[i].exit_code, cases[i].says);
        assert_non_null(strstr(program_line("train job.yaml --run-dir asked")->err, "--resume"));
        program_remove("asked");
    }
}

/* mpiexec is orphaned: at its start, while running, and started by a script. */
static void mpiexec_killed_launcher_leaves_no_process(void **state)
{
    static const char *const at[] = {"dead/.ranks/0", "dead/metrics.jsonl"};
    static const char *const how[] = {PROGRAM_MPIEXEC_LINE, "sh deaf.sh"};

    (void)state;
    program_need_mpi();
    program_write_text("deaf.sh", "trap '' TERM\n" TEST_MPIEXEC_SH " " TEST_MPIEXEC " \"$@\"\n");
    for (int i = 0; i < 6; i++) {
        const char *const args[] = {"train",     "job.yaml",       "-n",        "2",
                                    "--run-dir", "dead",           "--mpiexec", how[i / 3],
                                    "-s",        "epochs=1000000", NULL};
        const program_options options = {.signal = SIGKILL, .signal_at = at[i % 2]};
        const program_result *r = program_run(args, &options);

        assert_int_equal(r->exit_code, 128 + SIGKILL);
        assert_int_equal(r->orphans, 0);
        program_remove("dead");
    }
}

static void mpiexec_start_failure_is_reported_once(void **state)
{
    (void)state;
    program_need_mpi();
    program_assert_error(program_line("train job.yaml --run-dir no --mpiexec no-such-program"), 1,
                         "cannot be started");
    assert_false(program_exists("no"));
    program_assert_error(program_line("train job.yaml --run-dir no --hosts a,b"), 2, "--mpiexec");
    program_assert_error(program_line("train job.yaml --run-dir no --mpiexec 'mpiexec {hosts}'"), 2,
                         "--hosts");
    program_assert_error(
        program_line("train job.yaml --mpiexec mpiexec -s on_failure=shrink -s checkpoint=off"), 2,
        "checkpoint: off");
    program_assert_error(
        program_line("train job.yaml --mpiexec mpiexec -s on_failure=shrink -s batch_per_rank=8 "
                     "-s shards=auto"),
        2, "batch_per_rank");
}

/* A launcher script for two hosts: rank 1, on the second, dies. */
static void mpiexec_host_with_lost_rank_is_left_out(void **state)
{
    char *log;

    (void)state;
    program_write_text(
        "fake.sh", "echo \"$*\" >>fake.log\n"
                   "for a; do case $a in --notes=*) notes=${a#--notes=};; esac; done\n"
                   "[ $2 = 4 ] || exit 0\n"
                   "for r in 0 3; do printf 'begun 1 n1.cluster\\ntold 0 8 \\n' >$notes/$r; done\n"
                   "for r in 1 2; do echo 'begun 1 n2.cluster' >$notes/$r; done\n"
                   "exit 1\n");
    program_assert_success(program_line("train job.yaml -n 4 --run-dir hosts -s on_failure=shrink "
                                        "--mpiexec 'sh fake.sh' --hosts n1:2,n2:2"));
    log = program_read("fake.log");
    assert_non_null(log);
    assert_ptr_equal(strstr(log, "-n 4 --host n1:2,n2:2 "), log);
    assert_non_null(strstr(log, "\n-n 2 --host n1:2 "));
    assert_non_null(strstr(log, " --resume "));
    free(log);
}

/* Ranks on both hosts have no final note, as if the launcher had killed them all: no rank is named,
   and both hosts are tried. */
static void mpiexec_unknown_cause_names_no_rank(void **state)
{
    char *log;

    (void)state;
    program_write_text("mute.sh",
                       "echo \"$*\" >>mute.log\n"
                       "case $* in *--version) [ $4 = n1 ]; exit;; esac\n"
                       "for a; do case $a in --notes=*) notes=${a#--notes=};; esac; done\n"
                       "[ $2 = 2 ] || exit 0\n"
                       "for r in 0 1; do echo \"begun 1 n$((r + 1))\" >$notes/$r; done\n"
                       "exit 255\n");
    program_assert_success(program_line("train job.yaml -n 2 --run-dir mute -s on_failure=shrink "
                                        "--mpiexec 'sh mute.sh' --hosts n1,n2"));
    log = program_read("mute.log");
    assert_non_null(log);
    assert_non_null(strstr(log, "-n 1 --host n2 "));
    assert_non_null(strstr(log, "-n 1 --host n1 "));
    assert_non_null(strstr(log, " --resume "));
    free(log);
    program_assert_error(program_line("train job.yaml -n 2 --run-dir mute -s on_failure=stop "
                                      "--mpiexec 'sh mute.sh' --hosts n1,n2"),
                         4,
                         "one or more of 2 ranks have died in or after step 0; its launcher "
                         "says exit code 255");
}

/* Rank 1 dies in the same step each time. */
static void mpiexec_step_failing_twice_ends_the_job(void **state)
{
    (void)state;
    program_assert_error(program_line("train job.yaml -n 4 --run-dir hosts --mpiexec "
                                      "'sh fake.sh'"),
                         4, "given up: the same step has failed twice");
    assert_false(program_exists("hosts"));
}

/* Of three ranks two share memory, weights and the update; the result equals that of one
   process. */
static void check_divided_update(const char *strategy)
{
    static const char *const one[] = {"train",
                                      "job.yaml",
                                      "--run-dir",
                                      "adam",
                                      "-q",
                                      "-s",
                                      "max_steps=100",
                                      "-s",
                                      "optimizer=adam",
                                      "-s",
                                      "ema={decay: 0.9}",
                                      "-s",
                                      "on_failure=stop",
                                      NULL};
    const char *const three[] = {"train",
                                 "job.yaml",
                                 "--run-dir",
                                 "parts",
                                 "-q",
                                 "-s",
                                 "max_steps=100",
                                 "-s",
                                 "optimizer=adam",
                                 "-s",
                                 "ema={decay: 0.9}",
                                 "-s",
                                 "on_failure=stop",
                                 "-s",
                                 strategy,
                                 NULL};
    const program_options options = {
        .before = {"env", "COHORT_RANKS_PER_HOST=2", PROGRAM_MPIEXEC, "-n", "3"}};

    program_assert_success(program_run(one, NULL));
    program_assert_success(program_run(three, &options));
    for (int step = 50; step <= 100; step += 50) {
        assert_int_equal(
            shell_run("for f in weights ema state; do cmp adam/checkpoints/step-%d/$f.safetensors "
                      "parts/checkpoints/step-%d/$f.safetensors || exit 1; done",
                      step, step),
            0);
    }
    program_remove("adam");
    program_remove("parts");
}

static void mpiexec_ranks_divide_the_update(void **state)
{
    (void)state;
    program_need_mpi();
    check_divided_update("strategy={name: sync, update: parts}");
    check_divided_update("strategy={name: sync, update: zero}");
}

static int setup(void **state)
{
    (void)state;
    /* long enough for a failure to be noticed on a busy machine */
    program_write_text(
        "job.yaml",
        "model: {name: mlp, hidden: [16]}\nepochs: 400\nshards: 4\nbatch: 64\n"
        "on_failure: respawn\nlog_every: 1\ncheckpoint: 50 steps\nevaluate_every: 1000\n"
        "data: {name: synthetic, shape: [1, 8, 8], classes: 4, samples: 256}\n");
    program_write_text(
        "kill.sh", "dir=$1; shift\n\"$@\" & job=$!\ni=0\n"
                   "while [ $i -lt 6000 ] && [ \"$(cat $dir/metrics.jsonl 2>/dev/null | wc -l)\" "
                   "-lt 60 ]; do sleep 0.05; i=$((i + 1)); done\n"
                   "kill -9 $(sed -n 's/begun \\([0-9]*\\) .*/\\1/p' $dir/.ranks/1)\n"
                   "wait $job\n");
    program_assert_success(program_line("train job.yaml -q --run-dir whole"));
    program_weights(want, "whole");
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mpiexec_signal_ends_with_checkpoint),
        cmocka_unit_test(mpiexec_max_seconds_ends_with_checkpoint),
        cmocka_unit_test(mpiexec_max_seconds_ends_with_requests_in_flight),
        cmocka_unit_test(mpiexec_without_launcher_does_not_restart),
        cmocka_unit_test(mpiexec_norm_of_single_values_is_refused),
        cmocka_unit_test(mpiexec_killed_rank_resumes_from_checkpoint),
        cmocka_unit_test(bench_comm_tune_prints_bucket_sizes),
        cmocka_unit_test(mpiexec_max_restarts_ends_the_job),
        cmocka_unit_test(mpiexec_signal_to_launcher_ends_with_checkpoint),
        cmocka_unit_test(mpiexec_killed_launcher_leaves_no_process),
        cmocka_unit_test(mpiexec_host_with_lost_rank_is_left_out),
        cmocka_unit_test(mpiexec_unknown_cause_names_no_rank),
        cmocka_unit_test(mpiexec_step_failing_twice_ends_the_job),
        cmocka_unit_test(mpiexec_start_failure_is_reported_once),
        cmocka_unit_test(mpiexec_ranks_divide_the_update),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 2;
    failed = cmocka_run_group_tests(tests, setup, NULL);
    program_fini();
    return failed;
}
