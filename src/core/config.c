/*
 * config.c - a config: the tree of its file, and what --set changes in it.
 */
#include "core/config.h"

#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/yaml.h"

struct co_config {
    co_arena *arena; /* owned: all values */
    co_value *root;
    const char *name;
};

co_status co_config_parse(co_config **out, const char *text, size_t length, const char *name)
{
    co_config *config;
    co_status st = CO_E_NOMEM;
    const char *source;

    if (length > CO_CONFIG_MAX_BYTES)
        return co_fail(CO_E_USAGE, "%s: %zu bytes are more than a config may have (%zu)", name,
                       length, CO_CONFIG_MAX_BYTES);
    config = co_calloc(1, sizeof(*config));
    if (!config)
        return CO_E_NOMEM;
    config->arena = co_arena_create();
    source = config->arena ? co_arena_strdup(config->arena, name) : NULL;
    config->name = source;
    if (source)
        st = co_yaml_parse(&config->root, config->arena, text, length, source);
    if (st == CO_OK && config->root->kind != CO_VALUE_MAP && config->root->kind != CO_VALUE_NULL)
        st = co_value_fail(config->root, "a config is a list of `key: value` lines");
    if (st != CO_OK) {
        co_config_destroy(config);
        return st;
    }
    *out = config;
    return CO_OK;
}

co_status co_config_load(co_config **out, const char *path)
{
    uint8_t *text = NULL;
    size_t size = 0;
    co_status st;

    CO_TRY(co_fs_read(&text, &size, path, CO_CONFIG_MAX_BYTES, CO_E_USAGE));
    st = co_config_parse(out, (const char *)text, size, path);
    co_free(text);
    return st;
}

void co_config_destroy(co_config *config)
{
    if (!config)
        return;
    co_arena_destroy(config->arena);
    co_free(config);
}

co_value *co_config_root(const co_config *config)
{
    return config->root;
}

const char *co_config_name(const co_config *config)
{
    return config->name;
}

co_arena *co_config_arena(const co_config *config)
{
    return config->arena;
}

co_status co_config_add_text(const co_value **out, co_config *config, const char *text)
{
    const char *source;
    co_value *value;

    if (!text)
        return co_fail(CO_E_USAGE, "a config text is missing (NULL); give a name, or {name: ...}");
    source = co_arena_printf(config->arena, "'%s'", text);
    if (!source)
        return CO_E_NOMEM;
    CO_TRY(co_yaml_parse(&value, config->arena, text, strlen(text), source));
    *out = value;
    return CO_OK;
}

static co_status config_put(co_value *map, co_arena *arena, const char *key, co_value *item)
{
    co_value **items;
    const char **keys;

    for (size_t i = 0; i < map->n; i++)
        if (strcmp(map->key[i], key) == 0) {
            map->item[i] = item;
            return CO_OK;
        }
    items = co_arena_alloc(arena, map->n + 1, sizeof(*items));
    keys = co_arena_alloc(arena, map->n + 1, sizeof(*keys));
    if (!items || !keys)
        return CO_E_NOMEM;
    if (map->n) {
        memcpy(items, map->item, map->n * sizeof(*items));
        memcpy(keys, map->key, map->n * sizeof(*keys));
    }
    items[map->n] = item;
    keys[map->n] = key;
    map->item = items;
    map->key = keys;
    map->n++;
    return CO_OK;
}

/* Keys that may have a plain value which is not a plugin's name: the key that it stands for, or
   NULL: it has none. */
static const struct {
    const char *key, *whole;
} config_short[] = {
    {"precision", "level"},     {"checkpoint", "every"}, {"partition", "kind"},
    {"test_partition", "kind"}, {"init", "weights"},     {"data.resize", "size"},
    {"data.normalize", NULL},   {"tensorboard", NULL},   {"freeze", NULL},
};

const char *co_config_whole(const char *path, size_t n)
{
    for (size_t i = 0; i < sizeof(config_short) / sizeof(config_short[0]); i++)
        if (strlen(config_short[i].key) == n && strncmp(config_short[i].key, path, n) == 0)
            return config_short[i].whole;
    return "name";
}

