/*
 * test_launch.c - whatever a rank or the caller does, the launch returns, reports the cause, and
 * leaves no process behind.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <cohort/launch.h>

#include "core/clock.h"
#include "core/process.h"
#include "core/thread.h"
#include "waits.h"

#define MAX 4

/* Shared memory in which ranks report to the test. */
typedef struct seen {
    _Atomic int pid[MAX];
    _Atomic int cores[MAX];
    _Atomic int rounds;
    int victim;
    void (*deed)(void);
} seen;

static seen *shared;
static bool as_threads; /* else processes */

static int map_shared(void **state)
{
    (void)state;
    signal(SIGINT, SIG_DFL); /* shells ignore it in background jobs */
    signal(SIGTERM, SIG_DFL);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return shared == MAP_FAILED ? -1 : 0;
}

static int clear_shared(void **state)
{
    (void)state;
    memset(shared, 0, sizeof(*shared));
    as_threads = false;
    return 0;
}

static int clear_shared_for_threads(void **state)
{
    clear_shared(state);
    as_threads = true;
    return 0;
}

static co_status launch(int ranks, uint32_t timeout_ms, co_rank_fn fn)
{
    const co_launch_options options = {.ranks = ranks,
                                       .timeout_ms = timeout_ms,
                                       .bind = true,
                                       .fork_one = true,
                                       .threads = as_threads};

    return co_launch(&options, fn, shared);
}

static void assert_no_process_left(int ranks)
{
    for (int rank = 0; rank < ranks; rank++) {
        assert_int_not_equal(shared->pid[rank], 0);
        assert_int_equal(kill(shared->pid[rank], 0), -1);
        assert_int_equal(errno, ESRCH);
    }
}

static co_status sum_ranks(co_comm *world, void *arg)
{
    seen *s = arg;
    int32_t rank = co_comm_rank(world), sum = 0;

    s->pid[rank] = getpid();
    s->cores[rank] = co_thread_cores();
    CO_TRY(co_comm_allreduce(world, &sum, &rank, 1, CO_I32, CO_SUM));
    return sum == co_comm_size(world) * (co_comm_size(world) - 1) / 2
               ? CO_OK
               : co_fail(CO_E_FAILED, "the sum is %d", sum);
}

static void launch_ranks_share_the_cores(void **state)
{
    int all = co_thread_cores();

    (void)state;
    for (int ranks = 1; ranks <= MAX; ranks++) {
        assert_int_equal(launch(ranks, 0, sum_ranks), CO_OK);
        assert_no_process_left(ranks);
        for (int rank = 0; rank < ranks; rank++) {
            assert_int_not_equal(shared->pid[rank], getpid());
            if (as_threads || rank == 0)
                assert_int_equal(shared->pid[rank], shared->pid[0]);
            else
                assert_int_not_equal(shared->pid[rank], shared->pid[rank - 1]);
            assert_int_in_range(shared->cores[rank], all / ranks > 0 ? all / ranks : 1,
                                all / ranks + 1);
        }
    }
    assert_int_equal(co_thread_cores(), all);
}

static void launch_one_rank_runs_in_caller(void **state)
{
    const co_launch_options options = {.ranks = 1};

    (void)state;
    assert_int_equal(co_launch(&options, sum_ranks, shared), CO_OK);
    assert_int_equal(shared->pid[0], getpid());
}

static void launch_impossible_number_of_ranks_is_refused(void **state)
{
    (void)state;
    assert_int_equal(launch(-1, 0, sum_ranks), CO_E_USAGE);
    assert_int_equal(launch(1 << 20, 0, sum_ranks), CO_E_USAGE);
}

/* All ranks meet repeatedly; in round 10 the victim misbehaves. */
static co_status meet(co_comm *world, void *arg)
{
    seen *s = arg;
    int rank = co_comm_rank(world);

    s->pid[rank] = getpid();
    for (int round = 0;; round++) {
        float value = 1;

        if (rank == 0)
            s->rounds = round;
        if (round == 10 && rank == s->victim && s->deed)
            s->deed();
        if (round == 10 && rank == s->victim && !s->deed)
            return co_fail(CO_E_DATA, "sample 7 is damaged");
        CO_TRY(co_comm_allreduce(world, &value, &value, 1, CO_F32, CO_SUM));
        if (!s->deed)
            co_clock_sleep_us(100);
    }
}

