/* test_live_terminal.c - `cohort watch --tui` on a pseudo terminal: what is drawn, again after
   another size, without colours where there are to be none; and the terminal is given back. */
#include "run_files.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <termios.h>

#include "core/status.h"
#include "launch/control_socket.h"
#include "live/live.h"
#include "waits.h"

#define OUTPUT 1000000
#define ENTER  "\033[?1049h"
#define LEAVE  "\033[?1049l"

static struct {
    pid_t pid;
    int master, slave;
    struct termios before;
    size_t n;
    char text[OUTPUT];
} terminal;

static void terminal_size(int columns, int rows)
{
    const struct winsize size = {.ws_col = (unsigned short)columns, .ws_row = (unsigned short)rows};

    assert_int_equal(ioctl(terminal.master, TIOCSWINSZ, &size), 0);
}

static void terminal_forget(void)
{
    terminal.n = 0;
    *terminal.text = '\0';
}

static void terminal_open(void)
{
    terminal.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal.master >= 0);
    assert_int_equal(grantpt(terminal.master), 0);
    assert_int_equal(unlockpt(terminal.master), 0);
    terminal_size(100, 40);
    terminal.slave = open(ptsname(terminal.master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal.slave >= 0);
    assert_int_equal(tcgetattr(terminal.slave, &terminal.before), 0);
    terminal_forget();
}

/* Runs are in `name` of the test's folder; `locale` as in LC_ALL, `no_colour` as in NO_COLOR. */
static void terminal_start(const char *name, const char *locale, const char *no_colour)
{
    char dir[64];
    const char *folders[] = {dir};
    const co_live_options options = {.folder = folders, .n = 1, .out = stdout};

    snprintf(dir, sizeof(dir), "%s/%s", folder, name);
    terminal_open();
    fflush(stdout);
    terminal.pid = fork();
    assert_true(terminal.pid >= 0);
    if (terminal.pid > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGINT, SIG_DFL); /* ignored where this test is in the background */
    close(terminal.master);
    setenv("LC_ALL", locale, 1);
    setenv("NO_COLOR", no_colour, 1);
    setenv("TERM", "xterm", 1);
    dup2(terminal.slave, STDIN_FILENO);
    dup2(terminal.slave, STDOUT_FILENO);
    _exit(co_exit_code(co_live_terminal(&options)));
}

static void terminal_read(int ms)
{
    struct pollfd in = {.fd = terminal.master, .events = POLLIN};
    ssize_t got;

    if (poll(&in, 1, ms) <= 0)
        return;
    got = read(terminal.master, terminal.text + terminal.n, OUTPUT - 1 - terminal.n);
    if (got > 0)
        terminal.n += (size_t)got;
    terminal.text[terminal.n] = '\0';
}

/* Wait until `words` come, and forget what came before. */
static void terminal_wait(const char *words)
{
    const uint64_t start = co_clock_ns();

    while (!strstr(terminal.text, words)) {
        if (!waits_more(start))
            fail_msg("never drawn: %s, but: %s", words, terminal.text);
        terminal_read(100);
    }
}

static void terminal_press(const char *keys)
{
    assert_int_equal(write(terminal.master, keys, strlen(keys)), strlen(keys));
}

/* It has ended with exit code `code`, and the terminal is as it was. */
static void assert_given_back(int code)
{
    struct termios now;
    int how;

    assert_int_equal(waitpid(terminal.pid, &how, 0), terminal.pid);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == code);
    while (terminal_read(50), !strstr(terminal.text, LEAVE))
        continue;
    assert_non_null(strstr(terminal.text, "\033[?25h"));
    assert_int_equal(tcgetattr(terminal.slave, &now), 0);
    assert_int_equal(now.c_lflag, terminal.before.c_lflag);
    assert_int_equal(now.c_iflag, terminal.before.c_iflag);
    close(terminal.master);
    close(terminal.slave);
}

static int terminal_setup(void **state)
{
    if (folder_make(state) != 0)
        return -1;
    mkdir(folder_path("runs"), 0700);
    run_make("runs/a");
    for (int i = 1; i < 100; i++)
        run_add_steps("runs/a", i, i + 1, 1.0 / i);
    return 0;
}

