/*
 * test_ctl.c - requests to a running run: by its owner, by another user, malformed; and stopping
 * it.
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/program.h"
#include "shell.h"
#include "waits.h"

static const char *ctl_program;
static char ctl_said[65536];
static char ctl_dir[1024]; /* longer than a socket address */
static pid_t ctl_run_pid;  /* of the current run; 0: none */

/* Run the program to its end; its output on both streams is in ctl_said. */
static int ctl_run(const char *arguments)
{
    return shell_read(ctl_said, sizeof(ctl_said), "%s %s 2>&1", ctl_program, arguments);
}

static int ctl_ask(const char *request)
{
    char arguments[2048];

    snprintf(arguments, sizeof(arguments), "ctl %s %s", ctl_dir, request);
    return ctl_run(arguments);
}

static pid_t ctl_start_config(const char *config, const char *ranks, const char *set)
{
    const pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        execl(ctl_program, ctl_program, "train", config, "-q", "-n", ranks, "--run-dir", ctl_dir,
              "-s", set, (char *)NULL);
        _exit(127);
    }
    ctl_run_pid = pid;
    return pid;
}

static pid_t ctl_start(const char *ranks, const char *set)
{
    return ctl_start_config("long.yaml", ranks, set);
}

static long ctl_number(const char *key)
{
    json_t *object = NULL;
    long value = -1;

    if (ctl_ask("status --json") == 0)
        object = json_loads(ctl_said, 0, NULL);
    if (object)
        value = (long)json_integer_value(json_object_get(object, key));
    json_decref(object);
    return value;
}

/* Wait until the run reports at least this value. */
static void ctl_await(const char *key, long at_least)
{
    const uint64_t start = co_clock_ns();

    while (ctl_number(key) < at_least)
        if (!waits_more(start))
            fail_msg("%s did not come to %ld", key, at_least);
}

