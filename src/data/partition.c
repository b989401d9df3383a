/*
 * partition.c - a partition from its config text, and helpers that partitions share.
 */
#include "data/partition.h"

#include "core/mem.h"
#include "core/plural.h"
#include "data/data.h"

/* Precedes the plugin's own struct, whose alignment it must keep. */
typedef union partition_common {
    struct {
        const char *kind;
        int equal;
    } key;
    max_align_t align[2];
} partition_common;

static const char *const partition_batchings[] = {"proportional", "equal", NULL};

static const co_key partition_kind_keys[] = {{"kind", CO_KEY_STRING,
                                              offsetof(partition_common, key.kind), "global", 0, 0,
                                              NULL, "how the data is shared"},
                                             CO_KEYS_END};

const co_key co_partition_common_keys[] = {
    {"batching", CO_KEY_CHOICE, offsetof(partition_common, key.equal), "proportional", 0, 0,
     partition_batchings,
     "a rank's share of a batch: that of its part, or batch / ranks while its part lasts"},
    CO_KEYS_END};

const co_partition_ops *co_partition_of(const co_value *value)
{
    const co_value *kind =
        value && value->kind == CO_VALUE_MAP ? co_value_get(value, "kind") : value;

    if (!kind)
        return co_plugin_find(&co_partition_plugins, partition_kind_keys[0].fallback);
    return kind->kind == CO_VALUE_SCALAR ? co_plugin_find(&co_partition_plugins, kind->text) : NULL;
}

/* `random`, or {kind: random, ratios: [...]}; the plugin's struct follows `common`. */
static co_status partition_read(partition_common *common, const co_partition_ops *ops,
                                co_config *config, const co_value *map)
{
    co_arena *arena = co_config_arena(config);
    const co_key *keys;

    CO_TRY(co_keys_join(&keys, partition_kind_keys, ops->cut ? co_partition_common_keys : NULL, 0,
                        arena));
    return co_plugin_read(common, ops, &co_partition_plugins, keys, sizeof(*common), map, arena);
}

/* What `text` names, with its keys, in the config's arena. */
static co_status partition_open(const co_partition_ops **out, partition_common **common,
                                co_config *config, const char *text, int ranks)
{
    const co_value *value, *kind;
    const co_partition_ops *ops;

    CO_TRY(co_config_add_text(&value, config, text));
    kind = value->kind == CO_VALUE_MAP ? co_value_get(value, "kind") : value;
    if (!kind || kind->kind != CO_VALUE_SCALAR)
        return co_value_fail(value, "partition: expected a kind, or {kind: ..., key: value}");
    *out = ops = co_plugin_find(&co_partition_plugins, kind->text);
    if (!ops)
        return co_plugin_unknown(&co_partition_plugins, kind->text, kind, NULL);
    *common = co_arena_alloc(co_config_arena(config), 1, sizeof(**common) + ops->self_size);
    if (!*common)
        return CO_E_NOMEM;
    CO_TRY(partition_read(*common, ops, config, value == kind ? NULL : value));
    return ops->check ? ops->check(*common + 1, ranks) : CO_OK;
}

static co_status partition_apply(co_parts *out, co_config *config,
                                 const co_sampler_options *options)
{
    const co_partition_ops *ops = NULL;
    partition_common *common = NULL;

    CO_TRY(partition_open(&ops, &common, config, options->partition, options->ranks));
    if (!ops->any_ranks && !options->sequential && (uint64_t)options->ranks > options->count)
        return co_partition_too_many_ranks(options);
    out->fixed = ops->cut != NULL;
    out->equal = common->key.equal;
    out->dealt = out->torch = out->frozen = out->computed = false;
    out->seed = options->seed;
    if (ops->describe)
        ops->describe(out, common + 1);
    return ops->cut ? ops->cut(out, common + 1, options) : CO_OK;
}

co_status co_partition_cut(co_parts *out, const co_sampler_options *options)
{
    co_config *config;
    co_status st;

    CO_TRY(co_config_parse(&config, "", 0, "partition"));
    st = partition_apply(out, config, options);
    co_config_destroy(config);
    return st;
}

co_status co_partition_check(const char *text, int ranks)
{
    const co_partition_ops *ops = NULL;
    partition_common *common = NULL;
    co_config *config;
    co_status st;

    CO_TRY(co_config_parse(&config, "", 0, "partition"));
    st = partition_open(&ops, &common, config, text, ranks);
    co_config_destroy(config);
    return st;
}

co_status co_partition_too_many_ranks(const co_sampler_options *options)
{
    return co_fail(CO_E_USAGE,
                   "%d ranks are more than the %llu sample%s to train on; start at most %llu",
                   options->ranks, (unsigned long long)options->count, co_plural(options->count),
                   (unsigned long long)options->count);
}

co_status co_partition_needs_labels(const char *name, const co_sampler_options *options)
{
    if (!options->dataset)
        return co_fail(CO_E_USAGE, "partition %s asks for labels: give the sampler the data set",
                       name);
    if (co_dataset_has_labels(options->dataset))
        return CO_OK;
    return co_fail(CO_E_USAGE, "partition %s: the samples of data set %s have no label", name,
                   co_dataset_name(options->dataset));
}

void co_parts_group(co_parts *out, const uint32_t *owner, const co_sampler_options *options)
{
    const int ranks = options->ranks;
    uint64_t begin = 0;

    for (int r = 0; r < ranks; r++)
        out->size[r] = 0;
    for (uint64_t i = 0; i < options->count; i++)
        out->size[owner[i]]++;
    /* size[r] is where rank r's next sample goes ... */
    for (int r = 0; r < ranks; r++) {
        const uint64_t size = out->size[r];

        out->size[r] = begin;
        begin += size;
    }
    for (uint64_t i = 0; i < options->count; i++)
        out->order[out->size[owner[i]]++] = (uint32_t)i;
    /* ... and finally where its part ends. */
    for (int r = ranks - 1; r > 0; r--)
        out->size[r] -= out->size[r - 1];
}
