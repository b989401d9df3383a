/*
 * tune_axes.c - what `cohort tune` may change, to which values, and what each does to the result.
 *
 * Values come from the config, the machine and --try. Does not measure, nor say what a point of the
 * search is (tune_point.c).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/lists.h"
#include "cli/tune.h"
#include "core/number.h"
#include "core/thread.h"
#include "data/data.h"
#include "strategy/strategy.h"
#include "train/loader_setup.h"

#define AXES_BATCH_LEAST 8
#define AXES_BATCH_MOST  4096 /* over all ranks, unless the config or --try has more */
#define AXES_BATCH_BELOW 2    /* doublings from the config's */
#define AXES_BATCH_ABOVE 6
#define AXES_EPOCH_STEPS 8 /* an epoch that is left, at least */

static const char *const axes_names[] = {[TUNE_LAYOUT] = "ranks",
                                         [TUNE_BATCH] = "batch",
                                         [TUNE_BUCKET] = "bucket_mib",
                                         [TUNE_STRATEGY] = "strategies",
                                         [TUNE_LOADER] = "loader.threads"};

co_arena *tune_arena(const tune_job *job)
{
    return co_config_arena(job->plan.lists);
}

static const co_spec *axes_spec(const tune_job *job)
{
    return &job->plan.net.spec;
}

/* A value that is not there yet. */
static co_status axes_add(tune_axis *axis, const tune_value *value)
{
    if (!value->text || !value->value)
        return CO_E_NOMEM;
    for (int i = 0; i < axis->n; i++)
        if (strcmp(axis->value[i].value, value->value) == 0)
            return CO_OK;
    if (axis->n < CO_TUNE_MAX_VALUES)
        axis->value[axis->n++] = *value;
    return CO_OK;
}

/* The list that --try has for this key; NULL: none. */
static const char *axes_try(const tune_job *job, const char *key)
{
    const cli_list *tries = &job->options->tries;
    const size_t n = strlen(key);

    for (int i = tries->n - 1; i >= 0; i--)
        if (strncmp(tries->text[i], key, n) == 0 && tries->text[i][n] == '=')
            return tries->text[i] + n + 1;
    return NULL;
}

co_status tune_axes_check(const tune_job *job)
{
    const cli_list *tries = &job->options->tries;

    for (int i = 0; i < tries->n; i++) {
        const char *equals = strchr(tries->text[i], '=');
        bool known = false;

        for (int a = 0; equals && a < TUNE_AXES; a++)
            known = known || (strncmp(tries->text[i], axes_names[a],
                                      (size_t)(equals - tries->text[i])) == 0 &&
                              axes_names[a][equals - tries->text[i]] == '\0');
        if (!known)
            return co_fail(CO_E_USAGE,
                           "--try %s: expected KEY=LIST with one of ranks, batch, bucket_mib, "
                           "strategies, loader.threads",
                           tries->text[i]);
    }
    return CO_OK;
}

/* ---- ranks and threads ---- */

/* What the threads of a rank are without the key. */
static int64_t axes_share(const tune_job *job, int64_t ranks)
{
    const int64_t share = job->cores / ranks;

    return axes_spec(job)->shards ? 1 : share > 1 ? share : 1;
}

static bool axes_is_plain(const co_choice *choice, const co_value *strategy)
{
    const co_value *reduction =
        strategy && strategy->kind == CO_VALUE_MAP ? co_value_get(strategy, "reduction") : NULL;

    return choice->kind == CO_CHOICE_SYNC && choice->compress <= CO_CHOICE_HALF &&
           (!reduction || strcmp(reduction->text, "mean") != 0);
}

/* Another number of ranks with the same batch. */
static int axes_ranks_effect(const tune_job *job)
{
    const co_spec *spec = axes_spec(job);
    const char *partition = co_spec_plugin_name(spec->partition, "global");

    if (spec->shards)
        return TUNE_SAME;
    if (!axes_is_plain(&job->axis[TUNE_STRATEGY].value[0].choice, spec->strategy) ||
        strcmp(partition, "global") != 0 || (job->batch_norm && !spec->sync_batch_norm))
        return TUNE_CHANGES;
    return TUNE_ROUNDING;
}

static co_status axes_add_layout(tune_job *job, int64_t ranks, int64_t threads)
{
    tune_axis *axis = &job->axis[TUNE_LAYOUT];
    const tune_value *now = &axis->value[0];
    const int64_t effective = threads ? threads : axes_share(job, ranks);
    tune_value value = {.number = ranks, .threads = threads};

    if (axes_spec(job)->shards && ranks > axes_spec(job)->shards)
        return CO_OK;
    if (axis->n && ranks != now->number)
        value.effect = axes_ranks_effect(job);
    if (axis->n && value.effect == TUNE_SAME &&
        effective != (now->threads ? now->threads : axes_share(job, now->number)))
        value.effect = TUNE_ROUNDING;
    value.text = co_arena_printf(tune_arena(job), "%" PRId64 " x %" PRId64, ranks, effective);
    value.value = value.text;
    return axes_add(axis, &value);
}

