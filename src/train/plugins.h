/* plugins.h - plugins from outside: files that a command line or a config names. */
#ifndef CO_TRAIN_PLUGINS_H
#define CO_TRAIN_PLUGINS_H

#include <cohort/ext/plugin.h>

#include "core/config.h"

/* Load the files of a config's `plugins` (NULL: none): only of one that the user has named. */
co_status co_plugins_load(const co_value *value);
/* CO_E_USAGE unless all of them have been loaded by now, from whatever folder. */
co_status co_plugins_check(const co_value *value);

#endif
