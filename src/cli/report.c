/* report.c - `cohort report`: runs as one HTML file. */
#include <string.h>

#include "cli/machine.h"
#include "cli/report_eval.h"
#include "core/text.h"
#include "report/page.h"
#include "telemetry/format.h"

typedef struct report_options {
    const char *output;
    int64_t samples;
    cli_list set, plugins;
    bool quiet;
} report_options;

static const report_options report_defaults = {.output = "report.html", .samples = 12};

static const cli_argument report_arguments[] = {
    {"RUN_DIR...", false, "run directories, finished or not"},
    {NULL, false, NULL},
};

static const cli_option report_option_table[] = {
    {"output", 'o', CLI_TEXT, offsetof(report_options, output), "FILE", 0, 0,
     "the page to write; default: report.html"},
    {"samples", 0, CLI_COUNT, offsetof(report_options, samples), "N", 0, 200,
     "samples with the highest loss; 0: do not evaluate the weights; default: 12"},
    {"set", 's', CLI_LIST, offsetof(report_options, set), "KEY=VALUE", 0, 0,
     "change the configs for the evaluation, e.g. data.path=DIR; repeatable"},
    {"quiet", 'q', CLI_FLAG, offsetof(report_options, quiet), NULL, 0, 0, "no summary"},
    CLI_PLUGIN_OPTION(report_options),
    CLI_OPTIONS_END,
};

static co_status report_add(json_t *runs, const char *dir, const report_options *o)
{
    json_t *run;

    CO_TRY(co_page_run(&run, dir, CO_PAGE_MAX_POINTS));
    if (json_array_append_new(runs, run) != 0)
        return co_fail(CO_E_NOMEM, "out of memory");
    return cli_report_measure(run, dir, (size_t)o->samples, &o->set);
}

static co_status report_run(const void *options, int n, const char *const *argument)
{
    const report_options *o = options;
    json_t *runs = json_array();
    char cpu[128], machine[192];
    co_status st = runs ? CO_OK : co_fail(CO_E_NOMEM, "out of memory");

    if (st == CO_OK)
        st = cli_check_output(o->output, CLI_HTML, (const char *const[]){NULL});
    for (int i = 0; i < n && st == CO_OK; i++)
        st = report_add(runs, argument[i], o);
    if (st == CO_OK) {
        machine_cpu_name(cpu, sizeof(cpu));
        snprintf(machine, sizeof(machine), "%s, %d cores", cpu[0] ? CO_SHOW(cpu) : "unknown",
                 machine_cores());
        st = co_page_write(o->output, runs, machine, NULL);
    }
    json_decref(runs);
    if (st == CO_OK && !o->quiet)
        printf("%s: %d run%s; open it in a browser\n", CO_SHOW(o->output), n, n == 1 ? "" : "s");
    return st;
}

const co_command co_command_report = {
    .name = "report",
    .summary = "write runs as one page: curves, times, confusion, worst samples",
    .about =
        "One HTML file that needs no network and no other file. It has the results, curves of\n"
        "loss, metrics, rate and learning rate to zoom into, several runs in one chart, where\n"
        "the time went, the confusion matrix and the samples with the highest loss, layers,\n"
        "communication, events and the config, with the keys that differ. For matrix and samples\n"
        "the weights are evaluated, where the data are there; --samples 0 does without. Layers\n"
        "have times, and ranks theirs, in runs with --profile.",
    .example = "  cohort report runs/first\n"
               "  cohort report runs/* -o all.html --samples 0",
    .arguments = report_arguments,
    .options = report_option_table,
    .options_size = sizeof(report_options),
    .defaults = &report_defaults,
    .run = report_run,
};
