/* test_live_page.c - the page of `cohort watch` in a real browser, headless, while runs are
   training: a run's numbers are in it and grow, its end is shown, and nothing is written to the
   console. */
#include "run_files.h"

#include <fcntl.h>
#include <signal.h>

#include "browser.h"
#include "spawn.h"
#include "waits.h"

static const char *program;
static browser b;
static pid_t watch;
static char url[256];

/* A run that does not end by itself. */
static pid_t page_train(const char *dir)
{
    const uint64_t start = co_clock_ns();
    char path[64];
    pid_t pid;

    snprintf(path, sizeof(path), "%s/metrics.jsonl", dir);
    pid = spawn_program(
        program,
        (const char *[]){"train", "net.yaml", "-n", "2", "--quiet", "--run-dir", dir, NULL}, -1);
    while (access(folder_path(path), F_OK) != 0)
        assert_true(waits_more(start));
    return pid;
}

static int page_setup(void **state)
{
    int out[2];
    char line[512], *at;
    FILE *stream;

    if (folder_make(state) != 0)
        return -1;
    if (!browser_start(&b, folder)) {
        printf("skipped: no Chromium here (Debian: chromium)\n");
        return 0;
    }
    run_write("net.yaml", "w",
              "model: {name: mlp, hidden: [16]}\n"
              "data: {name: synthetic, shape: [1, 8, 8], classes: 4, samples: 256}\n"
              "batch: 32\nepochs: 1000000\nlog_every: 200\n");
    mkdir(folder_path("runs"), 0700);
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    watch = spawn_program(program, (const char *[]){"watch", "runs", NULL}, out[1]);
    close(out[1]);
    stream = fdopen(out[0], "r");
    assert_non_null(fgets(line, sizeof(line), stream));
    at = strstr(line, "http://");
    assert_non_null(at);
    snprintf(url, sizeof(url), "%.*s", (int)strcspn(at, "\n"), at);
    fclose(stream);
    return 0;
}

static int page_teardown(void **state)
{
    browser_stop(&b);
    if (watch > 0) {
        kill(watch, SIGTERM);
        waitpid(watch, NULL, 0);
    }
    return folder_remove(state);
}

#define PAGE_CURVE(run) "document.querySelector('#chart-loss [data-run=\"" run "\"]')?.dataset"

/* The event of metrics.jsonl that has the loss of the curve's last point: of steps, or of epochs
   until there are steps enough for a line. */
static void assert_curve_ends_in_file(void)
{
    const uint64_t start = co_clock_ns();
    char *file = NULL, *last;
    size_t room = 0;
    bool found = false;

    last = browser_value(&b, "String(Number(" PAGE_CURVE("a") ".last).toPrecision(5))");
    while (!found) {
        FILE *in = fopen(folder_path("runs/a/metrics.jsonl"), "r");
        char value[64], *at;

        assert_non_null(in);
        while (!found && getline(&file, &room, in) > 0) {
            at = strstr(file, "\"train_loss\":");
            if (!at)
                continue;
            snprintf(value, sizeof(value), "%.*g", 5, strtod(at + 13, NULL));
            found = strtod(value, NULL) == strtod(last, NULL);
        }
        fclose(in);
        assert_true(found || waits_more(start));
    }
    free(file);
    free(last);
}