static int ctl_end(pid_t pid)
{
    const uint64_t start = co_clock_ns();
    int status = 0;

    while (waitpid(pid, &status, WNOHANG) != pid)
        if (!waits_more(start))
            fail_msg("it did not end");
    ctl_run_pid = pid == ctl_run_pid ? 0 : ctl_run_pid;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static char *ctl_file(const char *name)
{
    static char path[1280];

    snprintf(path, sizeof(path), "%s/%s", ctl_dir, name);
    return path;
}

/* In a folder whose path does not fit into a socket address, with the socket of a dead run. */
static void ctl_ranks_requests_change_number(void **state)
{
    const pid_t pid = ctl_start("2", "partition={kind: global}");
    struct stat about;

    (void)state;
    ctl_await("step", 20);
    assert_int_equal(stat(ctl_file("control.sock"), &about), 0);
    assert_true(S_ISSOCK(about.st_mode));
    assert_int_equal(about.st_mode & 0777, 0600);
    assert_int_equal(ctl_ask("checkpoint"), 0);
    ctl_await("saved_step", 20);
    assert_int_equal(ctl_ask("ranks 2"), 0);
    assert_string_equal(ctl_said, "the run has 2 ranks already\n");
    assert_int_equal(ctl_number("resizes"), 0);
    assert_int_equal(ctl_ask("ranks 4"), 0);
    ctl_await("ranks", 4);
    ctl_await("resizes", 1);
    assert_int_equal(ctl_ask("ranks 1"), 0);
    ctl_await("resizes", 2);
    assert_int_equal(ctl_number("ranks"), 1);
    assert_int_equal(ctl_ask("status"), 0);
    assert_non_null(strstr(ctl_said, "rank 0 (process "));
    assert_int_equal(ctl_ask("stop"), 0);
    assert_int_equal(ctl_end(pid), 0);
    assert_int_not_equal(access(ctl_file("control.sock"), F_OK), 0);
    assert_int_not_equal(access(ctl_file("summary.json"), F_OK), 0);
    program_remove(ctl_dir);
}

static pid_t ctl_rank(int rank)
{
    char words[32];
    const char *at;

    snprintf(words, sizeof(words), "rank %d (process ", rank);
    assert_int_equal(ctl_ask("status"), 0);
    at = strstr(ctl_said, words);
    assert_non_null(at);
    return (pid_t)atol(at + strlen(words));
}

/* Make the request of ranks of which one cannot answer, and dies. */
static void ctl_ask_dying(const char *request)
{
    const pid_t rank = ctl_rank(1);
    const long restarts = ctl_number("restarts");

    assert_int_equal(kill(rank, SIGSTOP), 0);
    assert_int_equal(ctl_ask(request), 0);
    co_clock_sleep_us(100000); /* it is passed on */
    assert_int_equal(kill(rank, SIGKILL), 0);
    if (strcmp(request, "stop") != 0)
        ctl_await("restarts", restarts + 1);
}

/* What ranks were asked when one died, those that continue are asked. */
static void ctl_request_outlives_a_rank(void **state)
{
    const pid_t pid = ctl_start("2", "on_failure=respawn");

    (void)state;
    ctl_await("step", 20);
    ctl_ask_dying("checkpoint");
    ctl_await("saved_step", 20);
    ctl_await("step", ctl_number("step") + 20);
    ctl_ask_dying("ranks 3");
    ctl_await("resizes", 1);
    assert_int_equal(ctl_number("ranks"), 3);
    ctl_await("step", ctl_number("step") + 20);
    ctl_ask_dying("stop");
    assert_int_equal(ctl_end(pid), 0);
    program_remove(ctl_dir);
}

/* Where ranks commit after epochs, steps of one epoch are different steps. */
static void train_steps_of_an_epoch_fail_once_each(void **state)
{
    const pid_t pid = ctl_start_config("apart.yaml", "2", "on_failure=respawn");

    (void)state;
    for (int i = 0; i < 2; i++) {
        ctl_await("step", 20 + 200 * i);
        assert_int_equal(kill(ctl_rank(1), SIGKILL), 0);
        ctl_await("restarts", i + 1);
    }
    assert_int_equal(ctl_ask("stop"), 0);
    assert_int_equal(ctl_end(pid), 0);
    program_remove(ctl_dir);
}

/* A checkpoint that was asked for fails as any other does: the run continues. */
static void ctl_checkpoint_that_fails_is_a_warning(void **state)
{
    const pid_t pid = ctl_start("2", "checkpoint={every: 1000000 steps, best: false}");
    FILE *file;

    (void)state;
    ctl_await("step", 20);
    rmdir(ctl_file("checkpoints"));
    file = fopen(ctl_file("checkpoints"), "w");
    assert_non_null(file);
    fclose(file);
    assert_int_equal(ctl_ask("checkpoint"), 0);
    ctl_await("step", ctl_number("step") + 200);
    assert_int_equal(ctl_number("saved_step"), 0);
    assert_int_equal(unlink(ctl_file("checkpoints")), 0);
    assert_int_equal(ctl_ask("checkpoint"), 0);
    ctl_await("saved_step", 20);
    assert_int_equal(ctl_ask("stop"), 0);
    ctl_end(pid);
    program_remove(ctl_dir);
}

/* Under mpiexec, rank 0 answers. */
static void ctl_under_mpiexec_is_answered_by_rank_0(void **state)
{
    char ranks[] = "2";
    const char *const command[] = {PROGRAM_MPIEXEC, "-n", ranks,       ctl_program, "train",
                                   "long.yaml",     "-q", "--run-dir", ctl_dir,     NULL};
    pid_t pid;

    (void)state;
    program_need_mpi();
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execvp(command[0], (char *const *)command);
        _exit(127);
    }
    ctl_run_pid = pid;
    ctl_await("step", 20);
    assert_int_equal(ctl_number("ranks"), 2);
    assert_int_equal(ctl_ask("status"), 0);
    assert_non_null(strstr(ctl_said, "rank 1 (process "));
    assert_int_equal(ctl_ask("ranks 3"), 2);
    assert_non_null(strstr(ctl_said, "--resume"));
    assert_int_equal(ctl_ask("checkpoint"), 0);
    ctl_await("saved_step", 20);
    assert_int_equal(ctl_ask("stop"), 0);
    assert_int_equal(ctl_end(pid), 0);
    assert_int_not_equal(access(ctl_file("control.sock"), F_OK), 0);
    assert_int_not_equal(access(ctl_file("summary.json"), F_OK), 0);
    program_remove(ctl_dir);
}

