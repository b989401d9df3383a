/*
 * plan.c - `cohort plan`: what a config would take on a described cluster, and how many ranks,
 * which strategy and which batch suit it best.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/lists.h"
#include "cli/plan.h"
#include "core/mem.h"
#include "core/thread.h"
#include "data/data.h"
#include "optim/optim.h"
#include "plan/sweep.h"

static const plan_options plan_defaults = {.steps = 50, .skip = 10};

static const cli_argument plan_arguments[] = {
    {"CONFIG", false, "what to train: a YAML file, or a name of `cohort list configs`"},
    {NULL, false, NULL},
};

static const cli_option plan_option_table[] = {
    {"cluster", 'c', CLI_TEXT, offsetof(plan_options, cluster), "FILE", 0, 0,
     "nodes, links, topology, price: see above; or a name as clusters/ethernet"},
    {"profile-from", 0, CLI_TEXT, offsetof(plan_options, profile_from), "DIR", 0, 0,
     "times of a run that was trained with --profile; default: measure here"},
    {"strategies", 0, CLI_TEXT, offsetof(plan_options, strategies), "LIST", 0, 0,
     "to compare; default: the config's, sync, with bf16 and topk, and local"},
    {"ranks", 'n', CLI_TEXT, offsetof(plan_options, ranks), "LIST", 0, 0,
     "numbers of ranks, as 8,16,64; default: a node's, doubled"},
    {"batches", 0, CLI_TEXT, offsetof(plan_options, batches), "LIST", 0, 0,
     "samples of a rank, as 32,64; default: the config's"},
    {"global-batch", 0, CLI_COUNT, offsetof(plan_options, global_batch), "B", 1, 1000000000,
     "keep the batch of all ranks together as their number grows"},
    {"steps", 0, CLI_COUNT, offsetof(plan_options, steps), "K", 5, 10000,
     "that are measured; default: 50"},
    {"json", 0, CLI_FLAG, offsetof(plan_options, json), NULL, 0, 0, "print one JSON object"},
    {"html", 0, CLI_TEXT, offsetof(plan_options, html), "FILE", 0, 0,
     "write a page with curves, too"},
    {"set", 's', CLI_LIST, offsetof(plan_options, set), "KEY=VALUE", 0, 0,
     "change the config; repeatable"},
    CLI_PLUGIN_OPTION(plan_options),
    CLI_OPTIONS_END,
};

/* ---- the network ---- */

static int plan_compare_param(const void *a, const void *b)
{
    const co_param *x = *(const co_param *const *)a, *y = *(const co_param *const *)b;

    return (x->offset > y->offset) - (x->offset < y->offset);
}

/* The store's tensors by name. */
static co_status plan_read_names(plan_job *job)
{
    const co_graph *graph = job->net.model->graph;
    const size_t n = (size_t)graph->n_param;
    const co_param **param = co_calloc(n + 1, sizeof(*param));

    job->names.name = co_calloc(n + 1, sizeof(*job->names.name));
    job->names.end = co_calloc(n + 1, sizeof(*job->names.end));
    if (!param || !job->names.name || !job->names.end) {
        co_free(param);
        return CO_E_NOMEM;
    }
    for (size_t i = 0; i < n; i++)
        if (!graph->param[i].spec.buffer)
            param[job->names.n++] = &graph->param[i];
    qsort(param, job->names.n, sizeof(*param), plan_compare_param);
    for (size_t i = 0; i < job->names.n; i++) {
        job->names.name[i] = param[i]->name;
        job->names.end[i] = param[i]->offset + (size_t)param[i]->count;
    }
    co_free(param);
    return CO_OK;
}

static co_status plan_read_tensors(co_plan_work *w, const co_store *store)
{
    w->tensor = co_calloc(store->n_tensor + 1, sizeof(*w->tensor));
    if (!w->tensor)
        return CO_E_NOMEM;
    w->n_tensor = store->n_tensor;
    for (size_t i = 0; i < store->n_tensor; i++)
        w->tensor[i] = (co_work_tensor){store->tensor[i].rows, store->tensor[i].cols};
    return CO_OK;
}

static co_status plan_read_optimizer(plan_job *job)
{
    co_store *store = job->net.model->store;
    co_optim *optim;

    /* creating it adds its arrays to the store */
    CO_TRY(co_optim_create(&optim, job->net.spec.optimizer, job->net.spec.config, store));
    job->work.n_state = store->n_state;
    co_optim_destroy(optim);
    return CO_OK;
}

static co_status plan_read_data(plan_job *job)
{
    const co_spec *spec = &job->net.spec;
    co_dataset *data;

    CO_TRY(co_dataset_open_value(&data, spec->data, spec->config, CO_SPLIT_TRAIN));
    job->work.train_samples = (double)co_dataset_count(data);
    job->work.sample_bytes = 4 * (double)co_shape_count(&job->net.sample);
    co_dataset_destroy(data);
    return CO_OK;
}

