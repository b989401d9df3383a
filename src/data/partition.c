/*
 * partition.c - a partition from its config text.
 */
#include "data/partition.h"

#include "core/config.h"
#include "core/mem.h"

#define PARTITION_MAX_NAMES 64

static co_status partition_unknown(const co_value *kind)
{
    const char *names[PARTITION_MAX_NAMES];
    size_t n = 0;

    for (const co_partition_ops *const *p = co_partitions; *p && n < PARTITION_MAX_NAMES; p++)
        names[n++] = (*p)->name;
    return co_value_unknown(kind, "partition", kind->text, names, n);
}

/* `random`, or {kind: random, ratios: [...]}. */
static co_status partition_read(const co_partition_ops **ops, void **self, co_config *config,
                                const char *text)
{
    static const co_key kind_keys[] = {
        {"kind", CO_KEY_STRING, 0, "global", 0, 0, NULL, "how the data is shared"}, CO_KEYS_END};
    co_arena *arena = co_config_arena(config);
    const size_t shift = sizeof(max_align_t); /* room for the kind in front of the plugin's keys */
    const co_value *value, *kind;
    const co_key *keys;
    char *what, *buffer;

    CO_TRY(co_config_add_text(&value, config, text));
    kind = value->kind == CO_VALUE_MAP ? co_value_get(value, "kind") : value;
    if (!kind || kind->kind != CO_VALUE_SCALAR)
        return co_value_fail(value, "partition: expected a kind, or {kind: ..., key: value}");
    *ops = co_partition_find(kind->text);
    if (!*ops)
        return partition_unknown(kind);
    what = co_arena_printf(arena, "partition %s", (*ops)->name);
    buffer = co_arena_alloc(arena, 1, shift + (*ops)->self_size);
    if (!what || !buffer)
        return CO_E_NOMEM;
    CO_TRY(co_keys_join(&keys, kind_keys, (*ops)->keys, shift, arena));
    *self = buffer + shift;
    return co_keys_read(buffer, keys, value == kind ? NULL : value, what, arena);
}

co_status co_partition_cut(bool *parts, uint32_t *order, uint64_t *size,
                           const co_sampler_options *options)
{
    const co_partition_ops *ops = NULL;
    co_config *config;
    void *self = NULL;
    co_status st;

    *parts = false;
    if (!options->partition)
        return CO_OK;
    CO_TRY(co_config_parse(&config, "", 0, "partition"));
    st = partition_read(&ops, &self, config, options->partition);
    *parts = st == CO_OK && ops && ops->cut;
    if (*parts)
        st = ops->cut(self, order, size, options);
    co_config_destroy(config);
    return st;
}