static void ctl_bad_request_is_refused(void **state)
{
    const pid_t pid = ctl_start("2", "batch_per_rank=8");

    (void)state;
    ctl_await("step", 5);
    assert_int_equal(ctl_ask("ranks 3"), 2);
    assert_non_null(strstr(ctl_said, "batch_per_rank"));
    assert_int_equal(ctl_ask("ranks 0"), 2);
    assert_int_equal(ctl_ask("ranks many"), 2);
    assert_int_equal(ctl_ask("ranks"), 2);
    assert_int_equal(ctl_ask("status 3"), 2);
    assert_int_equal(ctl_ask("dance"), 2);
    assert_non_null(strstr(ctl_said, "'dance' is no request"));
    assert_int_equal(ctl_run("ctl . status"), 2);
    assert_non_null(strstr(ctl_said, "no run listens here"));
    kill(pid, SIGTERM);
    assert_int_equal(ctl_end(pid), 143);
    program_remove(ctl_dir);
}

/* More at once than the run accepts wait for their turn. */
static void ctl_many_at_once_are_answered(void **state)
{
    enum { MANY = 60 };
    const pid_t run = ctl_start("1", "log_every=1000");
    pid_t pid[MANY];

    (void)state;
    ctl_await("step", 5);
    for (int i = 0; i < MANY; i++) {
        pid[i] = fork();
        assert_true(pid[i] >= 0);
        if (pid[i] == 0) {
            if (!freopen("/dev/null", "w", stdout))
                _exit(126);
            execl(ctl_program, ctl_program, "ctl", ctl_dir, "status", (char *)NULL);
            _exit(127);
        }
    }
    for (int i = 0; i < MANY; i++)
        assert_int_equal(ctl_end(pid[i]), 0);
    assert_int_equal(ctl_ask("stop"), 0);
    assert_int_equal(ctl_end(run), 0);
    program_remove(ctl_dir);
}

#define CTL_OTHER 65534

