/*
 * compare_run.c - runs the cells of a comparison one after the other, each as a `cohort train`
 * process.
 *
 * A separate process starts like any other run, and its crash does not end the comparison. Does not
 * know what a strategy is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/compare.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/plural.h"
#include "core/text.h"
#include "telemetry/format.h"

#define RUN_MAX_NAME 40    /* of a strategy, so that lines do not wrap */
#define RUN_MAX_TAIL 1024L /* bytes at the end of a log that are searched for progress */
#define RUN_MAX_PATH 4352
#define RUN_MAX_LOG  ((size_t)64 << 20)
#define RUN_SELF     "/proc/self/exe"

static const co_open_rule run_log_rule = {.status = CO_E_IO, .own = true, .max = RUN_MAX_LOG};
static const char run_error_mark[] = "cohort: error: ";

/* State of the progress line. */
typedef struct run_progress {
    const co_report *report;
    size_t at;      /* index of the current cell */
    size_t waiting; /* cells that have not started */
    double spent;   /* seconds spent in the cells run so far */
    size_t ran;
    bool quiet, terminal;
} run_progress;

/* ---- progress ---- */

/* "[ 3/20] local period=16, 2 ranks" */
static void run_print_name(const run_progress *p)
{
    const co_cell *cell = &p->report->cell[p->at];
    char n[24];
    int width = snprintf(n, sizeof(n), "%zu", p->report->n_cell);

    printf("%s[%*zu/%s] %.*s, %d rank%s%s%s", p->terminal ? "\r\033[K" : "", width, p->at + 1, n,
           RUN_MAX_NAME, cell->strategy, cell->ranks, co_plural((uint64_t)cell->ranks),
           cell->seed ? ", seed " : "", cell->seed ? cell->seed : "");
}

/* Estimated time left if the remaining cells take the mean time of those run so far. */
static void run_print_left(const run_progress *p, double seconds)
{
    const double mean = p->ran ? p->spent / (double)p->ran : 0;
    double now = mean > seconds ? mean - seconds : 0;
    char text[32];

    if (p->ran)
        printf(" | about %s left",
               co_format_seconds(text, sizeof(text), mean * (double)p->waiting + now));
}

/* ", epoch 3/10", from the last progress line in the cell's log. */
static void run_find_epoch(char *out, size_t size, const co_cell *cell)
{
    char path[RUN_MAX_PATH], tail[RUN_MAX_TAIL + 1] = "";
    FILE *log;

    out[0] = '\0';
    snprintf(path, sizeof(path), "%s/" COMPARE_LOG, cell->dir);
    if (co_open_stream(&log, NULL, path, &run_log_rule) != CO_OK)
        return;
    if (fseek(log, -RUN_MAX_TAIL, SEEK_END) != 0)
        rewind(log);
    (void)!fread(tail, 1, RUN_MAX_TAIL, log);
    fclose(log);
    for (const char *at = tail; (at = strstr(at, "\nepoch ")); at++) {
        const char *count = at + 7 + strspn(at + 7, " ");

        snprintf(out, size, ", epoch %.*s", (int)strspn(count, "0123456789/"), count);
    }
}

static bool run_tick(void *arg, double seconds)
{
    const run_progress *p = arg;
    char text[32], epoch[48];

    if (!p->terminal)
        return false;
    run_find_epoch(epoch, sizeof(epoch), &p->report->cell[p->at]);
    run_print_name(p);
    printf(": running for %s%s", co_format_seconds(text, sizeof(text), seconds), epoch);
    run_print_left(p, seconds);
    fflush(stdout);
    return false;
}

static void run_print_result(const run_progress *p, bool kept)
{
    const co_cell *cell = &p->report->cell[p->at];
    char text[32];

    if (p->quiet)
        return;
    run_print_name(p);
    if (cell->state == CO_CELL_DONE) {
        printf(": %.2f s of training", cell->train_seconds >= 0 ? cell->train_seconds : 0);
        if (cell->samples_per_second >= 0 && cell->samples_per_second < 1e18)
            printf(", %s samples/s", co_format_rate(text, sizeof(text), cell->samples_per_second));
        if (cell->test_accuracy >= 0)
            printf(", test accuracy %.4f", cell->test_accuracy);
        for (int i = 0; i < cell->metrics->n; i++)
            printf(", %s %.4f", cell->metrics->metric[i]->name, cell->metric[i]);
    } else {
        printf(": %s: %s", cell->state == CO_CELL_FAILED ? "failed" : "stopped",
               CO_SHOW(cell->why));
    }
    if (kept)
        printf(" (from before)");
    else if (p->waiting && cell->state != CO_CELL_STOPPED)
        run_print_left(p, p->ran ? p->spent / (double)p->ran : 0);
    printf("\n");
    fflush(stdout);
}

/* ---- one cell ---- */

/* Text after the last "cohort: error: " at the start of a line; false: none. */
static bool run_find_error(char *out, size_t size, const char *log)
{
    const char *found = NULL;

    for (const char *at = log; (at = strstr(at, run_error_mark)); at++)
        if (at == log || at[-1] == '\n')
            found = at;
    if (!found)
        return false;
    found += sizeof(run_error_mark) - 1;
    snprintf(out, size, "%.*s", (int)strcspn(found, "\n"), found);
    return true;
}

