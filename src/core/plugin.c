/*
 * plugin.c - plugins of any kind, by name.
 */
#include "core/plugin.h"

#include <string.h>

#define PLUGIN_MAX_NAMES 128 /* of a message */

const void *co_plugin_at(const co_plugins *plugins, size_t i)
{
    const void *ops;

    /* An array of pointers to a struct of ops of any kind. */
    memcpy(&ops, (const char *)plugins->built_in + i * sizeof(ops), sizeof(ops));
    return ops;
}

static const char *plugin_name(const void *ops)
{
    const co_plugin *plugin = ops;

    return plugin->name;
}

const void *co_plugin_find(const co_plugins *plugins, const char *name)
{
    const void *ops;

    for (size_t i = 0; (ops = co_plugin_at(plugins, i)) != NULL; i++)
        if (strcmp(plugin_name(ops), name) == 0)
            return ops;
    return NULL;
}

co_status co_plugin_unknown(const co_plugins *plugins, const char *name, const co_value *value,
                            const char *also)
{
    const char *names[PLUGIN_MAX_NAMES] = {also};
    size_t n = also != NULL;
    const void *ops;

    for (size_t i = 0; (ops = co_plugin_at(plugins, i)) != NULL && n < PLUGIN_MAX_NAMES; i++)
        names[n++] = plugin_name(ops);
    return co_value_unknown(value, plugins->what, name, names, n);
}

co_status co_plugin_choose(const void **ops, const co_value **map, const co_plugins *plugins,
                           const co_value *value, const char *fallback)
{
    const char *name = fallback;

    *map = NULL;
    if (value)
        CO_TRY(co_value_plugin(&name, map, value, plugins->key));
    *ops = co_plugin_find(plugins, name);
    return *ops ? CO_OK : co_plugin_unknown(plugins, name, value, NULL);
}

co_status co_plugin_read(void *self, const void *ops, const co_plugins *plugins,
                         const co_key *common, size_t shift, const co_value *map, co_arena *arena)
{
    const co_plugin *plugin = ops;
    const char *what = co_arena_printf(arena, "%s %s", plugins->key, plugin->name);
    const co_key *keys = plugin->keys;

    if (!what)
        return CO_E_NOMEM;
    if (common || shift)
        CO_TRY(co_keys_join(&keys, common, plugin->keys, shift, arena));
    return co_keys_read(self, keys, map, what, arena);
}
