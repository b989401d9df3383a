/*
 * config.h - YAML text to a tree of values that remember their position.
 *
 * Knows syntax, positions and key lists; not what any key means. The YAML parser stays inside
 * config.c.
 */
#ifndef CO_CORE_CONFIG_H
#define CO_CORE_CONFIG_H

#include <stdio.h>

#include <cohort/ext/keys.h>

#include "core/arena.h"

typedef struct co_config co_config;

typedef enum co_value_kind {
    CO_VALUE_NULL,
    CO_VALUE_SCALAR,
    CO_VALUE_LIST,
    CO_VALUE_MAP
} co_value_kind;

/* A node of the tree; owned by its co_config. */
typedef struct co_value {
    co_value_kind kind;
    const char *text;       /* SCALAR: the text, unquoted */
    bool quoted;            /* SCALAR: was quoted, so it is a string and not a number */
    size_t n;               /* LIST, MAP: number of items */
    struct co_value **item; /* LIST, MAP: values */
    const char **key;       /* MAP: names, no two equal */
    const char *source;     /* file name, or "--set", for messages */
    int line, column;       /* 1-based; 0 when not from a text */
    size_t begin, end;      /* bytes of the text; equal: not known, or left out */
} co_value;

#define CO_CONFIG_MAX_BYTES ((size_t)1 << 20)
#define CO_CONFIG_MAX_DEPTH 32
#define CO_CONFIG_MAX_KEYS  1024 /* of one map */

/* Read a YAML file of at most CO_CONFIG_MAX_BYTES. CO_E_USAGE names file, line and column.
   Anchors, aliases, tags, duplicate keys and several documents are refused. */
co_status co_config_load(co_config **out, const char *path);
/* The same from text; messages call the file `name`. */
co_status co_config_parse(co_config **out, const char *text, size_t length, const char *name);
void co_config_destroy(co_config *config);

/* The root value (a map, or null for an empty text), borrowed. */
co_value *co_config_root(const co_config *config);
/* Of the file, or the name given instead. */
const char *co_config_name(const co_config *config);
co_arena *co_config_arena(const co_config *config);

/* Apply "dotted.key=YAML" as from --set; makes missing maps on the way. A scalar `x` in the way
   becomes the map that it is short for, so that `optimizer: sgd` takes `optimizer.lr=0.1` as
   {name: sgd, lr: 0.1}. CO_E_USAGE: it is short for none. */
co_status co_config_set(co_config *config, const char *assignment);
/* The key of the map that a plain value is short for, where its own key is the first `n` bytes of
   `path`: "name", of precision "level"; NULL: none. */
const char *co_config_whole(const char *path, size_t n);
/* Set a dotted key to a string, as it is. */
co_status co_config_set_string(co_config *config, const char *key, const char *text);

/* `text` of a config, `size` bytes, changed as co_config_set would its tree: a value is replaced,
   or a key added; all else, comments too, stays as it is. CO_E_UNSUPPORTED: the text has no place
   that could be changed so. The caller frees *out with co_free. */
co_status co_config_edit(char **out, const char *text, size_t size, const char *assignment);

/* Parse a small flow map such as "{out: 10, kernel: 5}" into a value owned by `config`. */
co_status co_config_add_text(const co_value **out, co_config *config, const char *text);

/* Value of a map's key, or NULL. */
const co_value *co_value_get(const co_value *map, const char *key);

/* Call `visit` for each value below `value` that is no map, or an empty one, with its dotted name,
   which begins with `name`, unless that is "". A map's `name` goes by the map's own, as where it
   stands alone: `optimizer: {name: sgd, lr: 0.1}` is "optimizer" and "optimizer.lr". Names of
   CO_CONFIG_MAX_NAME bytes or more are left out. */
#define CO_CONFIG_MAX_NAME 256
typedef co_status co_value_visit(void *arg, const char *name, const co_value *value);
co_status co_value_walk(const co_value *value, const char *name, co_value_visit *visit, void *arg);

/* Read a map into the struct `self` by its key list: defaults first, then the map's values.
   `map` may be NULL or null. Errors (CO_E_USAGE) name source:line:column, the key, what was
   expected, the nearest key. `what` names the owner in messages, e.g. "optimizer sgd". Lists are
   put in `arena`. */
co_status co_keys_read(void *self, const co_key *keys, const co_value *map, const char *what,
                       co_arena *arena);
/* The same of a plugin or a layer: the key "name", if `keys` has none of that name, is its own. */
co_status co_keys_read_named(void *self, const co_key *keys, const co_value *map, const char *what,
                             co_arena *arena);
/* The keys of `common` and then those of `own`, whose struct begins `shift` bytes into the one
   read: how a module adds its keys (lr, path, ...) to those of its plugins. Either may be NULL. */
co_status co_keys_join(const co_key **out, const co_key *common, const co_key *own, size_t shift,
                       co_arena *arena);
/* The key of this name; NULL: there is none. `keys` may be NULL. */
const co_key *co_keys_find(const co_key *keys, const char *name);
/* CO_E_USAGE: `keys`, of a struct of `size` bytes, are not a list that can be read by, or one has a
   name of `common` or a default that it does not take. `what` names the owner. */
co_status co_keys_check(const co_key *keys, const co_key *common, size_t size, const char *what);
/* Print one line per key for --help and `cohort list`: name, type, default, help. */
void co_keys_print(FILE *out, const co_key *keys, int indent);
/* Print the struct back as YAML `key: value` lines at this indent (VALUE keys as given). */
co_status co_keys_write(FILE *out, const void *self, const co_key *keys, int indent);
/* Print any value as flow YAML that reads back equal. */
co_status co_value_write(FILE *out, const co_value *value);

/* `sgd` or `{name: sgd, lr: 0.1}`: the plugin's name, and the map (NULL for a bare name). For a map
   without a name *name stays as it is, if it is not NULL. `what` is the key for messages. */
co_status co_value_plugin(const char **name, const co_value **map, const co_value *value,
                          const char *what);

/* CO_E_USAGE at a value's position: "file:3:8: <message>". */
co_status co_value_fail(const co_value *value, const char *fmt, ...) CO_PRINTF(2, 3);

/* A null value with the position of another, which may be NULL: messages about keys missing from it
   name that position. */
co_value co_value_absent(const co_value *place);

/* Put a value's position before a message that has none: for errors that only a lower layer, which
   knows no config, can detect. Returns `st`; does nothing unless it is CO_E_USAGE. */
co_status co_value_place(co_status st, const co_value *value);

/* CO_E_USAGE: there is no such `what` ("optimizer"); names the nearest of `names` (n of them), else
   all. `value` is the name, or the plugin's map that holds it. */
co_status co_value_unknown(const co_value *value, const char *what, const char *name,
                           const char *const *names, size_t n);

/* The entry of `names` (n of them) nearest to `name`, or NULL when none is near; one that is the
   same but for case, '-' and '_' is the nearest. */
const char *co_nearest(const char *name, const char *const *names, size_t n);

#endif
