/*
 * plugins.c - registers plugins and loads the shared objects that have them.
 *
 * A plugin runs with all rights of the user. So it is loaded only if the user named it, from a path
 * that no other user could write to, and never searched for.
 */
#include "train/plugins.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/open.h"
#include "core/plugin.h"
#include "data/data.h"
#include "optim/optim.h"
#include "strategy/compress.h"
#include "strategy/strategy.h"

#define PLUGINS_ENTRY     "cohort_plugin"
#define PLUGINS_MAX_FILES 64

typedef struct plugins_file {
    dev_t device;
    ino_t inode;
    char *name; /* base name */
} plugins_file;

/* Loaded files, until the process ends, as in core/plugin.c. */
static struct {
    pthread_mutex_t lock; /* held by writers */
    atomic_size_t n;
    plugins_file file[PLUGINS_MAX_FILES];
} plugins_loaded = {.lock = PTHREAD_MUTEX_INITIALIZER};

static const struct {
    const co_plugins *plugins;
    size_t size;
} plugins_kinds[] = {
    [CO_PLUGIN_OPTIMIZER] = {&co_optimizer_plugins, sizeof(co_optimizer_ops)},
    [CO_PLUGIN_SCHEDULE] = {&co_schedule_plugins, sizeof(co_schedule_ops)},
    [CO_PLUGIN_STRATEGY] = {&co_strategy_plugins, sizeof(co_strategy_ops)},
    [CO_PLUGIN_COMPRESSOR] = {&co_compressor_plugins, sizeof(co_compressor_ops)},
    [CO_PLUGIN_DATASET] = {&co_dataset_plugins, sizeof(co_dataset_ops)},
};

#define PLUGINS_KINDS (sizeof(plugins_kinds) / sizeof(plugins_kinds[0]))

/* The first missing function; NULL: none. */
static const char *plugins_missing(co_plugin_kind kind, const void *ops)
{
    const co_optimizer_ops *optimizer = ops;
    const co_schedule_ops *schedule = ops;
    const co_compressor_ops *compressor = ops;
    const co_dataset_ops *data = ops;

    switch (kind) {
    case CO_PLUGIN_OPTIMIZER:
        return optimizer->update ? NULL : "update";
    case CO_PLUGIN_SCHEDULE:
        return schedule->factor ? NULL : "factor";
    case CO_PLUGIN_COMPRESSOR:
        return !compressor->post ? "post" : !compressor->take ? "take" : NULL;
    case CO_PLUGIN_DATASET:
        if (!data->open)
            return "open";
        return data->field ? NULL : !data->read ? "read" : !data->label ? "label" : NULL;
    case CO_PLUGIN_STRATEGY:
    default:
        return NULL;
    }
}

/* Names appear in configs, messages and folder names. */
static bool plugins_name_fits(const char *name)
{
    const size_t n = name ? strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") : 0;

    return n > 0 && n < 64 && name[n] == '\0' && name[0] != '-' && name[0] != '.';
}

co_status co_plugin_register(co_plugin_kind kind, const void *ops, size_t size, unsigned abi)
{
    const co_plugin *plugin = ops;
    const co_plugins *plugins;
    char what[96];

    if ((size_t)kind >= PLUGINS_KINDS || !plugins_kinds[kind].plugins)
        return co_fail(CO_E_USAGE, "plugin: there is no kind %d", (int)kind);
    plugins = plugins_kinds[kind].plugins;
    if (!ops)
        return co_fail(CO_E_USAGE, "plugin: its struct is missing (NULL), of the kind '%s'",
                       plugins->what);
    if (abi != CO_PLUGIN_ABI || size != plugins_kinds[kind].size)
        return co_fail(CO_E_USAGE,
                       "built for plugin interface %u (%s: %zu bytes), and this is %u (%zu bytes); "
                       "build it again with this version's headers",
                       abi, plugins->what, size, CO_PLUGIN_ABI, plugins_kinds[kind].size);
    if (!plugins_name_fits(plugin->name))
        return co_fail(CO_E_USAGE, "%s: its name has to be of small letters, digits and - _ .",
                       plugins->what);
    if (plugins_missing(kind, ops))
        return co_fail(CO_E_USAGE, "%s '%s': has no function '%s'", plugins->what, plugin->name,
                       plugins_missing(kind, ops));
    snprintf(what, sizeof(what), "%s '%s'", plugins->what, plugin->name);
    CO_TRY(co_keys_check(plugin->keys, plugins->common, plugin->self_size, what));
    return co_plugin_add(plugins, ops);
}

