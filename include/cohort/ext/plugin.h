/*
 * ext/plugin.h - what all plugins have in common.
 *
 * Everything that a config chooses by name is a plugin: a struct of functions, whose kind says what
 * each is for (ext/optim.h, ext/strategy.h, ext/dataset.h, ...), with these four members in front.
 */
#ifndef COHORT_EXT_PLUGIN_H
#define COHORT_EXT_PLUGIN_H

#include <cohort/ext/keys.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct co_plugin {
    const char *name;    /* in a config */
    const char *summary; /* one line, for `cohort list` */
    const co_key *keys;  /* of its struct; NULL: none */
    size_t self_size;    /* bytes of its struct: what `self` points to */
} co_plugin;

#ifdef __cplusplus
}
#endif
#endif
