/*
 * test_compress.c - runs with compressed gradients: the same bits over shared memory and MPI, and
 * with a rank that is killed; reports and errors.
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

#include "cli/fixtures.h"
#include "cli/program.h"

static const char compressors_bf16[] = "strategy={name: sync, compress: bf16}";
static const char compressors_topk[] =
    "strategy={name: sync, compress: {name: topk, ratio: 0.05}, bucket_mib: 0.001}";
static const char *const compressors[] = {
    compressors_bf16,
    "strategy={name: sync, compress: {name: fp16, start: 3}}",
    compressors_topk,
    "strategy={name: sync, compress: {name: powersgd, rank: 1}}",
};
#define COMPRESSORS (sizeof(compressors) / sizeof(compressors[0]))

/* The hash of a run, which is then removed. */
static void take_hash(char out[65], const char *dir)
{
    program_weights(out, dir);
    program_remove(dir);
}

static void train(const char *dir, const char *ranks, const char *strategy, const char *more)
{
    const char *const args[] = {"train", "job.yaml", "-q",     "-n", ranks, "--run-dir",
                                dir,     "-s",       strategy, "-s", more,  NULL};

    program_assert_success(program_run(args, NULL));
}

static void compress_over_mpi_has_same_bits(void **state)
{
    (void)state;
    program_need_mpi();
    for (size_t c = 0; c < COMPRESSORS; c++) {
        const char *const args[] = {"train", "job.yaml", "-q", "--run-dir",    "mpi",
                                    "-n",    "3",        "-s", compressors[c], NULL};
        const program_options options = {.before = {PROGRAM_MPIEXEC, "-n", "3"}};
        char over_shm[65], over_mpi[65];

        train("shm", "3", compressors[c], "epochs=2");
        program_assert_success(program_run(args, &options));
        take_hash(over_shm, "shm");
        take_hash(over_mpi, "mpi");
        assert_string_equal(over_shm, over_mpi);
    }
}

static void train_over_hosts(char out[65], const char *strategy, const char *ranks,
                             const char *ranks_per_host)
{
    char env[64];
    const program_options options = {.before = {"env", env, PROGRAM_MPIEXEC, "-n", ranks}};
    const char *const args[] = {"train", "job.yaml", "-q", "--run-dir", "hosts",
                                "-n",    ranks,      "-s", strategy,    NULL};

    snprintf(env, sizeof(env), "COHORT_RANKS_PER_HOST=%s", ranks_per_host);
    program_assert_success(program_run(args, &options));
    take_hash(out, "hosts");
}

/* What top-k sends does not depend on where ranks are, nor, of two ranks, what bf16 does. */
static void compress_over_hosts_has_bits_of_one_host(void **state)
{
    static const struct {
        const char *strategy, *ranks, *ranks_per_host;
    } rows[] = {
        {compressors_topk, "4", "2"}, /* one message for each of two hosts' slices */
        {compressors_bf16, "2", "1"},
    };

    (void)state;
    program_need_mpi();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char one[65], many[65];

        train("one", rows[i].ranks, rows[i].strategy, "epochs=2");
        take_hash(one, "one");
        train_over_hosts(many, rows[i].strategy, rows[i].ranks, rows[i].ranks_per_host);
        assert_string_equal(one, many);
    }
}

/* Elsewhere bf16 rounds what hosts have summed; runs on the same hosts repeat. */
static void compress_half_over_hosts_repeats(void **state)
{
    char first[65], again[65];

    (void)state;
    program_need_mpi();
    train_over_hosts(first, compressors_bf16, "4", "2");
    train_over_hosts(again, compressors_bf16, "4", "2");
    assert_string_equal(first, again);
}

/* The rank that replaces it gets its memory. */
static void compress_killed_rank_changes_no_bit(void **state)
{
    (void)state;
    for (size_t c = 1; c < COMPRESSORS; c++) {
        const char *const args[] = {
            "train", "job.yaml",     "-q", "-n",        "2",  "--run-dir",          "hit",
            "-s",    compressors[c], "-s", "epochs=60", "-s", "on_failure=respawn", NULL};
        const program_options options = {
            .signal = SIGKILL, .signal_child = true, .signal_at = "hit/metrics.jsonl"};
        const program_result *r;
        char hit[65], whole[65];

        train("whole", "2", compressors[c], "epochs=60");
        r = program_run(args, &options);
        program_assert_success(r);
        assert_non_null(strstr(r->err, "killed by signal 9"));
        take_hash(hit, "hit");
        take_hash(whole, "whole");
        assert_string_equal(hit, whole);
    }
}

static void compress_after_shrink_continues(void **state)
{
    static const char *const args[] = {"train",
                                       "job.yaml",
                                       "-q",
                                       "-n",
                                       "3",
                                       "--run-dir",
                                       "fewer",
                                       "-s",
                                       "strategy={name: sync, compress: topk}",
                                       "-s",
                                       "epochs=60",
                                       "-s",
                                       "on_failure=shrink",
                                       NULL};
    const program_options options = {
        .signal = SIGKILL, .signal_child = true, .signal_at = "fewer/metrics.jsonl"};
    json_t *summary;

    (void)state;
    program_assert_success(program_run(args, &options));
    summary = program_summary("fewer");
    assert_int_equal(json_integer_value(json_object_get(summary, "ranks")), 2);
    json_decref(summary);
    program_remove("fewer");
}

/* 16 steps of 1,024 + 16 + 64 + 4 weights; bf16 sends half the bytes. */
static void compress_summary_counts_bytes(void **state)
{
    json_t *summary, *bytes;

    (void)state;
    train("told", "2", compressors[0], "epochs=2");
    summary = program_summary("told");
    bytes = json_object_get(summary, "gradient_bytes");
    assert_int_equal(json_array_size(bytes), 2);
    assert_true(json_integer_value(json_array_get(bytes, 0)) >= 16 * 1108 * 4);
    assert_int_equal(json_integer_value(json_array_get(bytes, 0)),
                     2 * json_integer_value(json_array_get(bytes, 1)));
    json_decref(summary);
    program_remove("told");
}

static void compress_with_bad_config_is_refused(void **state)
{
    (void)state;
    program_assert_error(
        program_line("train job.yaml -s shards=2 -s 'strategy={name: sync, compress: topk}'"), 2,
        "or let shards be auto");
    program_assert_error(program_line("train job.yaml -s 'strategy={name: sync, compress: tpok}'"),
                         2, "unknown compressor 'tpok'");
    program_assert_error(program_line("train job.yaml -s 'strategy={name: stale, compress: topk}'"),
                         2, "compress");
    /* a checkpoint without the memory is not of this run */
    train("plain", "2", "strategy=sync", "epochs=2");
    program_assert_error(program_line("train job.yaml -n 2 --run-dir plain --resume -s epochs=3 -s "
                                      "'strategy={name: sync, compress: topk}'"),
                         3, "does not hold the arrays");
    program_remove("plain");
}

static int setup(void **state)
{
    (void)state;
    program_write_text("job.yaml", FIXTURES_CONFIG "threads: 1\n");
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compress_over_mpi_has_same_bits),
        cmocka_unit_test(compress_over_hosts_has_bits_of_one_host),
        cmocka_unit_test(compress_half_over_hosts_repeats),
        cmocka_unit_test(compress_killed_rank_changes_no_bit),
        cmocka_unit_test(compress_after_shrink_continues),
        cmocka_unit_test(compress_summary_counts_bytes),
        cmocka_unit_test(compress_with_bad_config_is_refused),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 2;
    failed = cmocka_run_group_tests(tests, setup, NULL);
    program_fini();
    return failed;
}