static void terminal_shows_run_and_ends(void **state)
{
    (void)state;
    terminal_start("runs/a", "C.UTF-8", "");
    terminal_wait(ENTER);
    terminal_wait("q ends this");
    assert_non_null(strstr(terminal.text, "stopped"));
    assert_non_null(strstr(terminal.text, "secret-model on synthetic, sync, 2 ranks"));
    assert_non_null(strstr(terminal.text, "step 99 of 1,000"));
    assert_non_null(strstr(terminal.text, "training loss"));
    assert_non_null(strstr(terminal.text, "\xe2\xa3")); /* Braille */
    assert_non_null(strstr(terminal.text, "\033[0;34m"));
    terminal_press("q");
    assert_given_back(0);
}

/* Of fewer steps than `log_every`. */
static void terminal_run_without_steps_shows_epochs(void **state)
{
    (void)state;
    mkdir(folder_path("short"), 0700);
    run_make("short/a");
    run_write("short/a/metrics.jsonl", "a",
              "{\"event\":\"epoch\",\"epoch\":0,\"step\":8,\"train_loss\":2.5,\"lr\":0.1}\n"
              "{\"event\":\"epoch\",\"epoch\":1,\"step\":16,\"train_loss\":0.5,\"lr\":0.1}\n");
    terminal_start("short/a", "C.UTF-8", "");
    terminal_wait("q ends this");
    assert_non_null(strstr(terminal.text, "training loss"));
    assert_non_null(strstr(terminal.text, "learning rate"));
    assert_null(strstr(terminal.text, "test loss\033"));
    terminal_press("q");
    assert_given_back(0);
}

static void terminal_new_steps_change_few_cells(void **state)
{
    (void)state;
    terminal_start("runs/a", "C.UTF-8", "");
    terminal_wait("q ends this");
    while (terminal_read(300), terminal.n > 0)
        terminal_forget();
    run_add_steps("runs/a", 100, 101, 0.01);
    terminal_wait("\033[?2026l");
    /* The number of the step and a few dots: nothing is drawn that has not changed. */
    assert_null(strstr(terminal.text, "\033[2J"));
    assert_null(strstr(terminal.text, "training loss"));
    assert_int_in_range(terminal.n, 10, 4000);
    terminal_press("\003");
    assert_given_back(0);
}

static void terminal_other_size_is_drawn_anew(void **state)
{
    (void)state;
    terminal_start("runs/a", "C.UTF-8", "");
    terminal_wait("q ends this");
    terminal_forget();
    terminal_size(60, 12);
    terminal_wait("\033[2J");
    terminal_wait("\033[12;1H"); /* the last row */
    assert_null(strstr(terminal.text, "\033[13;"));
    terminal_forget();
    terminal_size(1, 1);
    terminal_wait("\033[2J");
    terminal_size(1000, 1000);
    terminal_wait("q ends this");
    terminal_press("q");
    assert_given_back(0);
}

static void launcher_answer(void *arg, char *reply, size_t size, const char *request)
{
    (void)arg;
    (void)request;
    snprintf(reply, size, "{\"phases\": [{\"rank\": 0}, {\"rank\": 1}]}");
}

/* What holds the lock of run `a` and answers as its launcher would: two ranks. Ends with this
   test. */
static pid_t launcher_start(void)
{
    const int lock = open(folder_path("runs/a/.lock"), O_RDWR | O_CLOEXEC);
    struct pollfd polls[CO_CONTROL_FDS];
    co_control *control;
    pid_t pid;

    assert_int_equal(flock(lock, LOCK_EX), 0);
    assert_int_equal(co_control_open(&control, folder_path("runs/a"), launcher_answer, NULL),
                     CO_OK);
    pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) {
        co_control_forget(control);
        close(lock);
        return pid;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        poll(polls, (nfds_t)co_control_polls(polls, control), -1);
        co_control_serve(control);
    }
}

/* All of the screen, in its new size. */
static void terminal_resize(int columns, int rows)
{
    terminal_forget();
    terminal_size(columns, rows);
    terminal_wait("\033[2J");
    terminal_wait("q ends this");
}