static void segfault(void)
{
    signal(SIGSEGV, SIG_DFL); /* in place of a sanitizer's */
    raise(SIGSEGV);
}

static void be_killed(void)
{
    raise(SIGKILL);
}

static void stand_still(void)
{
    if (!as_threads)
        raise(SIGSTOP);
    for (;;)
        pause(); /* a stop signal would stop all threads */
}

static void leave(void)
{
    _exit(7);
}

static void leave_quietly(void)
{
    _exit(0);
}

/* The other ranks must fail well before the communicator's limit. */
static void check_deed(void (*deed)(void), co_status status, const char *text)
{
    const bool hangs = deed == stand_still;

    for (int ranks = 2; ranks <= MAX; ranks += hangs ? 2 : 1) {
        uint64_t start = co_clock_ns();
        char who[64];

        shared->victim = ranks - 1;
        shared->deed = deed;
        assert_int_equal(launch(ranks, hangs ? WAITS_SHORT_MS : 2 * WAITS_MS, meet), status);
        assert_true(co_clock_seconds(start, co_clock_ns()) < WAITS_S);
        if (!strstr(co_error_message(), text))
            fail_msg("no \"%s\" in: %s", text, co_error_message());
        snprintf(who, sizeof(who), as_threads && deed ? "all ranks (%d)" : "(process %d)",
                 (int)shared->pid[shared->victim]);
        if (!hangs)
            assert_non_null(strstr(co_error_message(), who));
        assert_no_process_left(ranks);
    }
}

static void launch_threads_run_in_caller(void **state)
{
    const co_launch_options options = {.ranks = 3, .bind = true, .threads = true};
    const co_launch_options limited = {.ranks = 3, .timeout_ms = WAITS_MS, .threads = true};
    int all = co_thread_cores();

    (void)state;
    assert_int_equal(co_launch(&options, sum_ranks, shared), CO_OK);
    for (int rank = 0; rank < 3; rank++)
        assert_int_equal(shared->pid[rank], getpid());
    assert_int_equal(co_thread_cores(), all);
    shared->victim = 1;
    assert_int_equal(co_launch(&limited, meet, shared), CO_E_DATA);
    assert_string_equal(co_error_message(), "rank 1: sample 7 is damaged");
}

static co_status say_nothing(co_comm *world, void *arg)
{
    (void)arg;
    return co_comm_rank(world) == 0 ? CO_E_FAILED : co_comm_barrier(world);
}

static void launch_failure_without_message_has_a_cause(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        const co_launch_options options = {
            .ranks = 1 + k / 2, .fork_one = k % 2, .threads = k == 3, .timeout_ms = 60000};

        assert_int_equal(co_launch(&options, say_nothing, NULL), CO_E_FAILED);
        if (!strstr(co_error_message(), "it failed without saying why"))
            fail_msg("%d: %s", k, co_error_message());
    }
}

static void launch_failed_rank_ends_the_others(void **state)
{
    (void)state;
    check_deed(NULL, CO_E_DATA, "sample 7 is damaged");
}

static void launch_killed_rank_ends_the_others(void **state)
{
    (void)state;
    check_deed(be_killed, CO_E_PEER, "killed by signal 9");
    check_deed(segfault, CO_E_PEER, "killed by signal 11");
    check_deed(leave, CO_E_PEER, "code 7");
    check_deed(leave_quietly, CO_E_PEER, as_threads ? "code 0" : "has left");
}

/* The others wait for the limit, then for the grace period. */
static void launch_hanging_rank_ends_the_others(void **state)
{
    (void)state;
    check_deed(stand_still, CO_E_TIMEOUT, "rank");
}