/* Record why a cell failed. */
static void run_explain(co_cell *cell, const co_child_ending *ending,
                        const compare_options *options)
{
    char path[RUN_MAX_PATH];
    uint8_t *log = NULL;
    size_t size = 0;
    bool found = false;

    cell->state = CO_CELL_FAILED;
    if (ending->late) {
        snprintf(cell->why, sizeof(cell->why), "took longer than %lld s, the limit",
                 (long long)options->limit_seconds);
        return;
    }
    snprintf(path, sizeof(path), "%s/" COMPARE_LOG, cell->dir);
    if (co_fs_read_as(&log, &size, path, &run_log_rule) == CO_OK)
        found = run_find_error(cell->why, sizeof(cell->why), (const char *)log);
    co_free(log);
    if (found)
        return;
    if (WIFSIGNALED(ending->wait))
        snprintf(cell->why, sizeof(cell->why), "killed by signal %d (%s)", WTERMSIG(ending->wait),
                 strsignal(WTERMSIG(ending->wait)));
    else
        snprintf(cell->why, sizeof(cell->why),
                 "exited with code %d and gave no reason in its " COMPARE_LOG,
                 WEXITSTATUS(ending->wait));
}

/* Builds: cohort train -n N --run-dir=DIR --set ... -- CONFIG. */
static co_status run_arguments(const char ***out, const compare_plan *plan, size_t i)
{
    const co_cell *cell = &plan->report.cell[i];
    co_arena *arena = co_config_arena(plan->config);
    const char **argv =
        co_arena_alloc(arena, (size_t)(plan->set->n + plan->plugins->n) * 2 + 16, sizeof(*argv));
    const char *ranks = co_arena_printf(arena, "%d", cell->ranks);
    const char *dir = co_arena_printf(arena, "--run-dir=%s", cell->dir);
    size_t n = 0;

    if (!argv || !ranks || !dir)
        return CO_E_NOMEM;
    argv[n++] = "cohort";
    argv[n++] = "train";
    argv[n++] = "-n";
    argv[n++] = ranks;
    argv[n++] = dir;
    for (int k = 0; k < plan->set->n; k++) {
        argv[n++] = "--set";
        argv[n++] = plan->set->text[k];
    }
    argv[n++] = "--set";
    argv[n++] = plan->strategy[i];
    if (plan->seed[i]) {
        argv[n++] = "--set";
        argv[n++] = plan->seed[i];
    }
    for (int k = 0; k < plan->plugins->n; k++) {
        argv[n++] = "--plugin";
        argv[n++] = plan->plugins->text[k];
    }
    argv[n++] = "--";
    argv[n++] = plan->path;
    *out = argv;
    return CO_OK;
}

static co_status run_open_log(int *out, const co_cell *cell)
{
    char path[RUN_MAX_PATH];
    int n = snprintf(path, sizeof(path), "%s/" COMPARE_LOG, cell->dir);

    if (n < 0 || (size_t)n >= sizeof(path))
        return co_fail(CO_E_USAGE, "%s: the path is too long", cell->dir);
    CO_TRY(compare_plan_clear(cell));
    CO_TRY(co_fs_mkdirs(cell->dir));
    return co_open_fresh(out, path);
}

/* An error ends the comparison: it was interrupted, or no cell could run. */
static co_status run_cell(compare_plan *plan, run_progress *p, const co_child_guard *guard,
                          const compare_options *options)
{
    co_cell *cell = &plan->report.cell[p->at];
    co_child child = {.file = RUN_SELF,
                      .limit_seconds = (double)options->limit_seconds,
                      .tick = run_tick,
                      .arg = p};
    co_child_ending ending = {0};
    const char **argv;
    co_status st;

    CO_TRY(run_arguments(&argv, plan, p->at));
    CO_TRY(run_open_log(&child.log, cell));
    child.argv = argv;
    run_tick(p, 0);
    st = co_child_run(&ending, guard, &child);
    close(child.log);
    if (st != CO_OK) {
        cell->state = CO_CELL_STOPPED;
        snprintf(cell->why, sizeof(cell->why), "%s", co_error_message());
        return st;
    }
    p->spent += ending.seconds;
    p->ran++;
    if (ending.late || !WIFEXITED(ending.wait) || WEXITSTATUS(ending.wait) != 0) {
        run_explain(cell, &ending, options);
    } else if (co_cell_read(cell) != CO_OK) {
        cell->state = CO_CELL_FAILED;
        snprintf(cell->why, sizeof(cell->why), "%s", co_error_message());
    }
    return CO_OK;
}

static bool run_is_terminal(void)
{
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
}

co_status compare_run_cells(compare_plan *plan, const co_child_guard *guard,
                            const compare_options *options)
{
    const co_report *report = &plan->report;
    const size_t first = options->cell ? (size_t)options->cell - 1 : 0;
    const size_t end = options->cell ? first + 1 : report->n_cell;
    run_progress p = {.report = report, .at = first, .quiet = options->quiet};
    co_status st = CO_OK;

    p.terminal = !p.quiet && run_is_terminal();
    for (size_t i = first; i < end; i++)
        p.waiting += report->cell[i].state == CO_CELL_WAITING;
    for (; p.at < end && st == CO_OK; p.at++) {
        const bool kept = report->cell[p.at].state == CO_CELL_DONE;

        if (!kept) {
            p.waiting--;
            st = run_cell(plan, &p, guard, options);
        }
        run_print_result(&p, kept);
    }
    return st;
}
