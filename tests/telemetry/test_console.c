/*
 * test_console.c - console output to a file, a terminal and a closed pipe.
 *
 * Each case runs in a child whose standard output is one of these.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <math.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "run.h"
#include "waits.h"

#define SEEN_MAX 65536

static co_status console_emit(co_sink *sink, const co_event *event)
{
    return sink->ops->event(sink, event);
}

/* Steps over half a second, or more on a busy machine. */
static co_status console_steps(co_sink *sink, uint64_t first, uint64_t stride)
{
    for (uint64_t i = 1; i <= 50; i++) {
        co_event event = run_step(first + i * stride);

        co_clock_sleep_us(10000);
        CO_TRY(console_emit(sink, &event));
    }
    return CO_OK;
}

/* Steps that take real time, an epoch, a message, the end. */
static co_status console_short_run(void)
{
    co_sink *sink;
    co_status st;
    co_event event;

    CO_TRY(co_sink_console.open(&sink, &run_info, &(co_sink_options){.quiet = false}));
    st = console_steps(sink, 0, 9);
    event = run_epoch(0, CO_EVENT_EPOCH);
    if (st == CO_OK)
        st = console_emit(sink, &event);
    sink->ops->text(sink, "a line for people");
    event = run_epoch(9, CO_EVENT_END);
    if (st == CO_OK)
        st = console_emit(sink, &event);
    sink->ops->close(sink);
    return st;
}

/* Epochs listed by rank, with and without a test split. */
static co_status console_ranks_run(void)
{
    const co_rank_figures ranks[] = {{1.3102, 0.5581, 0.6449, 0.7991},
                                     {1.3061, 0.5609, 0.6421, 0.8032}};
    co_event event = run_epoch(0, CO_EVENT_EPOCH);
    co_sink *sink;
    co_status st;

    event.rank = ranks;
    CO_TRY(co_sink_console.open(&sink, &run_info, &(co_sink_options){.quiet = false}));
    st = console_emit(sink, &event);
    event.has_test = false;
    event.epoch = 1;
    if (st == CO_OK)
        st = console_emit(sink, &event);
    sink->ops->close(sink);
    return st;
}

/* An epoch of four steps as lines: a fifth of the time waiting, a step without samples, 100
   classes. */
static co_status console_lines_run(void)
{
    co_run_info info = run_info;
    co_sink *sink;
    co_status st = CO_OK;
    co_event event;

    info.steps_per_epoch = 4;
    info.classes = 100;
    CO_TRY(co_sink_lines.open(&sink, &info, &(co_sink_options){.every = 2}));
    for (uint64_t step = 1; step <= 4 && st == CO_OK; step++) {
        event = run_step(step);
        event.train_accuracy_top5 = 0.95;
        event.last = (co_step_figures){.seconds = 0.1 * (double)step,
                                       .wait_seconds = 0.02 * (double)step,
                                       .samples = step == 4 ? 64 : 128,
                                       .loss = step == 2 ? (double)NAN : 0.75,
                                       .accuracy = step == 2 ? (double)NAN : 0.5,
                                       .accuracy_top5 = step == 2 ? (double)NAN : 1};
        st = console_emit(sink, &event);
    }
    event = run_epoch(0, CO_EVENT_EPOCH);
    if (st == CO_OK)
        st = console_emit(sink, &event);
    sink->ops->text(sink, "a line for people");
    event.kind = CO_EVENT_END;
    event.train_seconds = 4071.31;
    if (st == CO_OK)
        st = console_emit(sink, &event);
    sink->ops->close(sink);
    return st;
}

/* An epoch that waits for data, and one that does not. */
static co_status console_bound_run(void)
{
    co_run_info info = run_info;
    co_event event = run_epoch(0, CO_EVENT_EPOCH);
    co_sink *sink;
    co_status st;

    info.classes = 1000;
    event.train_seconds = 10;
    event.data_wait_seconds = 2.3;
    CO_TRY(co_sink_console.open(&sink, &info, &(co_sink_options){.quiet = false}));
    st = console_emit(sink, &event);
    event.train_seconds = 20;
    event.data_wait_seconds = 2.4;
    if (st == CO_OK)
        st = console_emit(sink, &event);
    event.kind = CO_EVENT_END;
    if (st == CO_OK)
        st = console_emit(sink, &event);
    sink->ops->close(sink);
    return st;
}

/* The end of the ninth epoch and part of the tenth, by ranks started in the ninth. */
static co_status console_resumed_run(void)
{
    co_run_info info = run_info;
    co_event event = run_epoch(8, CO_EVENT_EPOCH);
    co_sink *sink;
    co_status st;

    info.first_step = 4000;
    info.epoch_start_seconds = 80;
    info.epoch_start_wait = 1;
    event.train_seconds = 90;
    event.data_wait_seconds = 3.5;
    CO_TRY(co_sink_console.open(&sink, &info, &(co_sink_options){.quiet = false}));
    st = console_emit(sink, &event);
    if (st == CO_OK)
        st = console_steps(sink, info.first_step, 1);
    sink->ops->close(sink);
    return st;
}

