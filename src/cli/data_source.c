/* data_source.c - opens the data set that a command line names, by config file or by value. */
#include <string.h>

#include "cli/cli.h"
#include "core/fs.h"
#include "core/mem.h"
#include "train/plugins.h"

/* A file is a config; any other text is a value of `data:`. */
static co_status source_load(co_config **out, const char *text)
{
    const char *dot = strrchr(text, '.');
    const size_t size = strlen(text) + sizeof("data=");
    char *assignment;
    co_status st = CO_E_NOMEM;

    if (co_fs_exists(text) || (dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0)))
        return co_config_load(out, text);
    CO_TRY(co_config_parse(out, "{}", 2, "data"));
    assignment = co_calloc(size, 1);
    if (assignment) {
        snprintf(assignment, size, "data=%s", text);
        st = co_config_set(*out, assignment);
    }
    co_free(assignment);
    if (st != CO_OK)
        co_config_destroy(*out);
    return st;
}

static co_status source_find(cli_data *source, const char *text, const cli_list *set)
{
    for (int i = 0; i < set->n; i++)
        CO_TRY(co_config_set(source->config, set->text[i]));
    CO_TRY(co_plugins_check(co_value_get(co_config_root(source->config), "plugins")));
    source->value = co_value_get(co_config_root(source->config), "data");
    if (!source->value)
        return co_fail(CO_E_USAGE, "%s: has no key 'data'", text);
    return CO_OK;
}

co_status cli_data_open(cli_data *out, const char *text, const cli_list *set)
{
    co_status st;

    CO_TRY(source_load(&out->config, text));
    st = source_find(out, text, set);
    if (st != CO_OK)
        cli_data_close(out);
    return st;
}

void cli_data_close(cli_data *source)
{
    co_config_destroy(source->config);
}