co_status plan_read_network(plan_job *job)
{
    const co_train_options options = {.config_path = job->path, .set = job->options->set.text};
    const co_spec *spec = &job->net.spec;
    co_plan_work *w = &job->work;
    size_t used, unshared;

    CO_TRY(cli_network_open(&job->net, &options));
    w->model = co_spec_model_name(spec);
    w->n = job->net.model->store->n;
    w->n_weight = co_model_parameter_count(job->net.model);
    w->n_buffer = job->net.model->store->n_buffer;
    w->threads = co_spec_threads(spec) ? co_spec_threads(spec) : 1;
    w->accumulate = spec->accumulate > 0 ? (double)spec->accumulate : 1;
    w->readers = spec->loader_threads > 0 ? (double)spec->loader_threads : 1;
    w->depth = (double)spec->loader_depth;
    w->shards = (uint64_t)spec->shards;
    CO_TRY(plan_read_names(job));
    CO_TRY(plan_read_tensors(w, job->net.model->store));
    CO_TRY(plan_read_data(job));
    if (job->cluster.compute_value)
        return plan_read_optimizer(job);
    CO_TRY(cli_network_compile(&job->net));
    co_plan_memory(job->net.plan, &used, &unshared);
    w->activations = (double)used / (double)job->net.batch;
    return plan_read_optimizer(job);
}

/* ---- lists ---- */

static co_status plan_add_choice(plan_job *job, const co_value *item)
{
    const co_spec spec = {.config = job->lists};
    co_arena *arena = co_config_arena(job->lists);
    co_choice *choice = &job->choice[job->n_choice];
    const char *title, *text;

    CO_TRY(cli_strategy_check(item, arena));
    CO_TRY(cli_strategy_title(&title, job->lists, item));
    for (size_t i = 0; i < job->n_choice; i++)
        if (strcmp(job->choice[i].title, title) == 0)
            return CO_OK;
    CO_TRY(co_choice_read(choice, item));
    CO_TRY(co_spec_text(&text, &spec, item));
    choice->title = title;
    job->item[job->n_choice] = item;
    job->set[job->n_choice] = co_arena_printf(arena, "strategy=%s", text);
    return job->set[job->n_choice++] ? CO_OK : CO_E_NOMEM;
}

/* With shards there are strategies and compressors that training refuses. */
static co_status plan_check_shards(const plan_job *job, const co_value *item)
{
    co_distributed_values values = co_spec_update(&job->net.spec);
    bool common, in_step;
    unsigned needs;

    if (!job->work.shards)
        return CO_OK;
    values.strategy = item;
    values.shards = (int)job->work.shards;
    return co_distributed_check(&needs, &common, &in_step, &values);
}

static co_status plan_read_choices(plan_job *job)
{
    const char *given = job->options->strategies;
    const co_value *own = job->net.spec.strategy, *list;
    static const co_value nothing = {.kind = CO_VALUE_SCALAR, .text = "sync"};

    CO_TRY(cli_read_list(&list, job->lists, "--strategies", given ? given : PLAN_STRATEGIES));
    job->choice = co_arena_alloc(co_config_arena(job->lists), list->n + 1, sizeof(*job->choice));
    job->set = co_arena_alloc(co_config_arena(job->lists), list->n + 1, sizeof(*job->set));
    job->item = co_arena_alloc(co_config_arena(job->lists), list->n + 1, sizeof(*job->item));
    if (!job->choice || !job->set || !job->item)
        return CO_E_NOMEM;
    if (!given) {
        const co_value *first = own && own->kind != CO_VALUE_NULL ? own : &nothing;

        CO_TRY(plan_check_shards(job, first));
        CO_TRY(plan_add_choice(job, first));
    }
    for (size_t i = 0; i < list->n; i++)
        if (given || plan_check_shards(job, list->item[i]) == CO_OK)
            CO_TRY(plan_add_choice(job, list->item[i]));
    return CO_OK;
}

/* What is given, before the network is opened. */
static co_status plan_read_given(plan_job *job)
{
    const plan_options *o = job->options;
    co_ints ranks = {0};

    if (o->batches && o->global_batch)
        return co_fail(CO_E_USAGE, "--batches: --global-batch sets what a rank has; give one of "
                                   "them");
    if (o->ranks)
        CO_TRY(cli_read_numbers(&ranks, job->lists, "--ranks", o->ranks, 1, 1000000));
    job->ranks = ranks.v;
    job->n_ranks = ranks.n;
    if (o->batches)
        CO_TRY(cli_read_numbers(&job->batches, job->lists, "--batches", o->batches, 1,
                                PLAN_BATCH_MOST));
    return o->strategies ? plan_read_choices(job) : CO_OK;
}

