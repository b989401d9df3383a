/* compare.c - `cohort compare`: runs strategies side by side, each on several numbers of ranks. */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cohort/launch.h>

#include "cli/compare.h"
#include "cli/machine.h"
#include "core/fs.h"
#include "core/log.h"
#include "core/plural.h"
#include "core/text.h"

#define COMPARE_PAGE         "report.html"
#define COMPARE_PLOT_SECONDS 120 /* gnuplot's time limit */

static const cli_argument compare_arguments[] = {
    {"CONFIG", false, "what to train: a YAML file"},
    {NULL, false, NULL},
};

static const cli_option compare_option_table[] = {
    {"strategies", 0, CLI_TEXT, offsetof(compare_options, strategies), "LIST", 0, 0,
     "names, or {name: ..., key: value}, with commas between them"},
    {"ranks", 'n', CLI_TEXT, offsetof(compare_options, ranks), "LIST", 0, 0,
     "numbers of ranks, with commas between them"},
    {"seeds", 0, CLI_TEXT, offsetof(compare_options, seeds), "LIST", 0, 0,
     "run every cell with each of these seeds, for means and their spread"},
    {"out", 'o', CLI_TEXT, offsetof(compare_options, out), "DIR", 0, 0,
     "where results go; default: runs/compare-<date>-<time>"},
    {"set", 's', CLI_LIST, offsetof(compare_options, set), "KEY=VALUE", 0, 0,
     "change the config of every cell; repeatable"},
    {"resume", 0, CLI_FLAG, offsetof(compare_options, resume), NULL, 0, 0,
     "keep the finished cells of --out, run the others; name all of them"},
    {"cell", 0, CLI_COUNT, offsetof(compare_options, cell), "K", 1, 1000000,
     "run the K-th cell alone, without tables: for an array of jobs"},
    {"limit", 0, CLI_COUNT, offsetof(compare_options, limit_seconds), "SECONDS", 0, 1000000000,
     "end a cell that takes longer; 0 (default): never"},
    {"quiet", 'q', CLI_FLAG, offsetof(compare_options, quiet), NULL, 0, 0,
     "nothing on standard output"},
    CLI_PLUGIN_OPTION(compare_options),
    CLI_OPTIONS_END,
};

/* gnuplot's output goes to plots.log, which is kept if it is not empty. */
static co_status compare_run_gnuplot(const char *dir, const co_child_guard *guard)
{
    /* The script is UTF-8; gnuplot warns in other locales. */
    static const char *const argv[] = {"env", "LC_ALL=C.UTF-8", "gnuplot", CO_REPORT_SCRIPT, NULL};
    co_child child = {
        .file = "env", .argv = argv, .folder = dir, .limit_seconds = COMPARE_PLOT_SECONDS};
    co_child_ending ending = {0};
    char path[4352];
    co_status st;

    snprintf(path, sizeof(path), "%s/plots.log", dir);
    (void)unlink(path); /* from an earlier run */
    CO_TRY(co_open_fresh(&child.log, path));
    st = co_child_run(&ending, guard, &child);
    if (lseek(child.log, 0, SEEK_END) == 0)
        remove(path);
    close(child.log);
    if (st == CO_OK && (ending.late || ending.wait != 0))
        co_log(CO_LOG_WARN, "gnuplot could not draw all plots; see %s", path);
    return st;
}

static co_status compare_plot(const compare_plan *plan, const co_child_guard *guard,
                              const compare_options *options)
{
    char gnuplot[4096];

    CO_TRY(co_report_write_script(plan->dir, &plan->report));
    if (machine_find_program(gnuplot, sizeof(gnuplot), "gnuplot"))
        return compare_run_gnuplot(plan->dir, guard);
    if (!options->quiet)
        printf("no plots: gnuplot is not here; install gnuplot-nox, then run `gnuplot "
               "%s` in %s\n",
               CO_REPORT_SCRIPT, plan->dir);
    return CO_OK;
}

static co_status compare_status(const compare_plan *plan)
{
    const co_report *report = &plan->report;
    const co_cell *first = NULL;
    size_t failed = 0;

    for (size_t i = 0; i < report->n_cell; i++)
        if (report->cell[i].state == CO_CELL_FAILED) {
            first = first ? first : &report->cell[i];
            failed++;
        }
    if (!failed)
        return CO_OK;
    return co_fail(CO_E_FAILED, "%zu of %zu cells failed: %s on %d rank%s%s%s: %s%s%s%s", failed,
                   report->n_cell, first->strategy, first->ranks, co_plural((uint64_t)first->ranks),
                   first->seed ? ", seed " : "", first->seed ? first->seed : "", first->why,
                   failed > 1 ? "; for the others see " : "", failed > 1 ? plan->dir : "",
                   failed > 1 ? "/table.txt" : "");
}

