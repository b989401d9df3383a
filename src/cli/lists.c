/* lists.c - lists of strategies and numbers on the command line. */
#include "cli/lists.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "core/yaml.h"
#include "strategy/strategy.h"

co_status cli_strategy_check(const co_value *item, co_arena *arena)
{
    const co_strategy_ops *ops;
    const void *chosen;
    const co_value *map;
    void *self;

    CO_TRY(co_plugin_choose(&chosen, &map, &co_strategy_plugins, item, NULL));
    ops = chosen;
    self = co_arena_alloc(arena, 1, ops->self_size ? ops->self_size : 1);
    if (!self)
        return CO_E_NOMEM;
    return co_plugin_read(self, ops, &co_strategy_plugins, NULL, 0, map, arena);
}

co_status cli_strategy_title(const char **out, co_config *config, const co_value *item)
{
    const co_spec spec = {.config = config};
    co_arena *arena = co_config_arena(config);
    const co_value *map;
    const char *title = NULL;

    CO_TRY(co_value_plugin(&title, &map, item, "strategies"));
    for (size_t i = 0; map && i < map->n && title; i++) {
        const char *value;

        if (strcmp(map->key[i], "name") == 0)
            continue;
        CO_TRY(co_spec_text(&value, &spec, map->item[i]));
        title = co_arena_printf(arena, "%s %s=%s", title, map->key[i], value);
    }
    *out = title ? co_arena_strdup(arena, CO_SHOW(title)) : NULL;
    return *out ? CO_OK : CO_E_NOMEM;
}

/* "a, b" and "[a, b]" are the same. */
co_status cli_read_list(const co_value **out, co_config *config, const char *option,
                        const char *text)
{
    const bool bare = text[strspn(text, " \t")] != '[';
    co_arena *arena = co_config_arena(config);
    const char *list = co_arena_printf(arena, bare ? "[%s]" : "%s", text);
    const char *typed =
        co_arena_printf(arena, "%s%s%s", option, strchr(option, ' ') ? "=" : " ", text);
    co_value *value;

    if (!list || !typed)
        return CO_E_NOMEM;
    CO_TRY(co_yaml_parse(&value, arena, list, strlen(list), typed));
    *out = value;
    if (value->kind != CO_VALUE_LIST || value->n == 0)
        return co_fail(CO_E_USAGE, "%s takes a list such as %s, not '%s'", option,
                       strstr(option, "strategies") ? "'sync,{name: local, period: 16}'" : "1,2,4",
                       text);
    return CO_OK;
}

static co_status lists_read_number(int64_t *out, const co_value *item, int64_t least, int64_t most)
{
    const char *text = item->kind == CO_VALUE_SCALAR ? item->text : "";
    char *end;

    errno = 0;
    *out = strtoll(text, &end, 10);
    if (errno || end == text || *end || *out < least || *out > most)
        return co_value_fail(item, "expected whole numbers from %" PRId64 " to %" PRId64 "%s%s%s",
                             least, most, *text ? ", not '" : "", text, *text ? "'" : "");
    return CO_OK;
}

co_status cli_read_numbers(co_ints *out, co_config *config, const char *option, const char *text,
                           int64_t least, int64_t most)
{
    const co_value *list;
    int64_t *v;

    CO_TRY(cli_read_list(&list, config, option, text));
    v = co_arena_alloc(co_config_arena(config), list->n, sizeof(*v));
    if (!v)
        return CO_E_NOMEM;
    for (size_t i = 0; i < list->n; i++) {
        CO_TRY(lists_read_number(&v[i], list->item[i], least, most));
        for (size_t k = 0; k < i; k++)
            if (v[k] == v[i])
                return co_value_fail(list, "%" PRId64 " is given twice", v[i]);
    }
    *out = (co_ints){list->n, v};
    return CO_OK;
}
