/*
 * data_partition.c - `cohort data partition`: shows which rank gets which samples.
 *
 * Runs the plan of one epoch as the ranks would, and counts labels per rank and uses of each
 * sample. Starts no rank.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/partition_view.h"
#include "core/fs.h"
#include "core/mem.h"
#include "data/data.h"
#include "train/loader_setup.h"

typedef struct data_partition_options {
    int64_t ranks;
    cli_list set, plugins;
    bool csv;
    const char *png, *svg;
} data_partition_options;

static const cli_argument data_partition_arguments[] = {
    {"CONFIG", false, "a YAML file, or a name of `cohort list configs`"},
    {NULL, false, NULL},
};

static const cli_option data_partition_option_table[] = {
    {"ranks", 'n', CLI_COUNT, offsetof(data_partition_options, ranks), "RANKS", 1, 1024,
     "ranks to share between; default: the config's"},
    {"set", 's', CLI_LIST, offsetof(data_partition_options, set), "KEY=VALUE", 0, 0,
     "change the config, e.g. partition=interleaved; repeatable"},
    {"csv", 0, CLI_FLAG, offsetof(data_partition_options, csv), NULL, 0, 0,
     "print rank,label,samples for each rank and label instead"},
    {"png", 0, CLI_TEXT, offsetof(data_partition_options, png), "FILE", 0, 0,
     "draw the label counts (needs gnuplot)"},
    {"svg", 0, CLI_TEXT, offsetof(data_partition_options, svg), "FILE", 0, 0, "the same as SVG"},
    CLI_PLUGIN_OPTION(data_partition_options),
    CLI_OPTIONS_END,
};

/* The plan of an epoch, and the counts. */
typedef struct data_partition {
    co_spec spec;
    co_dataset *data;    /* owned */
    co_sampler *sampler; /* owned */
    co_tree *tree;       /* owned: which rank has which shards; NULL: no shards */
    uint32_t *index;     /* owned: room for the samples of a rank or shard in one step */
    partition_view view; /* owns its arrays */
} data_partition;

static co_status data_partition_alloc(data_partition *p)
{
    partition_view *v = &p->view;
    uint64_t most = 0;
    size_t table;

    for (int r = 0; r < (p->tree ? (int)p->spec.shards : v->ranks); r++) {
        const uint64_t n = co_sampler_local_max(p->sampler, r);

        most = n > most ? n : most;
    }
    if (co_mul_size(&table, (size_t)v->ranks, (size_t)v->classes) != 0)
        return co_fail(CO_E_NOMEM, "out of memory");
    p->index = co_calloc(most, sizeof(*p->index));
    v->rank = co_calloc((size_t)v->ranks, sizeof(*v->rank));
    v->label = co_calloc(table, sizeof(*v->label));
    v->uses = co_calloc(v->count, sizeof(*v->uses));
    return p->index && v->rank && v->label && v->uses ? CO_OK : CO_E_NOMEM;
}

static co_status data_partition_open(data_partition *p, const char *config,
                                     const data_partition_options *o)
{
    const co_train_options options = {
        .config_path = config, .set = o->set.text, .ranks = (int)o->ranks};
    partition_view *v = &p->view;
    co_sampler_options sampling;

    CO_TRY(co_spec_open(&p->spec, &options));
    CO_TRY(co_dataset_open_value(&p->data, p->spec.data, p->spec.config, CO_SPLIT_TRAIN));
    v->ranks = (int)p->spec.ranks;
    CO_TRY(co_feed_options(&sampling, &p->spec, p->data, v->ranks, CO_SPLIT_TRAIN));
    CO_TRY(co_sampler_create(&p->sampler, &sampling));
    CO_TRY(co_spec_check_ranks(&p->spec, v->ranks));
    if (p->spec.shards)
        CO_TRY(co_tree_create(&p->tree, (int)p->spec.shards, v->ranks));
    v->data = co_dataset_name(p->data);
    v->partition = sampling.partition ? sampling.partition : "global";
    v->batch = sampling.batch;
    v->steps = co_sampler_steps(p->sampler);
    v->count = co_dataset_count(p->data);
    v->has_labels = co_dataset_has_labels(p->data);
    v->classes = v->has_labels ? co_dataset_classes(p->data) : 1;
    return data_partition_alloc(p);
}

static void data_partition_close(data_partition *p)
{
    co_free(p->view.uses);
    co_free(p->view.label);
    co_free(p->view.rank);
    co_free(p->index);
    co_sampler_destroy(p->sampler);
    co_tree_destroy(p->tree);
    co_dataset_destroy(p->data);
    co_spec_unload(&p->spec);
}