static void terminal_low_leaves_out_bars_that_do_not_fit(void **state)
{
    const pid_t launcher = launcher_start();

    (void)state;
    terminal_start("runs/a", "C.UTF-8", "");
    terminal_wait("rank 1");
    for (int rows = 9; rows >= 4; rows--) {
        terminal_resize(120, rows);
        assert_non_null(strstr(terminal.text, "runs/a"));
        assert_non_null(strstr(terminal.text, "step 99 of 1,000"));
        assert_non_null(strstr(terminal.text, "test accuracy -"));
        assert_true(!strstr(terminal.text, "rank 0") == (rows < 8));
        assert_true(!strstr(terminal.text, "1 of 2 ranks") == (rows != 8));
        assert_true(!strstr(terminal.text, "rank 1") == (rows < 9));
    }
    terminal_press("q");
    assert_given_back(0);
    kill(launcher, SIGKILL);
    waitpid(launcher, NULL, 0);
}

static void terminal_without_colour_has_none(void **state)
{
    (void)state;
    terminal_start("runs/a", "C.UTF-8", "1");
    terminal_wait("q ends this");
    assert_null(strstr(terminal.text, "\033[0;3"));
    terminal_press("q");
    assert_given_back(0);
}

static void terminal_without_unicode_has_ascii(void **state)
{
    (void)state;
    terminal_start("runs/a", "C", "");
    terminal_wait("q ends this");
    for (size_t i = 0; i < terminal.n; i++)
        assert_int_in_range((unsigned char)terminal.text[i], 1, 127);
    terminal_press("q");
    assert_given_back(0);
}

static void terminal_of_folder_changes_runs(void **state)
{
    (void)state;
    run_make("runs/zebra");
    terminal_start("runs", "C.UTF-8", "");
    terminal_wait("run 1 of 2");
    terminal_press("\t");
    terminal_wait("zebra");
    terminal_forget();
    terminal_press("\033[D");
    terminal_wait("training"); /* the blank after it is there already */
    terminal_press("q");
    assert_given_back(0);
}

static void terminal_ended_by_signal_is_given_back(void **state)
{
    (void)state;
    terminal_start("runs/a", "C.UTF-8", "");
    terminal_wait("q ends this");
    kill(terminal.pid, SIGTERM);
    assert_given_back(143);
    terminal_start("runs/a", "C.UTF-8", "");
    terminal_wait("q ends this");
    kill(terminal.pid, SIGINT);
    assert_given_back(0);
}

/* `fd` is standard input and output, and no terminal to draw on. */
static void assert_refused(int fd, const char *words)
{
    char dir[64];
    const char *folders[] = {dir};
    const co_live_options options = {.folder = folders, .n = 1, .out = stdout};
    const int in = dup(STDIN_FILENO), out = dup(STDOUT_FILENO);
    co_status st;

    snprintf(dir, sizeof(dir), "%s/runs", folder);
    fflush(stdout);
    dup2(fd, STDIN_FILENO);
    dup2(fd, STDOUT_FILENO);
    st = co_live_terminal(&options);
    dup2(in, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    close(in);
    close(out);
    assert_int_equal(st, CO_E_USAGE);
    assert_non_null(strstr(co_error_message(), words));
}

static void terminal_missing_is_refused(void **state)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    (void)state;
    assert_refused(null, "needs a terminal");
    close(null);
}

static void terminal_dumb_is_refused(void **state)
{
    (void)state;
    terminal_open();
    setenv("TERM", "dumb", 1);
    assert_refused(terminal.slave, "TERM=dumb says");
    close(terminal.master);
    close(terminal.slave);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(terminal_shows_run_and_ends, terminal_setup, folder_remove),
        cmocka_unit_test_setup_teardown(terminal_run_without_steps_shows_epochs, terminal_setup,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(terminal_new_steps_change_few_cells, terminal_setup,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(terminal_other_size_is_drawn_anew, terminal_setup,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(terminal_low_leaves_out_bars_that_do_not_fit,
                                        terminal_setup, folder_remove),
        cmocka_unit_test_setup_teardown(terminal_without_colour_has_none, terminal_setup,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(terminal_without_unicode_has_ascii, terminal_setup,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(terminal_of_folder_changes_runs, terminal_setup,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(terminal_ended_by_signal_is_given_back, terminal_setup,
                                        folder_remove),
        cmocka_unit_test_setup_teardown(terminal_missing_is_refused, terminal_setup, folder_remove),
        cmocka_unit_test_setup_teardown(terminal_dumb_is_refused, terminal_setup, folder_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
