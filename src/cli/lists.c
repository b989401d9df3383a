/* lists.c - lists of strategies and numbers on the command line. */
#include "cli/lists.h"

#include <inttypes.h>
#include <string.h>

#include "core/text.h"
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
    const char *list = co_arena_printf(co_config_arena(config), bare ? "[%s]" : "%s", text);

    if (!list)
        return CO_E_NOMEM;
    CO_TRY(co_config_add_text(out, config, list));
    if ((*out)->kind != CO_VALUE_LIST || (*out)->n == 0)
        return co_fail(CO_E_USAGE, "%s takes a list such as %s, not '%s'", option,
                       strstr(option, "strategies") ? "'sync,{name: local, period: 16}'" : "1,2,4",
                       text);
    return CO_OK;
}

co_status cli_read_numbers(co_ints *out, co_config *config, const co_key *key, const char *option,
                           const char *text)
{
    const co_key keys[] = {*key, CO_KEYS_END};
    const char *name = key->name;
    const co_value *list;
    co_value map = {.kind = CO_VALUE_MAP, .n = 1, .key = &name};

    CO_TRY(cli_read_list(&list, config, option, text));
    map.item = (co_value *[]){(co_value *)list};
    map.source = list->source;
    CO_TRY(co_keys_read(out, keys, &map, option, co_config_arena(config)));
    for (size_t i = 0; i < out->n; i++)
        for (size_t k = 0; k < i; k++)
            if (out->v[k] == out->v[i])
                return co_fail(CO_E_USAGE, "%s %s: %" PRId64 " is given twice", option, text,
                               out->v[i]);
    return CO_OK;
}