/* Count the samples of part `part` (a rank's, or one of its shards) of a step. */
static co_status data_partition_take_part(uint64_t *taken, data_partition *p, uint64_t step,
                                          int rank, int part)
{
    const uint64_t n = co_sampler_local(p->sampler, step, part);
    partition_view *v = &p->view;

    CO_TRY(co_sampler_indices(p->sampler, p->index, 0, step, part));
    for (uint64_t i = 0; i < n; i++) {
        int32_t label = 0;

        if (v->has_labels)
            CO_TRY(co_dataset_take_label(&label, p->data, p->index[i]));
        v->label[rank * v->classes + label]++;
        v->uses[p->index[i]]++;
    }
    *taken += n;
    return CO_OK;
}

/* Count what one rank takes in one step. */
static co_status data_partition_take(data_partition *p, uint64_t step, int rank)
{
    const int first = p->tree ? co_tree_first(p->tree, rank) : rank;
    const int end = p->tree ? co_tree_first(p->tree, rank + 1) : rank + 1;
    partition_view *v = &p->view;
    uint64_t n = 0;

    for (int part = first; part < end; part++)
        CO_TRY(data_partition_take_part(&n, p, step, rank, part));
    v->rank[rank].samples += n;
    v->rank[rank].idle += n == 0;
    if (n > v->rank[rank].most)
        v->rank[rank].most = n;
    v->taken += n;
    return CO_OK;
}

static co_status data_partition_run_epoch(data_partition *p)
{
    for (uint64_t step = 0; step < p->view.steps; step++) {
        const uint64_t before = p->view.taken;

        for (int rank = 0; rank < p->view.ranks; rank++)
            CO_TRY(data_partition_take(p, step, rank));
        if (p->view.taken - before != co_sampler_global(p->sampler, step))
            return co_fail(CO_E_FAILED, "step %" PRIu64 ": the ranks' shares are not the batch",
                           step);
    }
    return CO_OK;
}

/* Samples taken more or less than once are an error unless the partition explains them. */
static co_status data_partition_check(data_partition *p)
{
    const co_partition_ops *ops = co_partition_of(p->spec.partition);
    partition_view *v = &p->view;

    v->repeats = ops->repeats;
    v->drops = ops->drops;
    for (uint64_t i = 0; i < v->count; i++)
        if ((v->uses[i] > 1 && !v->repeats) || (v->uses[i] == 0 && !v->drops))
            return co_fail(CO_E_FAILED,
                           "partition %s: sample %" PRIu64 " is taken %" PRIu32
                           " times in an epoch",
                           ops->name, i, v->uses[i]);
    return CO_OK;
}

static co_status data_partition_show(const data_partition *p, const data_partition_options *o)
{
    static const char *const inputs[] = {NULL};

    if (o->png)
        CO_TRY(cli_check_output(o->png, CLI_PLOT, inputs));
    if (o->svg)
        CO_TRY(cli_check_output(o->svg, CLI_PLOT, inputs));
    if (o->csv)
        partition_view_csv(stdout, &p->view);
    else
        partition_view_print(stdout, &p->view);
    if (o->png)
        CO_TRY(partition_view_draw(o->png, "pngcairo", &p->view));
    return o->svg ? partition_view_draw(o->svg, "svg", &p->view) : CO_OK;
}

static co_status data_partition_run(const void *options, int n, const char *const *argument)
{
    data_partition p = {.data = NULL};
    co_status st = data_partition_open(&p, argument[0], options);

    (void)n;
    if (st == CO_OK)
        st = data_partition_run_epoch(&p);
    if (st == CO_OK)
        st = data_partition_check(&p);
    if (st == CO_OK)
        st = data_partition_show(&p, options);
    data_partition_close(&p);
    return st;
}

const co_command co_command_data_partition = {
    .name = "data partition",
    .summary = "which rank trains on which samples and labels, and whether any is lost",
    .about =
        "Plans the first epoch as the ranks would, and counts. A bar shows a label's samples,\n"
        "one character for the same number each, as the digit of the rank that takes them.\n"
        "What is not taken exactly once is named, with the reason.",
    .example = "  cohort data partition configs/mnist-net.yaml -n 3\n"
               "  cohort data partition configs/mnist-net.yaml -n 2 \\\n"
               "      --set 'partition={kind: random, ratios: [0.7, 0.3]}' --png parts.png",
    .arguments = data_partition_arguments,
    .options = data_partition_option_table,
    .options_size = sizeof(data_partition_options),
    .run = data_partition_run,
};
