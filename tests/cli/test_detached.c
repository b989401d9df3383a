/*
 * test_detached.c - detached runs: signals that were ignored at the start stay ignored, however
 * ranks are started; others end the run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/program.h"

#define MAX_WORDS 24

/* Runs the following command with both signals ignored, like nohup and a shell without job
   control. */
#define IGNORING "sh", "ignore.sh"

static const char *const train_args[] = {"train", "job.yaml", "--run-dir", "run", "-q", NULL};

/* The signal is sent during training. `before` and `more` end with NULL. */
static const program_result *run_with(int signal, bool to_child, const char *const *before,
                                      const char *const *more)
{
    program_options options = {
        .signal = signal, .signal_child = to_child, .signal_at = "run/metrics.jsonl"};
    const char *args[MAX_WORDS + 1] = {NULL};
    int n = 0;

    for (int i = 0; before[i]; i++)
        options.before[i] = before[i];
    for (int i = 0; train_args[i]; i++)
        args[n++] = train_args[i];
    for (int i = 0; more[i] && n < MAX_WORDS; i++)
        args[n++] = more[i];
    program_remove("run");
    return program_run(args, &options);
}

static void assert_goes_on(const program_result *r)
{
    program_assert_success(r);
    assert_true(program_exists("run/summary.json"));
}

static void assert_ends(const program_result *r, int exit_code)
{
    assert_int_equal(r->exit_code, exit_code);
    assert_int_equal(r->orphans, 0);
    assert_false(program_exists("run/summary.json"));
}

static void detached_ranks_ignore_hangup(void **state)
{
    static const char *const ignoring[] = {IGNORING, NULL}, *const plain[] = {NULL};

    (void)state;
    for (int ranks = 1; ranks <= 2; ranks++) {
        const char *const more[] = {"-n", ranks == 1 ? "1" : "2", NULL};

        assert_goes_on(run_with(SIGHUP, false, ignoring, more));
        assert_goes_on(run_with(SIGINT, false, ignoring, more));
        assert_goes_on(run_with(SIGHUP, true, ignoring, more));
        assert_ends(run_with(SIGTERM, false, ignoring, more), 143);
        assert_ends(run_with(SIGHUP, false, plain, more), 143);
        assert_ends(run_with(SIGINT, false, plain, more), 130);
    }
}

/* mpiexec's ranks have other signal dispositions than mpiexec, so they are set after it. */
static void detached_ranks_under_mpiexec_ignore_signals(void **state)
{
    static const char *const ignoring[] = {PROGRAM_MPIEXEC, "-n", "1", IGNORING, NULL};
    static const char *const plain[] = {PROGRAM_MPIEXEC, "-n", "1", NULL};
    static const char *const more[] = {NULL};

    (void)state;
    program_need_mpi();
    assert_goes_on(run_with(SIGHUP, true, ignoring, more));
    assert_goes_on(run_with(SIGINT, true, ignoring, more));
    assert_ends(run_with(SIGUSR1, true, ignoring, more), 143);
    assert_ends(run_with(SIGHUP, true, plain, more), 143);
}

static void detached_launcher_of_mpiexec_ignores_signals(void **state)
{
    static const char *const ignoring[] = {IGNORING, NULL}, *const plain[] = {NULL};
    static const char *const more[] = {"-n", "2", "--mpiexec", PROGRAM_MPIEXEC_LINE, NULL};

    (void)state;
    program_need_mpi();
    assert_goes_on(run_with(SIGHUP, false, ignoring, more));
    assert_goes_on(run_with(SIGINT, false, ignoring, more));
    assert_ends(run_with(SIGTERM, false, ignoring, more), 143);
    assert_ends(run_with(SIGHUP, false, plain, more), 143);
}

static int setup(void **state)
{
    (void)state;
    program_write_text("ignore.sh", "trap '' HUP INT\nexec \"$@\"\n");
    /* about a second of steps */
    program_write_text("job.yaml",
                       "model: {name: mlp, hidden: [256]}\nepochs: 100\nbatch: 64\nlog_every: 1\n"
                       "checkpoint: off\nevaluate_every: 1000\n"
                       "data: {name: synthetic, shape: [1, 16, 16], classes: 4, samples: 1024}\n");
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(detached_ranks_ignore_hangup),
        cmocka_unit_test(detached_ranks_under_mpiexec_ignore_signals),
        cmocka_unit_test(detached_launcher_of_mpiexec_ignores_signals),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 2;
    failed = cmocka_run_group_tests(tests, setup, NULL);
    program_fini();
    return failed;
}