/* Runs `run` in a child with `fd` as standard output; returns the child. */
static pid_t console_start_run(int fd, co_status (*run)(void))
{
    pid_t pid;

    fflush(stdout);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        signal(SIGPIPE, SIG_IGN);
        setenv("TERM", "xterm", 1);
        dup2(fd, STDOUT_FILENO);
        alarm(WAITS_S);
        _exit(co_exit_code(run()));
    }
    return pid;
}

static pid_t console_start(int fd)
{
    return console_start_run(fd, console_short_run);
}

static int console_join(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void console_read(char *seen, int fd)
{
    size_t used = 0;
    ssize_t n;

    while ((n = read(fd, seen + used, SEEN_MAX - 1 - used)) > 0)
        used += (size_t)n;
    seen[used] = '\0';
}

static void console_on_file_writes_plain_lines(void **state)
{
    static char seen[SEEN_MAX];
    FILE *file = tmpfile();

    (void)state;
    assert_non_null(file);
    assert_int_equal(console_join(console_start(fileno(file))), 0);
    lseek(fileno(file), 0, SEEK_SET);
    console_read(seen, fileno(file));
    fclose(file);
    assert_string_equal(
        seen,
        "mnist-net on mnist: 21,840 parameters, 2 ranks (sync over shm)\n"
        "60,000 training and 10,000 test samples, 128 a step, 4,690 steps\n"
        "epoch  1/10  loss 0.512  acc 0.823 | test loss 0.401 acc 0.861 | 24,310 samples/s  4.7 s\n"
        "a line for people\n"
        "done: test accuracy 0.8612, 4,690 steps in 47 s of training, 24,310 samples/s\n");
}

static void console_ranks_are_shown_like_tutorial(void **state)
{
    static const char expected[] =
        "Rank 0, epoch 0:  Train Loss 1.310  Train Acc. 0.558  --|-- Val. Loss 0.645 Val. Acc. "
        "0.799\n"
        "Rank 1, epoch 0:  Train Loss 1.306  Train Acc. 0.561  --|-- Val. Loss 0.642 Val. Acc. "
        "0.803\n"
        "epoch  1/10  loss 0.512  acc 0.823 | test loss 0.401 acc 0.861 | ";
    static const char untested[] = "Rank 0, epoch 1:  Train Loss 1.310  Train Acc. 0.558\n"
                                   "Rank 1, epoch 1:  Train Loss 1.306  Train Acc. 0.561\n";
    static char seen[SEEN_MAX];
    FILE *file = tmpfile();

    (void)state;
    assert_non_null(file);
    assert_int_equal(console_join(console_start_run(fileno(file), console_ranks_run)), 0);
    lseek(fileno(file), 0, SEEK_SET);
    console_read(seen, fileno(file));
    fclose(file);
    assert_non_null(strstr(seen, expected));
    assert_non_null(strstr(seen, untested));
}

static void console_see(char *seen, co_status (*run)(void))
{
    FILE *file = tmpfile();

    assert_non_null(file);
    assert_int_equal(console_join(console_start_run(fileno(file), run)), 0);
    lseek(fileno(file), 0, SEEK_SET);
    console_read(seen, fileno(file));
    fclose(file);
}

static void console_lines_give_values_and_means(void **state)
{
    static char seen[SEEN_MAX];

    (void)state;
    console_see(seen, console_lines_run);
    assert_string_equal(
        seen,
        "Epoch: [1/10][1/4]\tTime 0.100 (0.100)\tData 0.020 (0.020)\tSamples/s 1280.0 (1280.0)"
        "\tLoss 0.7500 (0.5124)\tAcc@1 0.5000 (0.8231)\tAcc@5 1.0000 (0.9500)\n"
        "Epoch: [1/10][2/4]\tTime 0.200 (0.150)\tData 0.040 (0.030)\tSamples/s 640.0 (853.3)"
        "\tLoss - (0.5124)\tAcc@1 - (0.8231)\tAcc@5 - (0.9500)\n"
        "Epoch: [1/10][4/4]\tTime 0.400 (0.250)\tData 0.080 (0.050)\tSamples/s 160.0 (448.0)"
        "\tLoss 0.7500 (0.5124)\tAcc@1 0.5000 (0.8231)\tAcc@5 1.0000 (0.9500)\n"
        " * training: Acc@1 0.8231 Loss 0.5124\n"
        " * test: Acc@1 0.8612 Acc@5 0.9900 Loss 0.4010\n"
        " * input-bound: 20% of the step\n"
        "a line for people\n"
        "### Training time: 1 h 7 min 51.31 s | 4071.31 s\n");
}

static void console_input_bound_is_reported(void **state)
{
    static char seen[SEEN_MAX];

    (void)state;
    console_see(seen, console_bound_run);
    assert_non_null(strstr(seen, "acc 0.861 top-5 0.990 | 24,310 samples/s  10 s | input-bound: "
                                 "23% of the step\n"));
    assert_non_null(strstr(seen, "samples/s  10 s\n"));
    assert_non_null(strstr(seen, "24,310 samples/s | input-bound: 12% of the step\n"));
}

static void console_lines_to_full_device_are_an_error(void **state)
{
    int fd = open("/dev/full", O_WRONLY);

    (void)state;
    if (fd < 0) {
        print_message("skipped: no /dev/full here\n");
        skip();
    }
    assert_int_equal(console_join(console_start_run(fd, console_lines_run)), co_exit_code(CO_E_IO));
    close(fd);
}

/* How often `word` occurs in `text`. */
static int console_count(const char *text, const char *word)
{
    int n = 0;

    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        n++;
    return n;
}

/* Returns the seconds it took. */
static double console_on_terminal(char *seen, unsigned short width, co_status (*run)(void))
{
    const uint64_t start_ns = co_clock_ns();
    struct winsize size = {.ws_row = 24, .ws_col = width};
    int master, slave;
    pid_t pid;

    assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
    pid = console_start_run(slave, run);
    close(slave);
    console_read(seen, master);
    close(master);
    assert_int_equal(console_join(pid), 0);
    return co_clock_seconds(start_ns, co_clock_ns());
}

static void console_on_terminal_draws_bar(void **state)
{
    static char seen[SEEN_MAX];
    double seconds;

    (void)state;
    seconds = console_on_terminal(seen, 120, console_short_run);
    /* At most ten drawings a second, however long half a second is on a busy machine. */
    assert_int_in_range(console_count(seen, "% "), 2, (int)(seconds * 10) + 1);
    assert_non_null(strstr(seen, "24,310 samples/s  loss 0.512  acc 0.823"));
    assert_non_null(strstr(seen, " left"));
    assert_non_null(strstr(seen, "[###"));
    assert_non_null(strstr(seen, "\r\033[Kepoch  1/10  loss 0.512"));
    /* Ends with a complete line. */
    assert_int_equal(seen[strlen(seen) - 1], '\n');
}

static void console_narrow_terminal_drops_loss_then_bar(void **state)
{
    static char seen[SEEN_MAX];

    (void)state;
    console_on_terminal(seen, 76, console_short_run);
    assert_non_null(strstr(seen, "24,310 samples/s  acc 0.823"));
    assert_non_null(strstr(seen, "[#"));
    console_on_terminal(seen, 60, console_short_run); /* no room for a bar */
    assert_null(strstr(seen, "[#"));
}

static void console_narrow_terminal_is_not_wrapped(void **state)
{
    static char seen[SEEN_MAX];
    const char *at = seen;

    (void)state;
    (void)console_on_terminal(seen, 40, console_short_run);
    assert_true(console_count(seen, "\r\033[Kepoch") >= 2);
    while ((at = strstr(at, "\r\033[K")) != NULL) {
        at += 4;
        if (strstr(at, "\r\033[K")) /* a drawing of the bar, not a finished line */
            assert_true(strcspn(at, "\r\n") < 40 || at[strcspn(at, "\r\n") + 1] == '\n');
    }
}

/* Time taken by earlier ranks counts neither for this epoch nor for the pace. */
static void console_resumed_run_counts_from_its_step(void **state)
{
    static char seen[SEEN_MAX];
    const char *at = seen;
    int drawn = 0;

    (void)state;
    (void)console_on_terminal(seen, 120, console_resumed_run);
    assert_non_null(strstr(seen, "samples/s  10 s | input-bound: 25% of the step\r\n"));
    for (; (at = strstr(at, "  acc 0.823  ")) != NULL; drawn++) {
        char *unit;
        const double left = strtod(at += strlen("  acc 0.823  "), &unit);

        /* at least 640 steps of at least 10 ms */
        assert_true(strncmp(unit, " s left", 7) != 0 || left >= 6.4);
    }
    assert_true(drawn >= 2);
}

static void console_closed_pipe_is_no_error(void **state)
{
    int fd[2];

    (void)state;
    assert_int_equal(pipe(fd), 0);
    close(fd[0]);
    assert_int_equal(console_join(console_start(fd[1])), 0);
    close(fd[1]);
}

static void console_full_device_is_an_error(void **state)
{
    int fd = open("/dev/full", O_WRONLY);

    (void)state;
    if (fd < 0) {
        print_message("skipped: no /dev/full here\n");
        skip();
    }
    assert_int_equal(console_join(console_start(fd)), co_exit_code(CO_E_IO));
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(console_on_file_writes_plain_lines),
        cmocka_unit_test(console_on_terminal_draws_bar),
        cmocka_unit_test(console_narrow_terminal_drops_loss_then_bar),
        cmocka_unit_test(console_narrow_terminal_is_not_wrapped),
        cmocka_unit_test(console_resumed_run_counts_from_its_step),
        cmocka_unit_test(console_closed_pipe_is_no_error),
        cmocka_unit_test(console_full_device_is_an_error),
        cmocka_unit_test(console_ranks_are_shown_like_tutorial),
        cmocka_unit_test(console_lines_give_values_and_means),
        cmocka_unit_test(console_input_bound_is_reported),
        cmocka_unit_test(console_lines_to_full_device_are_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