/* The rest, as the config says. */
static co_status plan_read_own(plan_job *job)
{
    const co_spec *spec = &job->net.spec;
    const int own_ranks = spec->ranks > 0 ? (int)spec->ranks : 1;
    int64_t own = (int64_t)(co_spec_batch(spec, own_ranks) / (uint64_t)own_ranks);
    const co_ints batches = job->batches.n ? job->batches : (co_ints){1, &own};

    job->n_batch = batches.n;
    job->batch = co_arena_alloc(co_config_arena(job->lists), batches.n, sizeof(*job->batch));
    for (size_t i = 0; job->batch && i < batches.n; i++)
        job->batch[i] = (double)batches.v[i];
    if (!job->batch)
        return CO_E_NOMEM;
    if (!job->options->strategies)
        return plan_read_choices(job);
    for (size_t i = 0; i < job->n_choice; i++)
        CO_TRY(plan_check_shards(job, job->item[i]));
    return CO_OK;
}

void plan_close(plan_job *job)
{
    co_work_fini(&job->work);
    co_free(job->names.name);
    co_free(job->names.end);
    cli_network_close(&job->net);
    co_config_destroy(job->lists);
    co_config_destroy(job->file);
}

/* ---- the command ---- */

static co_status plan_assume(plan_job *job)
{
    const co_cluster_compute *c = &job->cluster.compute;

    if (job->options->profile_from)
        return co_fail(CO_E_USAGE,
                       "--profile-from: %s has a `compute` of its own; leave one of "
                       "them out",
                       job->options->cluster);
    if (c->weights > 0) {
        job->work.n = (size_t)c->weights;
        job->work.n_weight = (uint64_t)c->weights;
        job->work.n_tensor = 0;
    }
    job->work.source = "published, by the cluster file";
    return co_work_assume(&job->work, c->samples_per_second, (double)c->batch, c->backward);
}

static co_status plan_report(const plan_job *job)
{
    const co_sweep_options options = {.cluster = &job->cluster,
                                      .work = &job->work,
                                      .choice = job->choice,
                                      .n_choice = job->n_choice,
                                      .n_batch = job->n_batch,
                                      .n_ranks = job->n_ranks,
                                      .batch = job->batch,
                                      .ranks = job->ranks,
                                      .global_batch = (double)job->options->global_batch};
    co_sweep sweep;
    co_status st = co_sweep_create(&sweep, &options);

    if (st == CO_OK && job->options->json)
        st = co_sweep_print_json(stdout, &sweep);
    else if (st == CO_OK)
        co_sweep_print(stdout, &sweep);
    if (st == CO_OK && job->options->html)
        st = co_sweep_write_page(job->options->html, &sweep);
    co_sweep_fini(&sweep);
    return st;
}

static co_status plan_all(plan_job *job)
{
    char path[CLI_MAX_PATH];

    CO_TRY(cli_config_find(path, job->options->cluster));
    CO_TRY(co_config_load(&job->file, path));
    CO_TRY(co_cluster_read(&job->cluster, job->file));
    if (job->options->html)
        CO_TRY(cli_check_output(job->options->html, CLI_HTML,
                                (const char *const[]){job->path, job->options->cluster, NULL}));
    CO_TRY(co_config_parse(&job->lists, "{}", 2, "plan"));
    CO_TRY(plan_read_given(job));
    CO_TRY(plan_read_network(job));
    CO_TRY(plan_read_own(job));
    if (job->cluster.compute_value)
        CO_TRY(plan_assume(job));
    else
        CO_TRY(job->options->profile_from ? plan_read_profile(job) : plan_measure(job));
    return plan_report(job);
}

static co_status plan_run(const void *options, int n, const char *const *argument)
{
    plan_job job = {.options = options, .path = argument[0]};
    co_status st;

    (void)n;
    if (!job.options->cluster)
        return co_fail(CO_E_USAGE, "give the cluster: --cluster FILE; see `cohort plan --help`");
    st = plan_all(&job);
    plan_close(&job);
    return st;
}

const co_command co_command_plan = {
    .name = "plan",
    .summary = "predict what a config would take on a described cluster",
    .about =
        "From the times of a rank's work, measured here in short runs, or by --profile-from,\n"
        "and a model of the exchange that each strategy makes, predicts for each number of\n"
        "ranks the time of a step and of an epoch, the samples a second, the price, the bytes\n"
        "that a node sends and the memory of a rank, says which part of a step is longest\n"
        "(compute, exchange, loading, stragglers), and names the best. Says nothing of how\n"
        "many epochs a strategy or a batch needs.\n"
        "\n"
        "FILE describes the cluster:\n"
        "  nodes: 64\n"
        "  cores: 32            # of a node; or gpus: 8\n"
        "  price: 1.60          # of a node for an hour\n"
        "  links:\n"
        "    inside: {bandwidth: 8 GB/s, latency: 1 us}\n"
        "    across: {bandwidth: 10 Gbit/s, latency: 25 us}\n"
        "  topology: {name: fat-tree, group: 16, taper: 2}",
    .example = "  cohort plan configs/resnet9-cifar10.yaml --cluster clusters/ethernet\n"
               "  cohort plan CONFIG --cluster FILE --profile-from runs/x --json",
    .arguments = plan_arguments,
    .options = plan_option_table,
    .options_size = sizeof(plan_options),
    .defaults = &plan_defaults,
    .run = plan_run,
};
