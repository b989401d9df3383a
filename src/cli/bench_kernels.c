/*
 * bench_kernels.c - `cohort bench kernels`: what `kernels: {choice: measured}` would choose for a
 * config's layers on this machine, and what that saves against the fixed choice.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "core/text.h"
#include "core/thread.h"
#include "model/kernels.h"

typedef struct bench_kernels_options {
    int64_t batch, threads, seconds;
    cli_list set, plugins;
} bench_kernels_options;

static const bench_kernels_options bench_kernels_defaults = {.seconds = 60};

static const cli_argument bench_kernels_arguments[] = {
    {"CONFIG", false, "whose network: a YAML file"},
    {NULL, false, NULL},
};

static const cli_option bench_kernels_option_table[] = {
    {"batch", 'b', CLI_COUNT, offsetof(bench_kernels_options, batch), "N", 1, 1 << 20,
     "samples; default: a rank's of the config"},
    {"threads", 0, CLI_COUNT, offsetof(bench_kernels_options, threads), "T", 1, 1024,
     "compute threads; default: the config's, or one"},
    {"seconds", 0, CLI_COUNT, offsetof(bench_kernels_options, seconds), "S", 1, 86400,
     "that measuring may take; default: 60"},
    {"set", 's', CLI_LIST, offsetof(bench_kernels_options, set), "KEY=VALUE", 0, 0,
     "change the config; repeatable"},
    CLI_PLUGIN_OPTION(bench_kernels_options),
    CLI_OPTIONS_END,
};

/* What the report needs besides plans. */
typedef struct bench_kernels {
    const co_graph *graph;
    bool lines; /* JSON on standard output, too */
} bench_kernels;

/* What runs a node: nothing of its own if another's call does it. */
static void bench_kernels_name(char out[CO_PLAN_PICK_TEXT], const co_plan *plan, int node)
{
    const co_plan_pick pick = co_plan_picked(plan, node);

    co_plan_pick_text(out, &pick);
    if (co_plan_call(plan, node)->node != (uint32_t)node)
        snprintf(out, CO_PLAN_PICK_TEXT, "fused");
}

static void bench_kernels_report(void *arg, const co_plan *fixed, const co_plan *chosen,
                                 const double *fixed_seconds, const double *chosen_seconds)
{
    const bench_kernels *b = arg;

    fprintf(stderr, "%-20s %-12s %-22s %9s  %-22s %9s\n", "layer", "op", "fixed", "us", "measured",
            "us");
    for (int i = 0; i < b->graph->n_node; i++) {
        const co_node *node = &b->graph->node[i];
        const double us[2] = {fixed_seconds[i] * 1e6, chosen_seconds[i] * 1e6};
        char was[CO_PLAN_PICK_TEXT], is[CO_PLAN_PICK_TEXT];

        bench_kernels_name(was, fixed, i);
        bench_kernels_name(is, chosen, i);
        fprintf(stderr, "%-20s %-12s %-22s %9.1f  %-22s %9.1f\n", node->name, node->op->name, was,
                us[0], strcmp(was, is) == 0 ? "" : is, us[1]);
        if (b->lines)
            printf("{\"bench\": \"kernels\", \"name\": \"%s\", \"op\": \"%s\", \"fixed\": \"%s\", "
                   "\"fixed_us\": %.3f, \"measured\": \"%s\", \"measured_us\": %.3f}\n",
                   CO_SHOW(node->name), node->op->name, was, us[0], is, us[1]);
    }
}

static co_status bench_kernels_measure(cli_network *net, const bench_kernels_options *o)
{
    bench_kernels b = {net->model->graph, !isatty(STDOUT_FILENO)};
    co_kernels_times times = {.report = bench_kernels_report, .arg = &b};
    const int64_t batch = o->batch ? o->batch : (int64_t)net->batch;

    co_model_setup(net->model, o->threads ? (int)o->threads : co_spec_threads(&net->spec));
    co_thread_flush_denormals();
    CO_TRY(co_model_set_kernels(net->model, NULL));
    CO_TRY(co_model_measure_kernels(&times, net->model, batch, (double)o->seconds));
    fprintf(stderr, "%-20s %-12s %-22s %9.1f  %-22s %9.1f\n", "all", "", "",
            times.fixed_seconds * 1e6, "", times.chosen_seconds * 1e6);
    fprintf(stderr, "%s, batch %lld: %.1f%% less; %d choices measured in %.1f s, %d left out\n",
            co_spec_model_name(&net->spec), (long long)batch,
            100 * (1 - times.chosen_seconds / times.fixed_seconds), times.tried,
            times.spent_seconds, times.left);
    return CO_OK;
}

static co_status bench_kernels_run(const void *options, int n, const char *const *argument)
{
    const bench_kernels_options *o = options;
    const co_train_options run = {.set = o->set.text, .config_path = argument[0]};
    cli_network net;
    co_status st;
    int cores;

    (void)n;
    if (o->threads)
        CO_TRY(co_thread_bind_share(&cores, 0, 1));
    CO_TRY(cli_network_open(&net, &run));
    st = co_model_draw(net.model); /* some kernels skip zeros */
    if (st == CO_OK)
        st = bench_kernels_measure(&net, o);
    cli_network_close(&net);
    return st;
}

const co_command co_command_bench_kernels = {
    .name = "bench kernels",
    .summary = "which kernels run each layer fastest here, against the fixed choice",
    .about =
        "Does what `kernels: {choice: measured}` does before training: times whole steps of a\n"
        "config's network with other kernels, and keeps those that are faster. Prints for\n"
        "each layer the kernel of the fixed choice and the one that was found, where it is\n"
        "another, with the time that the layer takes, forward and backward: a table on\n"
        "standard error, and JSON lines on standard output, unless that is a terminal. With\n"
        "one thread times are of the processor, with several of the clock.",
    .example = "  cohort bench kernels configs/mnist-net.yaml --threads 1\n"
               "  cohort bench kernels configs/resnet9.yaml --set precision=bf16 --seconds 300",
    .arguments = bench_kernels_arguments,
    .options = bench_kernels_option_table,
    .options_size = sizeof(bench_kernels_options),
    .defaults = &bench_kernels_defaults,
    .run = bench_kernels_run,
};