static bool axes_on_device(const co_spec *spec)
{
    return strcmp(co_spec_plugin_name(spec->device_value, "cpu"), "cpu") != 0;
}

static co_status axes_read_layout(tune_job *job)
{
    const co_spec *spec = axes_spec(job);
    const char *given = axes_try(job, "ranks");
    co_ints ranks = {0};

    CO_TRY(axes_add_layout(job, spec->ranks, spec->threads));
    if (given)
        CO_TRY(cli_read_numbers(&ranks, job->plan.lists, "--try ranks", given, 1, 1024));
    for (size_t i = 0; i < ranks.n; i++)
        CO_TRY(axes_add_layout(job, ranks.v[i], 0));
    CO_TRY(axes_add_layout(job, spec->ranks, 0));
    if (given || axes_on_device(spec))
        return CO_OK;
    CO_TRY(axes_add_layout(job, 1, 1));
    for (int64_t n = 1; n <= job->cores; n *= 2)
        CO_TRY(axes_add_layout(job, n, spec->shards ? job->cores / n : 0));
    CO_TRY(axes_add_layout(job, job->cores, 0));
    job->axis[TUNE_LAYOUT].usual = 0;
    return CO_OK;
}

/* ---- batch ---- */

static co_status axes_add_batch(tune_job *job, int64_t batch)
{
    tune_axis *axis = &job->axis[TUNE_BATCH];
    const tune_value value = {.number = batch,
                              .effect = axis->n ? TUNE_CHANGES : TUNE_SAME,
                              .text = co_arena_printf(tune_arena(job), "%" PRId64, batch),
                              .value = co_arena_printf(tune_arena(job), "%" PRId64, batch)};

    return axes_add(axis, &value);
}

static co_status axes_read_batch(tune_job *job)
{
    const co_spec *spec = axes_spec(job);
    const int64_t own = (int64_t)co_spec_batch(spec, (int)spec->ranks);
    const int64_t epoch = (int64_t)job->plan.work.train_samples / AXES_EPOCH_STEPS;
    const char *given = axes_try(job, "batch");
    co_ints batches = {0};

    job->axis[TUNE_BATCH].usual = -1;
    CO_TRY(axes_add_batch(job, own));
    if (given)
        CO_TRY(cli_read_numbers(&batches, job->plan.lists, "--try batch", given, 1, 1 << 24));
    for (size_t i = 0; i < batches.n; i++)
        CO_TRY(axes_add_batch(job, batches.v[i]));
    for (int k = -AXES_BATCH_BELOW; k <= AXES_BATCH_ABOVE && !given; k++) {
        const int64_t batch = k < 0 ? own >> -k : own << k;

        if (batch >= AXES_BATCH_LEAST && batch <= AXES_BATCH_MOST && batch <= epoch)
            CO_TRY(axes_add_batch(job, batch));
    }
    return CO_OK;
}

/* ---- buckets ---- */

static co_status axes_add_bucket(tune_job *job, double mib)
{
    tune_axis *axis = &job->axis[TUNE_BUCKET];
    const bool selects =
        job->axis[TUNE_STRATEGY].value[0].choice.compress > CO_CHOICE_HALF; /* by bucket */
    const tune_value value = {
        .mib = mib,
        .effect = axis->n && selects ? TUNE_CHANGES : TUNE_SAME,
        .text = mib > 0 ? co_arena_printf(tune_arena(job), "%g", mib) : "auto",
        .value = mib > 0 ? co_arena_printf(tune_arena(job), "%g", mib) : "auto"};

    return axes_add(axis, &value);
}

/* Sizes up to twice the gradient: beyond, there is one bucket. */
static co_status axes_read_bucket(tune_job *job)
{
    static const double sizes[] = {0.25, 1, 16, 64};
    const double most = 2 * 4 * (double)job->plan.work.n / (1 << 20);
    const char *given = axes_try(job, "bucket_mib");
    const co_value *list;

    CO_TRY(axes_add_bucket(job, job->axis[TUNE_STRATEGY].value[0].choice.bucket_mib));
    if (!job->axis[TUNE_STRATEGY].value[0].buckets)
        return CO_OK;
    if (!given) {
        CO_TRY(axes_add_bucket(job, 0));
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i] <= most; i++)
            CO_TRY(axes_add_bucket(job, sizes[i]));
    } else {
        CO_TRY(cli_read_list(&list, job->plan.lists, "--try bucket_mib", given));
        for (size_t i = 0; i < list->n; i++) {
            const char *text = list->item[i]->kind == CO_VALUE_SCALAR ? list->item[i]->text : "";
            char *end;
            const double mib = co_number_parse(text, &end);

            if (strcmp(text, "auto") != 0 && (end == text || *end || !(mib > 0 && mib <= 4096)))
                return co_value_fail(list->item[i], "expected MiB, or auto");
            CO_TRY(axes_add_bucket(job, mib));
        }
    }
    for (int i = 0; i < job->axis[TUNE_BUCKET].n; i++)
        if (job->axis[TUNE_BUCKET].value[i].mib == 0)
            job->axis[TUNE_BUCKET].usual = i;
    return CO_OK;
}

