/*
 * plugin.h - what a config chooses by name: optimizers, strategies, data sets, ...
 *
 * One lookup, one message for an unknown name, and one way to read a plugin's keys, for all kinds.
 * Independent of what a kind does.
 */
#ifndef CO_CORE_PLUGIN_H
#define CO_CORE_PLUGIN_H

#include <cohort/ext/plugin.h>

#include "core/config.h"
#include "core/status.h"

/* The plugins of one kind. */
typedef struct co_plugins {
    const char *what;     /* in messages: "data set" */
    const char *key;      /* in a config: "data" */
    const void *built_in; /* an array of pointers to structs that begin as co_plugin does, ended by
                             NULL */
    int kind;             /* co_plugin_kind; 0: none can be added */
    const co_key *common; /* keys of all of them; NULL: none */
} co_plugins;

/* A struct of ops begins as co_plugin does; `size` is its member for self_size. */
#define CO_PLUGIN_CHECK(ops, size)                                                                 \
    _Static_assert(offsetof(ops, name) == offsetof(co_plugin, name) &&                             \
                       offsetof(ops, summary) == offsetof(co_plugin, summary) &&                   \
                       offsetof(ops, keys) == offsetof(co_plugin, keys) &&                         \
                       offsetof(ops, size) == offsetof(co_plugin, self_size),                      \
                   #ops " does not begin as co_plugin does")

#define CO_PLUGIN_KINDS (CO_PLUGIN_DATASET + 1)

/* Add a plugin to those of its kind, for as long as the process lives; thread-safe. CO_E_USAGE:
   there is another of its name, or there are too many. The same again changes nothing. */
co_status co_plugin_add(const co_plugins *plugins, const void *ops);

/* Plugin i, in the order of lists; NULL after the last. */
const void *co_plugin_at(const co_plugins *plugins, size_t i);
/* NULL if unknown. */
const void *co_plugin_find(const co_plugins *plugins, const char *name);
/* CO_E_USAGE at `value`: there is no such plugin; the nearest name, or all. `also`: a name that
   would have been taken, too; NULL: none. */
co_status co_plugin_unknown(const co_plugins *plugins, const char *name, const co_value *value,
                            const char *also);

/* From a config's `NAME` or `{name: NAME, key: value}`: the plugin, and the map or NULL. `fallback`
   names it where `value` is NULL or a map without a name; NULL: it must be named. */
co_status co_plugin_choose(const void **ops, const co_value **map, const co_plugins *plugins,
                           const co_value *value, const char *fallback);
/* `st`, which a plugin's function has returned, with a message if that has set none since `before`,
   an earlier co_fail_count. */
co_status co_plugin_said(co_status st, uint64_t before, const co_plugins *plugins, const void *ops,
                         const char *function);
/* Call a function of a plugin, CO_PLUGIN_TRY(&co_strategy_plugins, ops, start, (strategy)), and
   return from the calling one if it fails. */
#define CO_PLUGIN_TRY(plugins, ops, function, arguments)                                           \
    do {                                                                                           \
        const uint64_t co_plugin_before_ = co_fail_count();                                        \
        CO_TRY(co_plugin_said((ops)->function arguments, co_plugin_before_, (plugins), (ops),      \
                              #function));                                                         \
    } while (0)

/* The keys of `common` (NULL: none), and those of the plugin into its struct, `shift` bytes into
   `self`. What is missing from `map` (NULL: all) is missed there. */
co_status co_plugin_read(void *self, const void *ops, const co_plugins *plugins,
                         const co_key *common, size_t shift, const co_value *map, co_arena *arena);

#endif
