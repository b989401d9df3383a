/*
 * bench_ops.c - `cohort bench ops`: times each layer of a network by itself and compares it with
 * the machine's limits.
 */
#include <string.h>
#include <unistd.h>

#include "cli/bench_ops.h"
#include "core/mem.h"
#include "core/thread.h"
#include "models/models.h"

/* Samples with more values than this get the smaller default batch. */
#define BENCH_OPS_LARGE       100000
#define BENCH_OPS_BATCH       64
#define BENCH_OPS_LARGE_BATCH 8

typedef struct bench_ops_options {
    const char *model, *shape;
    int64_t batch, classes, threads, ms;
    cli_list set, plugins;
} bench_ops_options;

static const bench_ops_options bench_ops_defaults = {.classes = 10, .ms = 50};

static const cli_argument bench_ops_arguments[] = {
    {"CONFIG", true, "whose network: a YAML file; or say it with --model"},
    {NULL, false, NULL},
};

static const cli_option bench_ops_option_table[] = {
    {"model", 'm', CLI_TEXT, offsetof(bench_ops_options, model), "MODEL", 0, 0,
     "a model instead of a config: a name, or {name: ..., key: value}"},
    {"batch", 'b', CLI_COUNT, offsetof(bench_ops_options, batch), "N", 1, 1 << 20,
     "samples; default: a rank's of the config, or 64, or 8 large ones"},
    {"data-shape", 0, CLI_TEXT, offsetof(bench_ops_options, shape), "C,H,W", 0, 0,
     "of a sample of --model, or its context; default: what it was made for"},
    {"classes", 0, CLI_COUNT, offsetof(bench_ops_options, classes), "K", 1, 1 << 20,
     "or tokens, with --model; default: 10"},
    {"threads", 0, CLI_COUNT, offsetof(bench_ops_options, threads), "T", 1, 1024,
     "compute threads; default: the config's, or one"},
    {"ms", 0, CLI_COUNT, offsetof(bench_ops_options, ms), "MS", 1, 100000,
     "milliseconds for each row; default: 50"},
    {"set", 's', CLI_LIST, offsetof(bench_ops_options, set), "KEY=VALUE", 0, 0,
     "change the config; repeatable"},
    CLI_PLUGIN_OPTION(bench_ops_options),
    CLI_OPTIONS_END,
};

/* Default sample shape of the model named by --model. */
static co_status bench_ops_sample(co_shape *out, const bench_ops_options *o)
{
    const co_value *value, *map;
    const co_model_ops *model;
    const char *name = NULL;
    co_config *config;
    co_status st;

    CO_TRY(co_config_parse(&config, "{}", 2, "--model"));
    st = co_config_add_text(&value, config, o->model);
    if (st == CO_OK)
        st = co_value_plugin(&name, &map, value, "name");
    model = st == CO_OK ? co_plugin_find(&co_model_plugins, name) : NULL;
    /* An unknown name fails later, in the build, which lists the known ones. */
    *out = model ? model->sample : (co_shape){3, {1, 1, 1}};
    co_config_destroy(config);
    return st;
}

/* A config with only a model, and data that is never read. */
static co_status bench_ops_text(char *out, size_t size, const bench_ops_options *o)
{
    char shape[64];
    const char *data = "name: synthetic, shape: [%s], classes: %lld, samples: 1";
    co_shape sample;
    bool large;
    int n;

    CO_TRY(bench_ops_sample(&sample, o));
    snprintf(shape, sizeof(shape), "%lld, %lld, %lld", (long long)sample.dim[0],
             (long long)sample.dim[1], (long long)sample.dim[2]);
    large = co_shape_count(&sample) > BENCH_OPS_LARGE;
    if (sample.ndim == 1) { /* of a transformer */
        snprintf(shape, sizeof(shape), "%lld", (long long)sample.dim[0]);
        data = "name: synthetic-tokens, context: %s, vocabulary: %lld, samples: 1";
        large = true;
    }
    n = snprintf(out, size, "{model: %s, batch: %d, threads: 1, data: {", o->model,
                 large ? BENCH_OPS_LARGE_BATCH : BENCH_OPS_BATCH);
    if (n < (int)size)
        n += snprintf(out + n, size - (size_t)n, data, o->shape ? o->shape : shape,
                      (long long)o->classes);
    if (n < (int)size)
        n += snprintf(out + n, size - (size_t)n, "}}");
    return n < (int)size ? CO_OK : co_fail(CO_E_USAGE, "--model is too long");
}

