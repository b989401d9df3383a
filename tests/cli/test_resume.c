/*
 * test_resume.c - resuming a run with its own config, and with a config that would have ended it
 * earlier.
 */
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

/* 8 steps per epoch. */
#define RESUME_CONFIG FIXTURES_CONFIG "log_every: 1\n"

static void resume_without_config_takes_own_config(void **state)
{
    char whole[65], parts[65];

    (void)state;
    program_assert_success(program_line(
        "train good.yaml -n 2 -s optimizer.lr=0.05 -s epochs=3 --quiet --run-dir whole"));
    program_assert_success(program_line("train good.yaml -n 2 -s optimizer.lr=0.05 -s epochs=3 "
                                        "-s max_steps=9 --quiet --run-dir parts"));
    /* including the ranks and the changed keys */
    program_assert_success(program_line("train --resume --run-dir parts -s max_steps=0 --quiet"));
    program_weights(whole, "whole");
    program_weights(parts, "parts");
    assert_string_equal(whole, parts);
    /* a complete run reports that it is */
    program_assert_success(program_line("train --resume --run-dir parts"));
    program_remove("whole");
    program_remove("parts");
}

static void resume_over_mpi_continues(void **state)
{
    const char *args[] = {"train", "--resume",    "--run-dir", "mpi",
                          "-s",    "max_steps=0", "--quiet",   NULL};
    const program_options options = {.before = {PROGRAM_MPIEXEC, "-n", "2"}};
    const program_result *r;
    const char *said;

    (void)state;
    program_need_mpi();
    program_assert_success(
        program_line("train good.yaml -n 2 -s max_steps=9 --quiet --run-dir mpi"));
    r = program_run(args, &options);
    program_assert_success(r);
    /* one of the ranks says it */
    said = strstr(r->err, "continues after step 9");
    assert_non_null(said);
    assert_null(strstr(said + 1, "continues after step 9"));
    said = strstr(r->err, "the config has changed");
    assert_non_null(said);
    assert_null(strstr(said + 1, "the config has changed"));
    program_write_text("mpi/checkpoints/step-16/weights.safetensors", "no weights");
    r = program_run(args, &options);
    program_assert_success(r);
    said = strstr(r->err, "the checkpoint before it is taken");
    assert_non_null(said);
    assert_null(strstr(said + 1, "the checkpoint before it is taken"));
    program_remove("mpi");
}

static void resume_without_config_and_run_dir_is_refused(void **state)
{
    (void)state;
    program_assert_error(program_line("train"), 2, "CONFIG is missing");
    program_assert_error(program_line("train --run-dir r"), 2, "CONFIG is missing");
    program_assert_error(program_line("train --resume"), 2, "--run-dir DIR");
    program_assert_error(program_line("train --resume --run-dir nowhere"), 2,
                         "nowhere: holds no config.yaml");
}

/* There is no checkpoint yet: what `cohort predict` and `generate` need is written all the same. */
static void resume_without_checkpoint_records_data(void **state)
{
    (void)state;
    program_assert_success(program_line("train good.yaml --quiet --run-dir images --resume"));
    assert_true(program_exists("images/data.json"));
    program_write_text("text.txt", "what is learned here is no more than a few words of text");
    program_write_text("text.yaml",
                       "model: {name: gpt2, layers: 1, heads: 1, width: 8, dropout: 0}\n"
                       "data: {name: text, path: text.txt, context: 4}\n"
                       "batch: 4\nmax_steps: 2\nevaluate: false\n");
    program_assert_success(program_line("train text.yaml --quiet --run-dir text --resume"));
    program_assert_success(program_line("generate text --prompt w --tokens 2"));
    program_remove("images");
    program_remove("text");
}

/* Within a run, and for a complete one; nothing is written. */
static void check_end(const char *run, const char *set, const char *words)
{
    char line[256], name[128], *before, *after;

    snprintf(name, sizeof(name), "%s/metrics.jsonl", run);
    before = program_read(name);
    snprintf(line, sizeof(line), "train --resume --run-dir %s %s", run, set);
    program_assert_error(program_line(line), 2, words);
    after = program_read(name);
    assert_string_equal(before, after);
    free(before);
    free(after);
}

static void resume_with_end_before_last_step_is_refused(void **state)
{
    (void)state;
    program_assert_success(program_line("train good.yaml -s epochs=5 -s max_steps=20 -s "
                                        "'checkpoint=4 steps' --quiet --run-dir cut"));
    check_end("cut", "-s max_steps=0 -s epochs=1",
              "cut: the run has made 20 steps, 2 epochs of them whole, and the config ends it "
              "after step 8 (epochs: 1)");
    check_end("cut", "-s max_steps=19", "after step 19 (max_steps: 19)");
    check_end("cut", "-s epochs=2", "after step 16 (epochs: 2)");
    program_assert_success(program_line("train --resume --run-dir cut --quiet"));
    program_assert_success(program_line("train --resume --run-dir cut -s max_steps=21 --quiet"));
    program_assert_success(
        program_line("train --resume --run-dir cut -s max_steps=0 -s epochs=3 --quiet"));
    check_end("cut", "-s epochs=2", "after step 16 (epochs: 2)");
    program_remove("cut");
}

/* Padded to a multiple of the ranks, the set has more steps on five of them. */
static void resume_on_ranks_of_other_epochs_names_those_before(void **state)
{
    (void)state;
    program_assert_success(
        program_line("train good.yaml -n 2 -s data.samples=64 -s max_steps=3 -s "
                     "'partition={kind: interleaved, pad: true}' --quiet --run-dir padded"));
    program_assert_error(program_line("train --resume --run-dir padded -n 5 -s max_steps=0"), 2,
                         "it would have 32 and 3; continue it with the 2 ranks that saved it");
    program_remove("padded");
}

static int resume_setup(void **state)
{
    (void)state;
    program_write_text("good.yaml", RESUME_CONFIG);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resume_without_config_takes_own_config),
        cmocka_unit_test(resume_over_mpi_continues),
        cmocka_unit_test(resume_without_config_and_run_dir_is_refused),
        cmocka_unit_test(resume_with_end_before_last_step_is_refused),
        cmocka_unit_test(resume_without_checkpoint_records_data),
        cmocka_unit_test(resume_on_ranks_of_other_epochs_names_those_before),
    };
    int failed;

    if (program_init(argc > 1 ? argv[1] : NULL) != 0)
        return 1;
    failed = cmocka_run_group_tests(tests, resume_setup, NULL);
    program_fini();
    return failed;
}
