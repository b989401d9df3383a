/*
 * ext/plugin.h - what all plugins have in common, and how one from outside is made known.
 *
 * Everything that a config chooses by name is a plugin: a struct of functions, which its kind
 * defines (ext/optim.h, ext/strategy.h, ext/dataset.h, ...), and which begins with the
 * members of co_plugin.
 *
 * A file of plugins is a shared object with one function:
 *
 *     CO_PLUGIN_ENTRY
 *     {
 *         return CO_PLUGIN_REGISTER(CO_PLUGIN_OPTIMIZER, &lion_ops);
 *     }
 *
 * It is built with the flags of `pkg-config --cflags cohort` and not linked with libcohort: what it
 * calls is in the program that loads it. See docs/plugins.md.
 */
#ifndef COHORT_EXT_PLUGIN_H
#define COHORT_EXT_PLUGIN_H

#include <cohort/ext/keys.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct co_plugin {
    const char *name;    /* its name in a config: small letters, digits, - _ . */
    const char *summary; /* one line, for `cohort list` */
    const co_key *keys;  /* of its struct; NULL: none */
    size_t self_size;    /* bytes of its struct: what `self` points to */
} co_plugin;

/** Which struct a plugin is. Their values stay what they are. */
typedef enum co_plugin_kind {
    CO_PLUGIN_OPTIMIZER = 1,  /* co_optimizer_ops, ext/optim.h */
    CO_PLUGIN_SCHEDULE = 2,   /* co_schedule_ops, ext/optim.h */
    CO_PLUGIN_STRATEGY = 3,   /* co_strategy_ops, ext/strategy.h */
    CO_PLUGIN_COMPRESSOR = 4, /* co_compressor_ops, ext/compress.h */
    CO_PLUGIN_DATASET = 5     /* co_dataset_ops, ext/dataset.h */
} co_plugin_kind;

/** The version of all headers in ext/: raised by every change after which what was built with the
 *  old ones would not work. */
#define CO_PLUGIN_ABI 6

/** From now on configs may name this plugin. `ops` is borrowed for as long as the process lives;
 *  `size` is that of the kind's struct and `abi` CO_PLUGIN_ABI, both as the headers have them that
 *  the plugin was built with. CO_E_USAGE: these are not the library's; another plugin of the kind
 *  has the name; a function that the kind cannot do without is missing. To register the same again
 *  changes nothing. Thread-safe, but before ranks are launched and before a config names it. */
CO_API co_status co_plugin_register(co_plugin_kind kind, const void *ops, size_t size,
                                    unsigned abi);
#define CO_PLUGIN_REGISTER(kind, ops) co_plugin_register(kind, ops, sizeof(*(ops)), CO_PLUGIN_ABI)

/** Load a file of plugins, for good, and call its function. The file and its folder have to belong
 *  to this user or to root, and to be writable by their owner alone. CO_E_USAGE says what is wrong
 *  with the file, or what its function has failed with. Thread-safe; a file that is loaded already
 *  is left as it is. */
CO_API co_status co_plugin_load(const char *path);

#ifdef __cplusplus
}
#define CO_PLUGIN_LINKAGE extern "C"
#else
#define CO_PLUGIN_LINKAGE
#endif

/** The head of that function. */
#define CO_PLUGIN_ENTRY                                                                            \
    CO_PLUGIN_LINKAGE CO_API co_status cohort_plugin(void);                                        \
    CO_PLUGIN_LINKAGE CO_API co_status cohort_plugin(void)
#endif