static co_status bench_ops_show(const bench_ops_rows *rows, const cli_network *net, int64_t batch,
                                const co_roof *roof)
{
    const char *model = co_spec_model_name(&net->spec);
    char title[128], head[160];
    co_profile profile = {.title = title,
                          .alone = true,
                          .step_seconds = rows->step_seconds,
                          .roof = *roof,
                          .n_row = rows->n,
                          .row = rows->row};

    snprintf(title, sizeof(title), "%s, batch %lld, each step by itself", model, (long long)batch);
    snprintf(head, sizeof(head), "\"bench\": \"ops\", \"model\": \"%s\", \"batch\": %lld", model,
             (long long)batch);
    if (!isatty(STDOUT_FILENO))
        CO_TRY(co_profile_print_lines(stdout, &profile, head));
    return co_profile_print(stderr, &profile, 0);
}

static co_status bench_ops_run_network(cli_network *net, const bench_ops_options *o)
{
    const int threads = o->threads ? (int)o->threads : co_spec_threads(&net->spec);
    const int64_t batch = o->batch ? o->batch : (int64_t)net->batch;
    bench_ops_rows rows = {.n = 0};
    co_roof roof;
    co_status st;

    co_model_setup(net->model, threads);
    CO_TRY(cli_network_enter_device(net));
    st = co_run_roof(&roof, net->device, threads, 1);
    if (st == CO_OK)
        st = bench_ops_measure(&rows, net, batch, o->ms);
    if (st == CO_OK)
        st = bench_ops_show(&rows, net, batch, &roof);
    co_free(rows.row);
    return st;
}

static co_status bench_ops_run(const void *options, int n, const char *const *argument)
{
    const bench_ops_options *o = options;
    co_train_options run = {.set = o->set.text};
    char text[1024];
    cli_network net;
    int cores;
    co_status st;

    if ((n > 0) == (o->model != NULL))
        return co_fail(CO_E_USAGE, "give either a config or --model, such as `cohort bench ops "
                                   "--model mnist-net`");
    if (o->shape && !o->model)
        return co_fail(CO_E_USAGE, "--data-shape goes with --model; a config's data say it");
    if (n > 0)
        run.config_path = argument[0];
    else
        CO_TRY(bench_ops_text(text, sizeof(text), o));
    run.config_text = n > 0 ? NULL : text;
    if (o->threads)
        CO_TRY(co_thread_bind_share(&cores, 0, 1));
    CO_TRY(cli_network_open(&net, &run));
    st = co_model_draw(net.model); /* some kernels skip zeros */
    if (st == CO_OK)
        st = bench_ops_run_network(&net, o);
    cli_network_close(&net);
    return st;
}

const co_command co_command_bench_ops = {
    .name = "bench ops",
    .summary = "time each layer of a network by itself, against the machine's limits",
    .about =
        "Runs each step of a network's plan, forward and backward, alone and again and again, and\n"
        "then all in turn. Prints one JSON object a line for each on standard output, unless that\n"
        "is a terminal, and a table on standard error: median time, operations (a multiply and an\n"
        "add are two) and bytes of its tensors in a second, and how near that is to the roof:\n"
        "the minimum time in which the cores could do the operations, or move the bytes from the\n"
        "level of memory that they fit in, both measured when the command starts. Operations are\n"
        "those of the definition: a convolution by Winograd's algorithm makes fewer, and may\n"
        "reach more than 100%. With BF16 the roof is that of the units for it, if there are any.\n"
        "With `device: cuda` times are by the GPU's clock, and the roof is the GPU's: large\n"
        "products on its tensor cores, multiply-adds in fp32, bytes from its cache and memory.",
    .example = "  cohort bench ops --model mnist-net\n"
               "  cohort bench ops --model resnet50 --batch 4 --threads 2\n"
               "  cohort bench ops --model resnet50 --batch 16 --set precision=bf16\n"
               "  cohort bench ops --model resnet50 --batch 64 --set device=cuda\n"
               "  cohort bench ops configs/resnet9.yaml | jq -c '[.name, .pass, .time_us]'",
    .arguments = bench_ops_arguments,
    .options = bench_ops_option_table,
    .options_size = sizeof(bench_ops_options),
    .defaults = &bench_ops_defaults,
    .run = bench_ops_run,
};
