/* list.c - `cohort list`: prints the registries of this build, and each plugin's config keys. */
#include <string.h>

#include "backends/backends.h"
#include "cli/cli.h"
#include "comm/transports.h"
#include "core/config.h"
#include "data/data.h"
#include "metrics/metrics.h"
#include "models/models.h"
#include "ops/ops.h"
#include "optim/optim.h"
#include "strategy/compress.h"
#include "strategy/strategy.h"
#include "telemetry/telemetry.h"
#include "train/spec.h"

typedef struct list_options {
    bool why;
    const char *config;
    cli_list set, plugins;
} list_options;

static const cli_argument list_arguments[] = {
    {"WHAT", true, "one of the lists above; default: name them"},
    {NULL, false, NULL},
};

static const cli_option list_option_table[] = {
    {"config", 'c', CLI_TEXT, offsetof(list_options, config), "CONFIG", 0, 0,
     "kernels: those that run each layer of this config"},
    {"why", 0, CLI_FLAG, offsetof(list_options, why), NULL, 0, 0,
     "kernels: also why those before them refused"},
    {"set", 's', CLI_LIST, offsetof(list_options, set), "KEY=VALUE", 0, 0,
     "change that config; repeatable"},
    CLI_PLUGIN_OPTION(list_options),
    CLI_OPTIONS_END,
};

static void list_entry(const char *name, const char *summary, const co_key *keys)
{
    printf("%-18s %s\n", name, summary ? summary : "");
    if (keys)
        co_keys_print(stdout, keys, 4);
}

static void list_common(const char *of, const co_key *keys)
{
    printf("\nKeys of every %s:\n", of);
    co_keys_print(stdout, keys, 4);
}

static co_status list_models(const list_options *o)
{
    (void)o;
    for (const co_model_ops *const *m = co_models; *m; m++)
        list_entry((*m)->name, (*m)->summary, (*m)->keys);
    list_common("model", co_model_common_keys);
    printf("\nA network can also be written out under `layers:`; see `cohort list ops`.\n");
    return CO_OK;
}

static co_status list_ops(const list_options *o)
{
    (void)o;
    for (const co_op *const *op = co_ops; *op; op++) {
        list_entry((*op)->name, (*op)->summary, (*op)->keys);
        if ((*op)->bare)
            printf("    `%s: VALUE` is short for `%s: {%s: VALUE}`\n", (*op)->name, (*op)->name,
                   (*op)->bare);
    }
    return CO_OK;
}

/* Print a backend's kernels for an op, "cpu (winograd, gemm)"; any may still refuse a layer. False:
   none. */
static bool list_print_kernels(const co_backend *backend, const char *op)
{
    bool found = false, named = false;

    for (const co_kernel *const *k = backend->kernels; *k; k++) {
        if (strcmp((*k)->op, op) != 0)
            continue;
        if (!found)
            printf(" %s", backend->name);
        found = true;
        if ((*k)->name)
            printf("%s%s", named ? ", " : " (", (*k)->name);
        named = named || (*k)->name;
    }
    printf("%s", named ? ")" : "");
    return found;
}

/* Print the reasons why kernels refused a layer, one per line. */
static void list_print_refusals(const char *why)
{
    while (*why) {
        const char *end = strstr(why, "; ");
        const size_t n = end ? (size_t)(end - why) : strlen(why);

        printf("    not %.*s\n", (int)n, why);
        why += end ? n + 2 : n;
    }
}

/* Print which kernel runs each layer of a config, and with --why the refusals before it. */
static co_status list_layer_kernels(const list_options *o)
{
    char path[CLI_MAX_PATH];
    const co_train_options options = {.config_path = path, .set = o->set.text};
    cli_network net;
    co_status st;

    CO_TRY(cli_config_find(path, o->config));
    CO_TRY(cli_network_open(&net, &options));
    st = cli_network_compile(&net);
    for (int i = 0; i < net.model->graph->n_node && st == CO_OK; i++) {
        const co_node *node = &net.model->graph->node[i];
        const char *why;
        const char *backend = co_plan_backend(net.plan, i, &why);
        char kernel[128];

        co_plan_describe(kernel, sizeof(kernel), net.plan, i);
        printf("%-20s %-18s %s%s%s\n", node->name, node->op->name, backend, *kernel ? " " : "",
               kernel);
        if (o->why)
            list_print_refusals(why);
    }
    cli_network_close(&net);
    return st;
}