/* Write tables and plots of the results so far, also after an interruption. */
static co_status compare_report(compare_plan *plan, const co_child_guard *guard,
                                const compare_options *options, bool plots)
{
    char page[4352];

    co_report_relate(&plan->report);
    CO_TRY(co_report_write_tables(plan->dir, &plan->report));
    snprintf(page, sizeof(page), "%s/" COMPARE_PAGE, plan->dir);
    CO_TRY(co_report_write_page(page, &plan->report));
    if (!options->quiet) {
        printf("\n");
        co_report_print(stdout, &plan->report);
        printf("\n");
    }
    if (plots)
        CO_TRY(compare_plot(plan, guard, options));
    if (!options->quiet)
        printf("results: %s (" COMPARE_PAGE ", table.txt, table.csv, table.json%s)\n",
               CO_SHOW(plan->dir), plots ? ", " CO_REPORT_SCRIPT " and its plots" : "");
    return CO_OK;
}

static co_status compare_all(compare_plan *plan, const co_child_guard *guard,
                             const compare_options *options)
{
    co_status st, reported;

    if ((size_t)options->cell > plan->report.n_cell)
        return co_fail(CO_E_USAGE, "--cell %d: this comparison has %zu", (int)options->cell,
                       plan->report.n_cell);
    CO_TRY(compare_plan_take_over(plan, options->resume || options->cell));
    CO_TRY(co_fs_mkdirs(plan->dir));
    st = compare_run_cells(plan, guard, options);
    if (options->cell)
        return st == CO_OK ? compare_status(plan) : st;
    if (st != CO_OK && st != CO_E_INTERRUPTED && st != CO_E_TERMINATED)
        return st;
    reported = compare_report(plan, guard, options, st == CO_OK);
    if (st != CO_OK)
        return co_fail(st, "%s; `cohort compare ... --out %s --resume` continues it",
                       st == CO_E_INTERRUPTED ? "interrupted" : "terminated", plan->dir);
    return reported == CO_OK ? compare_status(plan) : reported;
}

static co_status compare_run(const void *options, int n, const char *const *argument)
{
    const compare_options *o = options;
    compare_plan plan;
    co_child_guard guard;
    co_status st;

    (void)n;
    if (co_launch_under_mpi())
        return co_fail(CO_E_USAGE, "a comparison starts its ranks itself; leave out mpiexec");
    CO_TRY(cli_check_started("compare", argument[0]));
    if (!o->strategies || !o->ranks)
        return co_fail(CO_E_USAGE, "--%s is missing, e.g. --strategies sync -n 1,2",
                       o->strategies ? "ranks" : "strategies");
    if (o->resume && !o->out)
        return co_fail(CO_E_USAGE, "--resume needs --out DIR, the comparison to continue");
    if (o->cell && !o->out)
        return co_fail(CO_E_USAGE, "--cell needs --out DIR, the same for all cells");
    if (o->out)
        CO_TRY(co_fs_check_folder(o->out, "--out"));
    CO_TRY(compare_plan_open(&plan, argument[0], o));
    co_child_guard_enter(&guard);
    st = compare_all(&plan, &guard, o);
    co_child_guard_leave(&guard);
    compare_plan_close(&plan);
    return st;
}

const co_command co_command_compare = {
    .name = "compare",
    .summary = "run strategies side by side on several numbers of ranks",
    .about =
        "Trains the config once for each strategy on each number of ranks, one after the other,\n"
        "each as a `cohort train` of its own with a run directory and its output in log.txt. A\n"
        "cell that fails does not stop the others; the table says why it failed, and the exit\n"
        "code is 1. After Ctrl-C, --resume continues where it was.\n"
        "\n"
        "The folder gets report.html, one file to open in a browser: speedup and accuracy over\n"
        "ranks, T_comp and T_sync, what each strategy costs, and the runs as `cohort report` "
        "shows\n"
        "them. Besides table.txt, table.csv and table.json, and through gnuplot, where that is\n"
        "installed, as PNG and SVG: speedup, accuracy, loss, accuracy-time, loss-time and bytes.\n"
        "plots.gp is the script that draws them. With --seeds the table has means and standard\n"
        "deviations, and the plots show min and max. Speedup is that of training time,\n"
        "over the same strategy on one rank, else over `sync` on one. The predicted one is\n"
        "R / (1 + T_sync / T_comp), from the seconds that rank 0 spent in the strategy and in\n"
        "computing. A rank alone takes all cores unless `threads` says otherwise; --set threads=1\n"
        "measures what more cores bring.",
    .example = "  cohort compare configs/mnist-net.yaml --strategies sync,local -n 1,2 --set "
               "threads=1\n"
               "  cohort compare configs/mnist-net.yaml -n 2 --out runs/periods --set epochs=2 \\\n"
               "    --strategies 'sync, {name: local, period: 4}, {name: local, period: 64}'",
    .arguments = compare_arguments,
    .options = compare_option_table,
    .options_size = sizeof(compare_options),
    .run = compare_run,
};