static void page_of_run_follows_it(void **state)
{
    pid_t run, other;

    (void)state;
    if (b.pid < 0)
        skip();
    browser_open(&b, url);
    browser_wait(&b, "document.title.startsWith('No run yet')", "the page of no run");
    browser_wait(&b, "location.hash === '' && location.pathname.startsWith('/s/')",
                 "the address without the token");
    run = page_train("runs/a");
    browser_wait(&b, "document.title.startsWith('a ')", "the page of the first run");
    browser_wait(&b, "document.getElementById('now-state').textContent === 'running'", "running");
    browser_wait(&b, PAGE_CURVE("a") "?.points > 2", "a curve of the loss");
    assert_curve_ends_in_file();
    free(browser_value(&b, "window.before = Number(" PAGE_CURVE("a") ".points)"));
    free(browser_value(&b, "window.step = document.getElementById('now-step').textContent"));
    browser_wait(&b, "Number(" PAGE_CURVE("a") ".points) > window.before", "more of the curve");
    browser_wait(&b,
                 "document.getElementById('now-step').textContent !== window.step &&"
                 "/^step [0-9,]+ of [0-9,]+/.test(window.step)",
                 "steps counted");
    browser_wait(&b, "document.querySelectorAll('#rank-bars .bar').length === 2", "two ranks");

    /* A zoomed chart stays so while numbers come; another run comes into the same charts. */
    other = page_train("runs/b");
    browser_wait(&b, "document.title.startsWith('2 runs')", "the second run");
    browser_wait(&b, PAGE_CURVE("b") "?.points > 1", "the second curve");

    spawn_wait(spawn_program(program, (const char *[]){"ctl", "runs/a", "stop", NULL}, -1));
    spawn_wait(run);
    browser_wait(&b, "document.getElementById('now-state').textContent === '1 running, 1 stopped'",
                 "the end of the first run");
    spawn_wait(spawn_program(program, (const char *[]){"ctl", "runs/b", "stop", NULL}, -1));
    spawn_wait(other);
    browser_wait(&b, "document.getElementById('now-state').textContent === '2 stopped'",
                 "the end of the second run");
    assert_string_equal(b.console, "");
}

/* What an expression gives, once that is `wanted`. */
static void assert_becomes(const char *expression, const char *wanted)
{
    const uint64_t start = co_clock_ns();
    char *now = browser_value(&b, expression);

    while (strcmp(now, wanted) != 0) {
        if (!waits_more(start))
            fail_msg("%s never became\n%.2000s\nbut is\n%.2000s", expression, wanted, now);
        free(now);
        now = browser_value(&b, expression);
    }
    free(now);
}

/* The weights that the runs have saved are evaluated, with what `cohort report` says of them: those
   of the end in the end, where those of an earlier checkpoint were. */
static void page_of_run_has_confusion_and_samples(void **state)
{
    static const char matrix[] = "document.querySelector('table.matrix')?.textContent ?? ''",
                      worst[] = "document.querySelector('.samples')?.textContent ?? ''";
    char *reported[2], file[320];

    (void)state;
    if (b.pid < 0)
        skip();
    spawn_wait(spawn_program(program,
                             (const char *[]){"report", "runs/a", "-q", "-o", "a.html", NULL}, -1));
    snprintf(file, sizeof(file), "file://%s", folder_path("a.html"));
    browser_open(&b, file);
    browser_wait(&b, "document.querySelectorAll('.samples img').length === 12", "the report");
    reported[0] = browser_value(&b, matrix);
    reported[1] = browser_value(&b, worst);
    assert_true(strlen(reported[0]) > 8);
    browser_open(&b, url);
    browser_wait(&b, "document.querySelectorAll('.samples img').length === 24", "both evaluated");
    assert_becomes(matrix, reported[0]);
    assert_becomes(worst, reported[1]);
    assert_string_equal(b.console, "");
    free(reported[0]);
    free(reported[1]);
}

/* Without the token, and with another's. */
static void page_of_stranger_shows_nothing(void **state)
{
    char stranger[256];
    int address;

    (void)state;
    if (b.pid < 0)
        skip();
    address = (int)strcspn(url, "#");
    snprintf(stranger, sizeof(stranger), "%.*s", address, url);
    browser_open(&b, stranger);
    browser_wait(&b, "document.body?.textContent.includes('whole address')", "the first page");
    snprintf(stranger, sizeof(stranger), "%.*s#%032d", address, url, 0);
    browser_open(&b, stranger);
    browser_wait(&b, "document.body?.textContent.includes('not the address')", "a refusal");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(page_of_run_follows_it),
        cmocka_unit_test(page_of_run_has_confusion_and_samples),
        cmocka_unit_test(page_of_stranger_shows_nothing),
    };

    program = argc > 1 ? argv[1] : "";
    return cmocka_run_group_tests(tests, page_setup, page_teardown);
}
