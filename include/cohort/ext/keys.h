/*
 * keys.h - how a plugin declares its config keys.
 *
 * A plugin lists its keys once; reading, checking, `--help`, `cohort list` and the resolved
 * config.yaml all use that list.
 */
#ifndef COHORT_EXT_KEYS_H
#define COHORT_EXT_KEYS_H

#include <cohort/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum co_key_type {
    CO_KEY_BOOL,   /* bool */
    CO_KEY_INT,    /* int64_t */
    CO_KEY_REAL,   /* double */
    CO_KEY_STRING, /* const char *, owned by the config */
    CO_KEY_CHOICE, /* int: index into `choices` */
    CO_KEY_INTS,   /* co_ints */
    CO_KEY_REALS,  /* co_reals */
    CO_KEY_VALUE   /* const co_value *: interpreted by the owner; NULL when absent */
} co_key_type;

/** A list of numbers; `v` is owned by the config. One number in the config is a list of one. */
typedef struct co_ints {
    size_t n;
    const int64_t *v;
} co_ints;
typedef struct co_reals {
    size_t n;
    const double *v;
} co_reals;

typedef struct co_key {
    const char *name; /* NULL ends the list */
    co_key_type type;
    size_t offset;              /* offsetof the field in the plugin's struct */
    const char *fallback;       /* default as YAML text; NULL: the key must be given; "~": absent
                                   (VALUE: NULL, lists: n = 0, STRING: NULL) */
    double min, max;            /* inclusive bounds of numbers and list items; both 0: unbounded */
    const char *const *choices; /* CO_KEY_CHOICE: names, ended by NULL; INT, REAL: the first one
                                   means 0, whatever the bounds; VALUE: the first one describes what
                                   it accepts; NULL: there is none */
    const char *help;           /* one line, with unit */
} co_key;

/* `choices` of a CO_KEY_VALUE: a description of what it accepts. */
#define CO_KEY_TAKES(words) ((const char *const[]){words, NULL})

#define CO_KEYS_END                                                                                \
    {                                                                                              \
        NULL, CO_KEY_BOOL, 0, NULL, 0, 0, NULL, NULL                                               \
    }

#ifdef __cplusplus
}
#endif
#endif
