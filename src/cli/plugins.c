/*
 * plugins.c - loads plugins before a command runs: the files of --plugin, and those that a config
 * on the command line names.
 *
 * A config in a run directory does not count: it may come from elsewhere, so its plugins are loaded
 * only with --plugin.
 */
#include <string.h>

#include "cli/cli.h"
#include "core/fs.h"
#include "train/plugins.h"

static const cli_option *plugins_find(const co_command *command, const char *name)
{
    for (const cli_option *o = command->options; o && o->name; o++)
        if (strcmp(o->name, name) == 0)
            return o;
    return NULL;
}

static const void *plugins_value(const co_command *command, const void *options, const char *name)
{
    const cli_option *o = plugins_find(command, name);

    return o ? (const char *)options + o->offset : NULL;
}

static bool plugins_is_of_run(const char *config)
{
    char folder[CLI_MAX_PATH];
    const char *slash = strrchr(config, '/');
    const size_t n = slash ? (size_t)(slash - config) : 0;

    if (n >= sizeof(folder))
        return true;
    memcpy(folder, config, n);
    folder[n] = '\0';
    return cli_inspect_is_run(!slash ? "." : n ? folder : "/");
}

static bool plugins_is_config(const char *path, const char *argument)
{
    const char *dot = strrchr(path, '.');

    return strcmp(argument, "CONFIG") == 0 ||
           (dot && (strcmp(dot, ".yaml") == 0 || strcmp(dot, ".yml") == 0));
}

/* Errors in the config itself are ignored here; the command reports them when it reads it. */
static co_status plugins_load_named(const char *path, const cli_list *set)
{
    co_config *config = NULL;
    co_status st = co_config_load(&config, path);

    for (int i = 0; set && i < set->n && st == CO_OK; i++)
        st = co_config_set(config, set->text[i]);
    st = st == CO_OK ? co_plugins_load(co_value_get(co_config_root(config), "plugins")) : CO_OK;
    co_config_destroy(config);
    return st;
}

co_status cli_plugins_load(const co_command *command, const void *options,
                           const char *const *argument)
{
    const cli_list *files = plugins_value(command, options, "plugin");
    const cli_list *set = plugins_value(command, options, "set");
    const char *const *config = plugins_value(command, options, "config");

    if (!files)
        return CO_OK;
    for (int i = 0; i < files->n; i++)
        CO_TRY(co_plugin_load(files->text[i]));
    for (int i = 0; !config && argument[i] && command->arguments[i].name; i++)
        if (plugins_is_config(argument[i], command->arguments[i].name))
            config = &argument[i];
    if (!config || !*config || !co_fs_exists(*config) || plugins_is_of_run(*config))
        return CO_OK;
    return plugins_load_named(*config, set);
}
