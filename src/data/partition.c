/*
 * partition.c - a partition from its config text.
 */
#include "data/partition.h"

#include "core/config.h"
#include "core/mem.h"

#define PARTITION_MAX_NAMES 64

static co_status partition_find(const co_partition_ops **out, const char *kind,
                                const co_value *value)
{
    const char *names[PARTITION_MAX_NAMES];
    size_t n = 0;

    *out = co_partition_find(kind);
    if (*out)
        return CO_OK;
    for (const co_partition_ops *const *p = co_partitions; *p && n < PARTITION_MAX_NAMES; p++)
        names[n++] = (*p)->name;
    return co_value_unknown(value, "partition", kind, names, n);
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
    CO_TRY(partition_find(ops, kind->text, kind));
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
    const co_partition_ops *ops;
    co_config *config;
    void *self = NULL;
    co_status st;

    *parts = false;
    if (!options->partition)
        return CO_OK;
    CO_TRY(co_config_parse(&config, "", 0, "partition"));
    st = partition_read(&ops, &self, config, options->partition);
    if (st == CO_OK && ops->cut) {
        *parts = true;
        st = ops->cut(self, order, size, options);
    }
    co_config_destroy(config);
    return st;
}