static co_status list_kernels(const list_options *o)
{
    if (o->config)
        return list_layer_kernels(o);
    for (const co_backend *const *b = co_backends; *b; b++)
        list_entry((*b)->name, (*b)->summary, NULL);
    printf("\n%-18s backends and their kernels, the preferred one first\n", "op");
    for (const co_op *const *op = co_ops; *op; op++) {
        printf("%-18s", (*op)->name);
        for (const co_backend *const *b = co_backends; *b; b++)
            if (!list_print_kernels(*b, (*op)->name) && o->why)
                printf(" (not %s: has no kernel for it)", (*b)->name);
        printf("\n");
    }
    printf("\nKernels may refuse a layer: `cohort list kernels --config CONFIG --why` shows what "
           "runs each.\n");
    return CO_OK;
}

static co_status list_datasets(const list_options *o)
{
    const co_dataset_ops *d;

    (void)o;
    for (size_t i = 0; (d = co_plugin_at(&co_dataset_plugins, i)) != NULL; i++)
        list_entry(d->name, d->summary, d->keys);
    list_common("data set", co_dataset_common_keys);
    return CO_OK;
}

static co_status list_partitions(const list_options *o)
{
    (void)o;
    for (const co_partition_ops *const *p = co_partitions; *p; p++)
        list_entry((*p)->name, (*p)->summary, (*p)->keys);
    list_common("partition but global", co_partition_common_keys);
    return CO_OK;
}

static co_status list_augmentations(const list_options *o)
{
    (void)o;
    for (const co_augment_ops *const *a = co_augmentations; *a; a++)
        list_entry((*a)->name, (*a)->summary, (*a)->keys);
    return CO_OK;
}

static co_status list_optimizers(const list_options *o)
{
    const co_optimizer_ops *p;

    (void)o;
    for (size_t i = 0; (p = co_plugin_at(&co_optimizer_plugins, i)) != NULL; i++) {
        list_entry(p->name, p->summary, p->keys);
        printf("    its lr is %g and its weight_decay %g where none is given\n", p->default_lr,
               p->default_decay);
    }
    list_common("optimizer", co_optimizer_common_keys);
    return CO_OK;
}

static co_status list_schedules(const list_options *o)
{
    const co_schedule_ops *s;

    (void)o;
    for (size_t i = 0; (s = co_plugin_at(&co_schedule_plugins, i)) != NULL; i++)
        list_entry(s->name, s->summary, s->keys);
    list_common("schedule", co_schedule_common_keys);
    return CO_OK;
}

static co_status list_strategies(const list_options *o)
{
    const co_strategy_ops *s;

    (void)o;
    for (size_t i = 0; (s = co_plugin_at(&co_strategy_plugins, i)) != NULL; i++)
        list_entry(s->name, s->summary, s->keys);
    return CO_OK;
}

static co_status list_compressors(const list_options *o)
{
    const co_compressor_ops *c;

    (void)o;
    for (size_t i = 0; (c = co_plugin_at(&co_compressor_plugins, i)) != NULL; i++)
        list_entry(c->name, c->summary, c->keys);
    list_common("compressor", co_compressor_common_keys);
    return CO_OK;
}

static co_status list_transports(const list_options *o)
{
    (void)o;
    for (const co_comm_ops *const *t = co_transports; *t; t++) {
        const char *why = NULL;

        list_entry((*t)->name, (*t)->summary, NULL);
        if ((*t)->probe && !(*t)->probe(&why))
            printf("    not here: %s\n", why ? why : "this build or machine cannot use it");
    }
    return CO_OK;
}

