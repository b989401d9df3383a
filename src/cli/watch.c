/* watch.c - `cohort watch`: runs as they are now, in a browser or a terminal. */
#include "cli/report_eval.h"
#include "live/live.h"

typedef struct watch_options {
    int64_t port, samples;
    bool tui;
    cli_list set, plugins;
} watch_options;

static const watch_options watch_defaults = {.samples = 12};

static const cli_argument watch_arguments[] = {
    {"RUN_DIR...", false, "run directories, or folders of them such as runs/"},
    {NULL, false, NULL},
};

static const cli_option watch_option_table[] = {
    {"port", 0, CLI_COUNT, offsetof(watch_options, port), "N", 0, 65535,
     "port of 127.0.0.1 to listen on; default: one that is free"},
    {"tui", 0, CLI_FLAG, offsetof(watch_options, tui), NULL, 0, 0,
     "on this terminal instead of in a browser; q ends it"},
    {"samples", 0, CLI_COUNT, offsetof(watch_options, samples), "N", 0, 200,
     "samples with the highest loss; 0: do not evaluate weights; default: 12"},
    {"set", 's', CLI_LIST, offsetof(watch_options, set), "KEY=VALUE", 0, 0,
     "change the configs for the evaluation, e.g. data.path=DIR; repeatable"},
    CLI_PLUGIN_OPTION(watch_options),
    CLI_OPTIONS_END,
};

static co_status watch_measure(json_t *run, const char *dir, const void *arg)
{
    const watch_options *o = arg;

    return cli_report_measure(run, dir, (size_t)o->samples, &o->set);
}

static co_status watch_run(const void *options, int n, const char *const *argument)
{
    const watch_options *o = options;
    const co_live_options live = {.folder = argument,
                                  .n = (size_t)n,
                                  .port = (int)o->port,
                                  .out = stdout,
                                  .measure = {o->samples ? watch_measure : NULL, o}};

    return o->tui ? co_live_terminal(&live) : co_live_serve(&live);
}

const co_command co_command_watch = {
    .name = "watch",
    .summary = "show runs as they are now, in a browser or a terminal",
    .about =
        "Serves the page of `cohort report` on this machine and keeps it up to date: curves,\n"
        "progress, what each rank is doing. Of a folder it shows the 12 runs with the latest\n"
        "events, and those that begin. While somebody looks, weights that are new (the latest\n"
        "checkpoint of a run that trains, the final ones of others) are evaluated for the\n"
        "confusion matrix and the samples with the highest loss, in time that nobody else wants;\n"
        "--samples 0 does without. Listens on 127.0.0.1 alone, and gives nothing without\n"
        "the address that it prints. Runs are read, and never changed: `cohort ctl` is for\n"
        "that. From another machine use ssh -L, as printed. Ctrl-C ends the page, not the run,\n"
        "with exit code 0. --tui shows the curves on this terminal, which needs no browser.",
    .example = "  cohort watch runs/one\n"
               "  cohort watch runs --port 8000\n"
               "  cohort watch runs --tui",
    .arguments = watch_arguments,
    .options = watch_option_table,
    .options_size = sizeof(watch_options),
    .defaults = &watch_defaults,
    .run = watch_run,
};
