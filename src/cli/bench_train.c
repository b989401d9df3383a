/* bench_train.c - `cohort bench train`: how fast a config trains. */
#include <cohort/train.h>

#include "cli/cli.h"

typedef struct bench_train_options {
    int64_t ranks, steps, warmup, rounds;
    bool utilization;
    cli_list set, plugins;
} bench_train_options;

static const bench_train_options bench_train_defaults = {.steps = 100, .warmup = 20, .rounds = 5};

static const cli_argument bench_train_arguments[] = {
    {"CONFIG", false, "what to train: a YAML file, or a name of `cohort list configs`"},
    {NULL, false, NULL},
};

static const cli_option bench_train_option_table[] = {
    {"ranks", 'n', CLI_COUNT, offsetof(bench_train_options, ranks), "N", 1, 1024,
     "ranks to start here; default: the config's"},
    {"steps", 0, CLI_COUNT, offsetof(bench_train_options, steps), "K", 1, 1000000,
     "steps in a round; default: 100"},
    {"warmup", 0, CLI_COUNT, offsetof(bench_train_options, warmup), "K", 1, 1000000,
     "steps before the first round; default: 20"},
    {"rounds", 0, CLI_COUNT, offsetof(bench_train_options, rounds), "R", 1, 100,
     "rounds; median, minimum and maximum are over them; default: 5"},
    {"set", 's', CLI_LIST, offsetof(bench_train_options, set), "KEY=VALUE", 0, 0,
     "change the config; repeatable"},
    {"utilization", 0, CLI_FLAG, offsetof(bench_train_options, utilization), NULL, 0, 0,
     "measure what the cores or GPUs can do, too, for model_flops_utilization"},
    CLI_PLUGIN_OPTION(bench_train_options),
    CLI_OPTIONS_END,
};

static void bench_train_print(const co_bench_summary *s)
{
    printf("{\"bench\": \"train\", \"ranks\": %d, \"batch\": %llu, \"steps\": %llu, \"rounds\": "
           "%d, \"samples_per_second\": %.9g, \"samples_per_second_min\": %.9g, "
           "\"samples_per_second_max\": %.9g, \"step_ms\": %.6g, \"step_ms_min\": %.6g, "
           "\"step_ms_max\": %.6g, \"start_seconds\": %.6g, \"data_wait_share\": %.4g, "
           "\"peak_memory_bytes\": %llu",
           s->ranks, (unsigned long long)s->batch, (unsigned long long)s->steps, s->rounds,
           s->samples_per_second[1], s->samples_per_second[0], s->samples_per_second[2],
           s->step_ms[1], s->step_ms[0], s->step_ms[2], s->start_seconds, s->data_wait_share,
           (unsigned long long)s->peak_memory_bytes);
    if (s->peak_device_memory_bytes > 0)
        printf(", \"peak_device_memory_bytes\": %llu",
               (unsigned long long)s->peak_device_memory_bytes);
    printf(", \"model_flops_per_second\": %.4g", s->model_flops_per_second);
    if (s->model_flops_utilization > 0)
        printf(", \"model_flops_utilization\": %.4g", s->model_flops_utilization);
    printf("}\n");
}

static co_status bench_train_run(const void *options, int n, const char *const *argument)
{
    const bench_train_options *o = options;
    const co_train_options run = {.config_path = argument[0],
                                  .set = o->set.text,
                                  .ranks = (int)o->ranks,
                                  .quiet = true,
                                  .utilization = o->utilization};
    co_bench_summary summary;

    (void)n;
    CO_TRY(cli_check_started("bench train", argument[0]));
    CO_TRY(co_bench_train(&summary, &run, (uint64_t)o->warmup, (uint64_t)o->steps, (int)o->rounds));
    if (co_launch_is_root())
        bench_train_print(&summary);
    return CO_OK;
}

const co_command co_command_bench_train = {
    .name = "bench train",
    .summary = "time the training steps of a config",
    .about =
        "Trains without evaluation and writes no file. Prints one JSON object on one line:\n"
        "samples_per_second over all ranks and step_ms as the median over the rounds, with\n"
        "minimum and maximum; start_seconds, from the start of the process to the end of the\n"
        "first step; data_wait_share, the part of the time that was spent waiting for data;\n"
        "peak_memory_bytes, the host's memory, resident, of the rank that held most;\n"
        "peak_device_memory_bytes, where ranks train on GPUs, the GPU's memory that a rank\n"
        "allocated at once, likewise; and\n"
        "model_flops_per_second, the operations of the network by definition, and\n"
        "model_flops_utilization, on demand, their part of what the cores, or the GPUs, can do.",
    .example = "  cohort bench train configs/mnist-net.yaml -n 2 --steps 200 --rounds 9\n"
               "  cohort bench train configs/mnist-net.yaml --set data=synthetic",
    .arguments = bench_train_arguments,
    .options = bench_train_option_table,
    .options_size = sizeof(bench_train_options),
    .defaults = &bench_train_defaults,
    .run = bench_train_run,
};