/* ---- strategies ---- */

static bool axes_has_buckets(const co_value *item)
{
    const co_strategy_ops *ops;
    const void *chosen;
    const co_value *map;

    if (!item || item->kind == CO_VALUE_NULL)
        return true;
    if (co_plugin_choose(&chosen, &map, &co_strategy_plugins, item, NULL) != CO_OK)
        return false;
    ops = chosen;
    for (const co_key *key = ops->keys; key && key->name; key++)
        if (strcmp(key->name, "bucket_mib") == 0)
            return true;
    return false;
}

static co_status axes_add_strategy(tune_job *job, const co_value *item)
{
    const co_spec spec = {.config = job->plan.lists};
    tune_axis *axis = &job->axis[TUNE_STRATEGY];
    tune_value value = {.text = "sync", .effect = axis->n ? TUNE_CHANGES : TUNE_SAME};
    const bool given = item && item->kind != CO_VALUE_NULL;

    if (axis->n && axes_spec(job)->shards) /* they go with `sync` and `threads` alone */
        return CO_OK;
    if (given) {
        CO_TRY(cli_strategy_check(item, tune_arena(job)));
        CO_TRY(cli_strategy_title(&value.text, job->plan.lists, item));
    }
    CO_TRY(co_choice_read(&value.choice, given ? item : NULL));
    value.choice.title = value.text;
    /* `local` has them before its `start` alone */
    value.buckets = axes_has_buckets(item) && value.choice.kind != CO_CHOICE_LOCAL;
    value.value = "sync";
    if (given)
        CO_TRY(co_spec_text(&value.value, &spec, item));
    for (int i = 0; i < axis->n; i++)
        if (strcmp(axis->value[i].text, value.text) == 0)
            return CO_OK;
    /* the config's own, but for what the axis of buckets has */
    if (axis->n && strcmp(value.text, "sync") == 0 &&
        axes_is_plain(&axis->value[0].choice, axes_spec(job)->strategy) &&
        axis->value[0].choice.compress == CO_CHOICE_WHOLE && !axis->value[0].choice.one_host)
        return CO_OK;
    return axes_add(axis, &value);
}

static co_status axes_read_strategy(tune_job *job)
{
    const char *given = axes_try(job, "strategies");
    const co_value *list;

    CO_TRY(axes_add_strategy(job, axes_spec(job)->strategy));
    CO_TRY(
        cli_read_list(&list, job->plan.lists, "--try strategies", given ? given : PLAN_STRATEGIES));
    for (size_t i = 0; i < list->n; i++)
        CO_TRY(axes_add_strategy(job, list->item[i]));
    job->axis[TUNE_STRATEGY].usual = 0;
    return CO_OK;
}

/* ---- readers ---- */

/* `number` is what auto stands for; that number is no candidate of its own. */
static co_status axes_add_readers(tune_job *job, int64_t n)
{
    tune_axis *axis = &job->axis[TUNE_LOADER];
    const tune_value value = {.number = n < 0 ? job->readers : n,
                              .text =
                                  n < 0 ? "auto" : co_arena_printf(tune_arena(job), "%" PRId64, n),
                              .value = co_arena_printf(tune_arena(job), "%" PRId64, n)};

    for (int i = 0; i < axis->n; i++)
        if (axis->value[i].number == value.number)
            return CO_OK;
    return axes_add(axis, &value);
}

static co_status axes_read_data(tune_job *job)
{
    const co_spec *spec = axes_spec(job);
    co_dataset *data;

    CO_TRY(co_dataset_open_value(&data, spec->data, spec->config, CO_SPLIT_TRAIN));
    job->readers = co_feed_readers(data, job->cores, axes_on_device(spec));
    co_dataset_destroy(data);
    return CO_OK;
}

static co_status axes_read_loader(tune_job *job)
{
    const char *given = axes_try(job, "loader.threads");
    tune_axis *axis = &job->axis[TUNE_LOADER];
    co_ints readers = {0};

    CO_TRY(axes_read_data(job));
    CO_TRY(axes_add_readers(job, axes_spec(job)->loader_threads));
    if (given)
        CO_TRY(cli_read_numbers(&readers, job->plan.lists, "--try loader.threads", given, -1, 64));
    for (size_t i = 0; i < readers.n; i++)
        CO_TRY(axes_add_readers(job, readers.v[i]));
    if (!given) {
        CO_TRY(axes_add_readers(job, -1));
        CO_TRY(axes_add_readers(job, 0));
        for (int64_t n = 1; n <= 2 * job->cores && n <= 64; n *= 2)
            CO_TRY(axes_add_readers(job, n));
    }
    axis->usual = -1;
    for (int i = 0; i < axis->n; i++)
        if (axis->value[i].number == job->readers)
            axis->usual = i;
    return CO_OK;
}

co_status tune_axes_read(tune_job *job)
{
    CO_TRY(axes_read_strategy(job));
    CO_TRY(axes_read_layout(job));
    CO_TRY(axes_read_batch(job));
    CO_TRY(axes_read_bucket(job));
    return axes_read_loader(job);
}
