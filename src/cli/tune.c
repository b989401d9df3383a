/*
 * tune.c - `cohort tune`: measures on this machine, and proposes ranks, threads, batch, buckets,
 * strategy and readers, those that keep the result apart from those that change it.
 */
#include <string.h>
#include <unistd.h>

#include <cohort/launch.h>

#include "cli/tune.h"
#include "core/clock.h"
#include "core/process.h"
#include "core/thread.h"
#include "data/data.h"

static const tune_options tune_defaults = {.ms = 1000};

static const cli_argument tune_arguments[] = {
    {"CONFIG", false, "what to train: a YAML file, or a name of `cohort list configs`"},
    {NULL, false, NULL},
};

static const cli_option tune_option_table[] = {
    {"apply", 0, CLI_FLAG, offsetof(tune_options, apply), NULL, 0, 0,
     "write the config with what keeps the result"},
    {"change-result", 0, CLI_FLAG, offsetof(tune_options, change_result), NULL, 0, 0,
     "and with what changes what is learnt"},
    {"output", 'o', CLI_TEXT, offsetof(tune_options, output), "FILE", 0, 0,
     "file for --apply; default: NAME-tuned.yaml in this folder"},
    {"in-place", 0, CLI_FLAG, offsetof(tune_options, in_place), NULL, 0, 0,
     "--apply changes CONFIG itself"},
    {"try", 0, CLI_LIST, offsetof(tune_options, tries), "KEY=LIST", 0, 0,
     "candidates of ranks, batch, bucket_mib, strategies or loader.threads; repeatable"},
    {"ms", 0, CLI_COUNT, offsetof(tune_options, ms), "MS", 1, 3600000,
     "that a candidate is measured, in parts until it is clear which is best; default: 1000"},
    {"full", 0, CLI_FLAG, offsetof(tune_options, full), NULL, 0, 0,
     "measure all combinations instead of searching"},
    {"json", 0, CLI_FLAG, offsetof(tune_options, json), NULL, 0, 0, "print one JSON object"},
    {"set", 's', CLI_LIST, offsetof(tune_options, set), "KEY=VALUE", 0, 0,
     "change the config that is measured; repeatable"},
    CLI_PLUGIN_OPTION(tune_options),
    CLI_OPTIONS_END,
};

static co_status tune_open(tune_job *job)
{
    co_tune_problem problem;

    job->cores = co_thread_cores();
    job->terminal = isatty(STDERR_FILENO);
    job->plan_options.set = job->options->set;
    job->plan.options = &job->plan_options;
    job->plan.path = job->path;
    CO_TRY(co_config_parse(&job->plan.lists, "{}", 2, "tune"));
    CO_TRY(tune_axes_check(job));
    CO_TRY(tune_apply_check(job));
    CO_TRY(plan_read_network(&job->plan));
    job->batch_norm = job->plan.work.n_buffer > 0;
    CO_TRY(tune_axes_read(job));
    tune_point_problem(&problem, job);
    return co_tune_create(&job->search, &problem);
}

/* A strategy whose exchange, or lack of it, makes no difference where the search has ended may have
   been ahead by chance. */
static void tune_drop_strategy(co_tune_point *point, const tune_job *job, const co_tune_point *from)
{
    co_tune_point without = *point;

    without.value[TUNE_STRATEGY] = from->value[TUNE_STRATEGY];
    if (!tune_strategy_pays(job, &without, point->value[TUNE_STRATEGY]))
        *point = without;
}

/* A step to its point, if what it changes gains. */
static co_status tune_settle(tune_step *step, tune_job *job, const co_tune_point *from)
{
    double gain[CO_TUNE_MAX_AXES] = {0};

    tune_drop_strategy(&step->point, job, from);
    CO_TRY(co_tune_confirm(&step->point, gain, job->search, from, !job->options->full));
    step->rate = co_tune_rate(job->search, &step->point);
    return tune_rows(step, job, from, gain);
}

static co_status tune_find(tune_step *step, tune_job *job, const co_tune_point *from)
{
    step->point = *from;
    CO_TRY(job->options->full ? co_tune_grid(&step->point, job->search)
                              : co_tune_improve(&step->point, job->search));
    return tune_settle(step, job, from);
}

static bool tune_changes(const tune_step *step)
{
    for (int i = 0; i < step->n; i++)
        if (step->row[i].effect == TUNE_CHANGES)
            return true;
    return false;
}

static co_status tune_search(tune_job *job)
{
    tune_step *kept = &job->kept, *changed = &job->changed;

    job->searching_ns = co_clock_ns();
    CO_TRY(tune_find(kept, job, &job->now));
    for (int a = 0; a < TUNE_AXES; a++)
        for (int v = 0; v < job->axis[a].n; v++)
            co_tune_open(job->search, a, v);
    CO_TRY(tune_find(changed, job, &kept->point));
    if (changed->n && !tune_changes(changed)) { /* found late, but it keeps the result */
        kept->point = changed->point;
        CO_TRY(tune_settle(kept, job, &job->now));
        *changed = (tune_step){.point = kept->point, .rate = kept->rate};
    }
    job->search_seconds = co_clock_seconds(job->searching_ns, co_clock_ns());
    job->now_rate = co_tune_rate(job->search, &job->now);
    return CO_OK;
}

static co_status tune_all(tune_job *job)
{
    co_status st;

    CO_TRY(tune_open(job));
    co_process_hold_requests();
    st = tune_measure_machine(job);
    if (st == CO_OK)
        st = tune_search(job);
    if (job->terminal)
        fputs("\r\033[K", stderr);
    CO_TRY(st);
    CO_TRY(co_process_asked());
    CO_TRY(tune_apply(job));
    if (job->options->json)
        return tune_print_json(job);
    tune_print(job);
    return CO_OK;
}

static co_status tune_run(const void *options, int n, const char *const *argument)
{
    tune_job job = {.options = options, .path = argument[0], .start_ns = co_clock_ns()};
    co_status st;

    (void)n;
    CO_TRY(cli_check_started("tune", argument[0]));
    if (co_launch_under_mpi())
        return co_fail(CO_E_USAGE, "tune: it starts ranks of this machine itself; leave mpiexec "
                                   "away, and see `cohort bench comm --tune` for several hosts");
    st = tune_all(&job);
    co_tune_destroy(job.search);
    plan_close(&job.plan);
    return st;
}

const co_command co_command_tune = {
    .name = "tune",
    .summary = "find settings with which a config trains faster on this machine",
    .about =
        "Measures sums between ranks by size, kernels by batch, and readers; then trains a few\n"
        "steps with candidates that a search and the model of `cohort plan` choose. Prints, for\n"
        "each key that gains 2% or more, its value now and the one proposed, what it gains\n"
        "(what is lost without it), what it does to the result, and why:\n"
        "  same bits  the same weights, byte for byte\n"
        "  rounding   the same sums, in another order\n"
        "  CHANGES    another batch, another strategy, or ranks that the result depends on;\n"
        "             in a table of their own, and applied only with --change-result\n"
        "\n"
        "--apply writes a new config, or CONFIG itself with --in-place: whole or not at all, and\n"
        "with its comments. Never proposes another precision, optimizer, learning rate or number\n"
        "of epochs: a larger batch may need them.",
    .example = "  cohort tune configs/mnist-net.yaml\n"
               "  cohort tune my.yaml --apply --in-place\n"
               "  cohort tune my.yaml --try batch=64,128,256 --try ranks=1,2,4 --json",
    .arguments = tune_arguments,
    .options = tune_option_table,
    .options_size = sizeof(tune_options),
    .defaults = &tune_defaults,
    .run = tune_run,
};
