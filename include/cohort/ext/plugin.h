/*
 * ext/plugin.h - what all plugins have in common.
 *
 * Everything that a config chooses by name is a plugin: a struct of functions, which its kind
 * defines (ext/optim.h, ext/strategy.h, ext/dataset.h, ...), and which begins with these four
 * members.
 */
#ifndef COHORT_EXT_PLUGIN_H
#define COHORT_EXT_PLUGIN_H

#include <cohort/ext/keys.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct co_plugin {
    const char *name;    /* its name in a config */
    const char *summary; /* one line, for `cohort list` */
    const co_key *keys;  /* of its struct; NULL: none */
    size_t self_size;    /* bytes of its struct: what `self` points to */
} co_plugin;

#ifdef __cplusplus
}
#endif
#endif