static co_status list_sinks(const list_options *o)
{
    (void)o;
    for (const co_sink_ops *const *s = co_sinks; *s; s++)
        list_entry((*s)->name, (*s)->summary, NULL);
    return CO_OK;
}

static co_status list_metrics(const list_options *o)
{
    (void)o;
    for (const co_metric *const *m = co_metrics; *m; m++)
        list_entry((*m)->name, (*m)->summary, (*m)->keys);
    return CO_OK;
}

static co_status list_config(const list_options *o)
{
    (void)o;
    for (const co_key *key = co_spec_keys; key->name; key++) {
        const co_key one[] = {*key, CO_KEYS_END};

        co_keys_print(stdout, one, 0);
        for (const co_spec_map *map = co_spec_maps; map->name; map++)
            if (strcmp(map->name, key->name) == 0)
                co_keys_print(stdout, map->keys, 4);
    }
    return CO_OK;
}

static co_status list_configs(const list_options *o)
{
    (void)o;
    cli_configs_print();
    return CO_OK;
}

static const struct {
    const char *name, *summary;
    co_status (*print)(const list_options *o);
} list_kinds[] = {
    {"config", "keys at the top of a config file", list_config},
    {"configs", "those that came with the program, for `cohort train NAME`", list_configs},
    {"models", "networks, for `model:`", list_models},
    {"ops", "operators, for `layers:`", list_ops},
    {"kernels", "compute backends, for `backend:`, and what they can run", list_kernels},
    {"datasets", "data set formats, for `data:`", list_datasets},
    {"augmentations", "random changes to training samples, for `augment:` of a data set",
     list_augmentations},
    {"partitions", "ways to share data between ranks, for `partition:`", list_partitions},
    {"optimizers", "for `optimizer:`", list_optimizers},
    {"schedules", "of the learning rate, for `schedule:`", list_schedules},
    {"strategies", "how ranks synchronize, for `strategy:`", list_strategies},
    {"compressors", "compressors of gradients, for `compress:` of the strategy sync",
     list_compressors},
    {"metrics", "what is measured besides the loss, for `metrics:`", list_metrics},
    {"transports", "transports of messages between ranks", list_transports},
    {"sinks", "where a run's numbers go", list_sinks},
};

#define LIST_KINDS (sizeof(list_kinds) / sizeof(list_kinds[0]))

static co_status list_unknown(const char *what)
{
    const char *names[LIST_KINDS], *near;

    for (size_t i = 0; i < LIST_KINDS; i++)
        names[i] = list_kinds[i].name;
    near = co_nearest(what, names, LIST_KINDS);
    if (near)
        return co_fail(CO_E_USAGE, "there is no list '%s'; did you mean '%s'?", what, near);
    return co_fail(CO_E_USAGE, "there is no list '%s'; `cohort list` names them", what);
}

static co_status list_run(const void *options, int n, const char *const *argument)
{
    const list_options *o = options;

    if (n > 0 && strcmp(argument[0], "kernels") != 0 && (o->why || o->config))
        return co_fail(CO_E_USAGE, "--config and --why belong to `cohort list kernels`");
    for (size_t i = 0; i < LIST_KINDS; i++)
        if (n == 0)
            printf("  %-13s  %s\n", list_kinds[i].name, list_kinds[i].summary);
        else if (strcmp(list_kinds[i].name, argument[0]) == 0)
            return list_kinds[i].print(o);
    return n ? list_unknown(argument[0]) : CO_OK;
}

const co_command co_command_list = {
    .name = "list",
    .summary = "what this build offers, with each plugin's config keys",
    .about = "Lists: config, configs, models, ops, kernels, datasets, augmentations, partitions,\n"
             "optimizers, schedules, strategies, compressors, metrics, transports, sinks. Each key "
             "of a\n"
             "config is printed with what it means, what it takes and its default.",
    .example = "  cohort list optimizers\n"
               "  cohort list kernels --config configs/mnist-net.yaml --why",
    .arguments = list_arguments,
    .options = list_option_table,
    .options_size = sizeof(list_options),
    .run = list_run,
};
