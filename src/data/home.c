/* home.c - the folder of a user's data sets. */
#include "data/home.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/fs.h"

co_status co_data_home(char out[CO_DATA_HOME_PATH], const char *name)
{
    const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
    const char *below = "", *root = data;
    int n;

    if (!data || data[0] != '/') { /* the specification has relative paths ignored */
        root = home;
        below = "/.local/share";
    }
    if (!root || root[0] != '/')
        return co_fail(CO_E_USAGE,
                       "neither XDG_DATA_HOME nor HOME is set to a path; give --to DIR, "
                       "or set data.path");
    n = snprintf(out, CO_DATA_HOME_PATH, "%s%s/cohort%s%s", root, below, name ? "/" : "",
                 name ? name : "");
    if (n < 0 || n >= CO_DATA_HOME_PATH)
        return co_fail(CO_E_USAGE, "%s: the path is too long", root);
    return CO_OK;
}

co_status co_data_home_find(const char **path, char out[CO_DATA_HOME_PATH], const char *name)
{
    if (*path)
        return CO_OK;
    if (co_data_home(out, name) == CO_OK && co_fs_exists(out)) {
        *path = out;
        return CO_OK;
    }
    return co_fail(CO_E_DATA,
                   "data %s: is not on this machine; `cohort data get %s` fetches it, or "
                   "set data.path to its folder",
                   name, name);
}