/* Root of a user namespace may have no other. */
static bool ctl_has_other_user(void)
{
    const pid_t pid = fork();
    int status = -1;

    if (pid == 0)
        _exit(setuid(CTL_OTHER) != 0);
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void ctl_other_user_is_refused(void **state)
{
    pid_t pid, other;

    (void)state;
    if (!ctl_has_other_user()) {
        print_message("skipped: only root can act as another user, where there is one\n");
        skip();
    }
    pid = ctl_start("1", "log_every=1000");
    ctl_await("step", 5);
    /* even if the file's mode lets other users in */
    assert_int_equal(chmod(ctl_file("control.sock"), 0666), 0);
    other = fork();
    if (other == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        char answer[256] = "";
        const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        if (chdir(ctl_dir) != 0 || setuid(CTL_OTHER) != 0)
            _exit(3);
        strcpy(address.sun_path, "control.sock");
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
            _exit(4);
        if (read(fd, answer, sizeof(answer) - 1) < 0) /* it is rejected before it has asked */
            _exit(5);
        _exit(strstr(answer, "another user") ? 0 : 6);
    }
    assert_int_equal(ctl_end(other), 0);
    assert_true(ctl_number("step") > 0); /* it is still running */
    kill(pid, SIGINT);
    assert_int_equal(ctl_end(pid), 130);
    program_remove(ctl_dir);
}

static void train_max_seconds_ends_with_checkpoint(void **state)
{
    const pid_t pid = ctl_start("2", "max_seconds=1");

    (void)state;
    assert_int_equal(ctl_end(pid), 0);
    assert_int_not_equal(access(ctl_file("summary.json"), F_OK), 0);
    program_remove(ctl_dir);
}

static void train_unsupported_on_failure_is_refused(void **state)
{
    char text[2048];

    (void)state;
    snprintf(text, sizeof(text),
             "train long.yaml -n 2 --run-dir %s -s on_failure=shrink -s 'partition={kind: random}'",
             ctl_dir);
    assert_int_equal(ctl_run(text), 2);
    assert_non_null(strstr(ctl_said, "respawn"));
    program_remove(ctl_dir);
}

/* A folder with a long path and a dead socket in it. */
static int ctl_make_folder(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char *at = stpcpy(ctl_dir, "run");
    int fd, bound;

    (void)state;
    for (int i = 0; i < 12; i++)
        at = stpcpy(at, "/a-folder-with-a-long-name");
    if (shell_run("mkdir -p %s", ctl_dir) != 0)
        return -1;
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path, sizeof(address.sun_path), "dead.sock");
    bound = bind(fd, (struct sockaddr *)&address, sizeof(address));
    close(fd);
    return bound == 0 ? rename("dead.sock", ctl_file("control.sock")) : -1;
}

/* End the run of a test that failed. */
static int ctl_clear(void **state)
{
    (void)state;
    if (ctl_run_pid) {
        kill(ctl_run_pid, SIGKILL);
        waitpid(ctl_run_pid, NULL, 0);
        ctl_run_pid = 0;
        program_remove(ctl_dir);
    }
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ctl_ranks_requests_change_number, ctl_make_folder,
                                        ctl_clear),
        cmocka_unit_test_setup_teardown(ctl_request_outlives_a_rank, ctl_make_folder, ctl_clear),
        cmocka_unit_test_setup_teardown(train_steps_of_an_epoch_fail_once_each, ctl_make_folder,
                                        ctl_clear),
        cmocka_unit_test_setup_teardown(ctl_checkpoint_that_fails_is_a_warning, ctl_make_folder,
                                        ctl_clear),
        cmocka_unit_test_setup_teardown(ctl_under_mpiexec_is_answered_by_rank_0, ctl_make_folder,
                                        ctl_clear),
        cmocka_unit_test_setup_teardown(ctl_bad_request_is_refused, ctl_make_folder, ctl_clear),
        cmocka_unit_test_setup_teardown(ctl_many_at_once_are_answered, ctl_make_folder, ctl_clear),
        cmocka_unit_test_setup_teardown(ctl_other_user_is_refused, ctl_make_folder, ctl_clear),
        cmocka_unit_test_setup_teardown(train_max_seconds_ends_with_checkpoint, ctl_make_folder,
                                        ctl_clear),
        cmocka_unit_test_setup_teardown(train_unsupported_on_failure_is_refused, ctl_make_folder,
                                        ctl_clear),
    };
    int failed;

    if (argc < 2 || program_init(argv[1]) != 0)
        return 2;
    ctl_program = argv[1];
    program_write_text("long.yaml", "model: {name: mlp, hidden: [16]}\nepochs: 1000000\n"
                                    "data: {name: synthetic, shape: [1, 8, 8], classes: 4}\n");
    program_write_text("apart.yaml",
                       "model: {name: mlp, hidden: [512, 512]}\nepochs: 1000\nbatch: 2\n"
                       "strategy: {name: local, period: 10}\n"
                       "data: {name: synthetic, shape: [1, 8, 8], classes: 4, samples: 100000}\n");
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    program_fini();
    return failed;
}