/* The map under `key`, the first `n` bytes of an assignment, made where it is missing. */
static co_status config_enter(co_value **map, co_arena *arena, const char *key, size_t n,
                              const char *assignment)
{
    const char *whole = co_config_whole(assignment, n);
    const co_value *found = co_value_get(*map, key);
    co_value *inner;

    if (found && found->kind == CO_VALUE_MAP) {
        *map = (co_value *)found;
        return CO_OK;
    }
    if (found && found->kind == CO_VALUE_LIST)
        return co_fail(CO_E_USAGE, "--set %s: '%s' is a list, it has no keys", assignment, key);
    if (found && found->kind == CO_VALUE_SCALAR && !whole)
        return co_fail(CO_E_USAGE,
                       "--set %s: '%s' is '%s', which has no keys; give a map, %.*s={...}",
                       assignment, key, found->text, (int)n, assignment);
    inner = co_arena_alloc(arena, 1, sizeof(*inner));
    if (!inner)
        return CO_E_NOMEM;
    *inner = (co_value){.kind = CO_VALUE_MAP, .source = "--set"};
    if (found && found->kind == CO_VALUE_SCALAR)
        CO_TRY(config_put(inner, arena, whole, (co_value *)found));
    CO_TRY(config_put(*map, arena, key, inner));
    *map = inner;
    return CO_OK;
}

/* Levels below a value. */
static int config_height(const co_value *value)
{
    int height = 0;

    for (size_t i = 0; i < value->n; i++) {
        int below = 1 + config_height(value->item[i]);

        height = below > height ? below : height;
    }
    return height;
}

/* `path` is cut at its dots. */
static co_status config_assign(co_config *config, char *path, co_value *value,
                               const char *assignment)
{
    const char *begin = path;
    co_value *map = config->root;
    char *dot;

    if (map->kind == CO_VALUE_NULL)
        map->kind = CO_VALUE_MAP;
    for (; (dot = strchr(path, '.')); path = dot + 1) {
        *dot = '\0';
        if (!path[0] || !dot[1])
            return co_fail(CO_E_USAGE, "--set %s: a name between dots is missing", assignment);
        CO_TRY(config_enter(&map, config->arena, path, (size_t)(dot - begin), assignment));
    }
    return config_put(map, config->arena, path, value);
}

co_status co_config_set_string(co_config *config, const char *key, const char *text)
{
    co_value *value = co_arena_alloc(config->arena, 1, sizeof(*value));
    char *path = co_arena_strdup(config->arena, key);

    if (!value || !path)
        return CO_E_NOMEM;
    *value = (co_value){.kind = CO_VALUE_SCALAR,
                        .text = co_arena_strdup(config->arena, text),
                        .quoted = true,
                        .source = config->name};
    return value->text ? config_assign(config, path, value, key) : CO_E_NOMEM;
}

co_status co_config_set(co_config *config, const char *assignment)
{
    const char *equals = strchr(assignment, '=');
    const char *source;
    co_value *value;
    char *path;
    int depth = 1;

    if (!equals || equals == assignment)
        return co_fail(CO_E_USAGE, "--set %s: expected key=value", assignment);
    for (const char *c = assignment; c < equals; c++) {
        if ((unsigned char)*c <= ' ' || (unsigned char)*c >= 0x7f)
            return co_fail(CO_E_USAGE, "--set %s: no key has such letters", assignment);
        depth += *c == '.';
    }
    source = co_arena_printf(config->arena, "--set %s", assignment);
    path = co_arena_strdup(config->arena, assignment);
    if (!source || !path)
        return CO_E_NOMEM;
    path[equals - assignment] = '\0';
    if (strlen(equals + 1) > CO_CONFIG_MAX_BYTES)
        return co_fail(CO_E_USAGE, "--set %s: the value is too long", path);
    CO_TRY(co_yaml_parse(&value, config->arena, equals + 1, strlen(equals + 1), source));
    /* What --set makes must fit a file again. */
    if (depth + config_height(value) >= CO_CONFIG_MAX_DEPTH)
        return co_fail(CO_E_USAGE, "--set %s: values are nested too deeply", assignment);
    return config_assign(config, path, value, assignment);
}