static bool plugins_has_file(const struct stat *info)
{
    const size_t n = atomic_load(&plugins_loaded.n);

    for (size_t i = 0; i < n; i++)
        if (plugins_loaded.file[i].device == info->st_dev &&
            plugins_loaded.file[i].inode == info->st_ino)
            return true;
    return false;
}

static bool plugins_has_name(const char *path)
{
    const size_t n = atomic_load(&plugins_loaded.n);

    for (size_t i = 0; i < n; i++)
        if (strcmp(plugins_loaded.file[i].name, co_fs_name(path)) == 0)
            return true;
    return false;
}

static co_status plugins_note(const char *path, const struct stat *info)
{
    char *name = co_strdup(co_fs_name(path));
    co_status st = CO_OK;
    size_t n;

    if (!name)
        return CO_E_NOMEM;
    pthread_mutex_lock(&plugins_loaded.lock);
    n = atomic_load(&plugins_loaded.n);
    if (n == PLUGINS_MAX_FILES) {
        st = co_fail(CO_E_USAGE, "%s: %d files of plugins are loaded, which is the most", path,
                     PLUGINS_MAX_FILES);
        co_free(name);
    } else {
        plugins_loaded.file[n] = (plugins_file){info->st_dev, info->st_ino, name};
        atomic_store(&plugins_loaded.n, n + 1);
    }
    pthread_mutex_unlock(&plugins_loaded.lock);
    return st;
}

/* Fail with `message`, prefixed with the path. */
static co_status plugins_fail(const char *path, const char *message)
{
    char cause[1024];

    snprintf(cause, sizeof(cause), "%s", message);
    return co_fail(CO_E_USAGE, "%s: %s", path, cause);
}

static co_status plugins_enter(const char *path, const char *name)
{
    const size_t n = strlen(name);
    const uint64_t before = co_fail_count();
    co_status (*entry)(void), st;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL), *symbol;
    const char *error = library ? "" : dlerror();

    if (!library) /* "/proc/self/fd/4: undefined symbol: ..." */
        return plugins_fail(path, strncmp(error, name, n) == 0 && strncmp(error + n, ": ", 2) == 0
                                      ? error + n + 2
                                      : error);
    symbol = dlsym(library, PLUGINS_ENTRY);
    if (!symbol)
        return co_fail(CO_E_USAGE, "%s: is no plugin: it has no function " PLUGINS_ENTRY, path);
    memcpy(&entry, &symbol, sizeof(entry));
    st = entry();
    if (st == CO_OK)
        return st;
    if (co_fail_count() != before)
        return st == CO_E_NOMEM ? st : plugins_fail(path, co_error_message());
    return co_fail(CO_E_USAGE,
                   "%s: its function " PLUGINS_ENTRY " has returned the status %d "
                   "without a message (co_fail)",
                   path, (int)st);
}

co_status co_plugin_load(const char *path)
{
    static const co_open_rule rule = {.status = CO_E_USAGE, .expected = "a file of plugins"};
    struct stat info;
    char name[32];
    co_status st;
    int fd;

    CO_TRY(co_open_trusted(&fd, path, &rule));
    if (fstat(fd, &info) == 0 && plugins_has_file(&info)) {
        close(fd);
        return CO_OK;
    }
    /* Load by descriptor: the file that was checked, even if the path has been replaced since. The
       descriptor stays open, because dlopen takes two files with the same name for one. */
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    st = plugins_enter(path, name);
    return st == CO_OK ? plugins_note(path, &info) : st;
}

static co_status plugins_each(const co_value *value, co_status (*each)(const co_value *file))
{
    if (!value || value->kind == CO_VALUE_NULL)
        return CO_OK;
    if (value->kind == CO_VALUE_SCALAR)
        return each(value);
    for (size_t i = 0; i < value->n; i++) {
        if (value->kind != CO_VALUE_LIST || value->item[i]->kind != CO_VALUE_SCALAR)
            return co_value_fail(value, "plugins: expected a file, or a list of files");
        CO_TRY(each(value->item[i]));
    }
    return CO_OK;
}

static co_status plugins_load_one(const co_value *file)
{
    return co_value_place(co_plugin_load(file->text), file);
}

static co_status plugins_check_one(const co_value *file)
{
    if (plugins_has_name(file->text))
        return CO_OK;
    return co_value_fail(file,
                         "plugins: %s is not loaded: it is code, which only a config that you "
                         "type loads by itself; if you trust the file: --plugin %s",
                         file->text, file->text);
}

co_status co_plugins_load(const co_value *value)
{
    return plugins_each(value, plugins_load_one);
}

co_status co_plugins_check(const co_value *value)
{
    return plugins_each(value, plugins_check_one);
}
