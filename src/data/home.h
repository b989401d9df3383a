/* home.h - the folder of a user's data sets, where `cohort data get` puts them. */
#ifndef CO_DATA_HOME_H
#define CO_DATA_HOME_H

#include <stdbool.h>
#include <stddef.h>

#include <cohort/status.h>

#define CO_DATA_HOME_PATH 4096

/* $XDG_DATA_HOME/cohort/NAME, by default ~/.local/share/cohort/NAME; NAME NULL: the folder of all.
   CO_E_USAGE: neither variable is an absolute path. */
co_status co_data_home(char out[CO_DATA_HOME_PATH], const char *name);
/* `path` if it is not NULL; else the set's folder there, in `out`. CO_E_DATA, with the command that
   fetches it, if there is none. */
co_status co_data_home_find(const char **path, char out[CO_DATA_HOME_PATH], const char *name);

#endif