/* Launches `meet` without end in a child, which exits with its status. */
static pid_t launcher(int ranks)
{
    const uint64_t start = co_clock_ns();
    pid_t pid;

    shared->victim = -1;
    pid = fork();
    if (pid == 0)
        _exit(co_exit_code(launch(ranks, WAITS_MS, meet)));
    while (shared->rounds < 20 && (ranks > 1 || !shared->pid[0]))
        assert_true(waits_more(start));
    return pid;
}

static void check_signal(int sig, int code)
{
    for (int ranks = 1; ranks <= MAX; ranks++) {
        int how;
        pid_t pid;

        memset(shared, 0, sizeof(*shared));
        pid = launcher(ranks);
        kill(pid, sig);
        assert_int_equal(waitpid(pid, &how, 0), pid);
        assert_true(WIFEXITED(how));
        assert_int_equal(WEXITSTATUS(how), code);
        assert_no_process_left(ranks);
    }
}

static void launch_signal_ends_all_ranks(void **state)
{
    (void)state;
    check_signal(SIGINT, 130);
    check_signal(SIGTERM, 143);
}

static void launch_killed_launcher_ends_ranks(void **state)
{
    pid_t pid = launcher(3);
    uint64_t start;
    int how;

    (void)state;
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    start = co_clock_ns();
    /* They are now children of init or a subreaper, which may be slow to reap them. */
    for (int rank = 0; rank < 3; rank++)
        for (char path[64], state_letter = 'R'; state_letter != 'Z';) {
            FILE *file;

            snprintf(path, sizeof(path), "/proc/%d/stat", (int)shared->pid[rank]);
            file = fopen(path, "re");
            if (!file)
                break;
            if (fscanf(file, "%*d (%*[^)]) %c", &state_letter) != 1)
                state_letter = 'Z';
            fclose(file);
            assert_true(waits_more(start));
        }
}

static co_status ask_parent_to_end(co_comm *world, void *arg)
{
    (void)world;
    (void)arg;
    kill(getppid(), SIGTERM);
    return CO_OK;
}

/* Whether or not it was in time for the ranks. */
static void launch_signal_that_the_caller_holds_is_given_back(void **state)
{
    sigset_t before;

    (void)state;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    co_process_hold_requests();
    assert_int_equal(co_process_asked(), CO_OK);
    for (int i = 0; i < 20; i++) {
        const co_launch_options options = {.ranks = 1, .fork_one = true};
        const co_status st = co_launch(&options, ask_parent_to_end, NULL);

        assert_true(st == CO_OK || st == CO_E_TERMINATED);
        assert_int_equal(co_process_asked(), CO_E_TERMINATED);
        assert_int_equal(co_process_asked(), CO_OK);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(launch_ranks_share_the_cores, clear_shared),
        cmocka_unit_test_setup(launch_one_rank_runs_in_caller, clear_shared),
        cmocka_unit_test_setup(launch_threads_run_in_caller, clear_shared),
        cmocka_unit_test_setup(launch_impossible_number_of_ranks_is_refused, clear_shared),
        cmocka_unit_test_setup(launch_failed_rank_ends_the_others, clear_shared),
        cmocka_unit_test_setup(launch_killed_rank_ends_the_others, clear_shared),
        cmocka_unit_test_setup(launch_hanging_rank_ends_the_others, clear_shared),
        cmocka_unit_test_setup(launch_signal_ends_all_ranks, clear_shared),
        cmocka_unit_test_setup(launch_killed_launcher_ends_ranks, clear_shared),
        cmocka_unit_test(launch_signal_that_the_caller_holds_is_given_back),
        cmocka_unit_test_setup(launch_ranks_share_the_cores, clear_shared_for_threads),
        cmocka_unit_test(launch_failure_without_message_has_a_cause),
        cmocka_unit_test_setup(launch_failed_rank_ends_the_others, clear_shared_for_threads),
        cmocka_unit_test_setup(launch_killed_rank_ends_the_others, clear_shared_for_threads),
        cmocka_unit_test_setup(launch_hanging_rank_ends_the_others, clear_shared_for_threads),
        cmocka_unit_test_setup(launch_signal_ends_all_ranks, clear_shared_for_threads),
    };

    return cmocka_run_group_tests(tests, map_shared, NULL);
}
