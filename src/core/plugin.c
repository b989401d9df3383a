/*
 * plugin.c - plugins of any kind, by name.
 */
#include "core/plugin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#define PLUGIN_MAX_NAMES 128 /* of a message */
#define PLUGIN_MAX_ADDED 64  /* of a kind */

/* What has been added to the built-in ones: code that is loaded stays for the process, and so does
   this. It only grows, and entries below a count never change, so readers need no lock. */
static struct {
    pthread_mutex_t lock; /* of who adds */
    atomic_size_t n[CO_PLUGIN_KINDS];
    const void *ops[CO_PLUGIN_KINDS][PLUGIN_MAX_ADDED];
} plugin_added = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const char *plugin_name(const void *ops)
{
    const co_plugin *plugin = ops;

    return plugin->name;
}

/* With the lock. */
static co_status plugin_add(const co_plugins *plugins, const void *ops)
{
    const size_t n = atomic_load(&plugin_added.n[plugins->kind]);
    const void *other = co_plugin_find(plugins, plugin_name(ops));

    if (other == ops)
        return CO_OK;
    if (other)
        return co_fail(CO_E_USAGE, "%s '%s': there is another of this name", plugins->what,
                       plugin_name(ops));
    if (n == PLUGIN_MAX_ADDED)
        return co_fail(CO_E_USAGE, "%s '%s': %d of a kind have been added, which is the most",
                       plugins->what, plugin_name(ops), PLUGIN_MAX_ADDED);
    plugin_added.ops[plugins->kind][n] = ops;
    atomic_store(&plugin_added.n[plugins->kind], n + 1);
    return CO_OK;
}

co_status co_plugin_add(const co_plugins *plugins, const void *ops)
{
    co_status st;

    pthread_mutex_lock(&plugin_added.lock);
    st = plugin_add(plugins, ops);
    pthread_mutex_unlock(&plugin_added.lock);
    return st;
}

const void *co_plugin_at(const co_plugins *plugins, size_t i)
{
    const void *ops;

    for (size_t k = 0;; k++) {
        /* An array of pointers to a struct of ops, whatever the kind's is called. */
        memcpy(&ops, (const char *)plugins->built_in + k * sizeof(ops), sizeof(ops));
        if (ops && k == i)
            return ops;
        if (!ops)
            return i - k < atomic_load(&plugin_added.n[plugins->kind])
                       ? plugin_added.ops[plugins->kind][i - k]
                       : NULL;
    }
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

co_status co_plugin_said(co_status st, uint64_t before, const co_plugins *plugins, const void *ops,
                         const char *function)
{
    if (st == CO_OK || co_fail_count() != before)
        return st;
    return co_fail(st,
                   "%s '%s': its function %s has returned the status %d without a message "
                   "(co_fail)",
                   plugins->what, plugin_name(ops), function, (int)st);
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
    return co_keys_read_named(self, keys, map, what, arena);
}
