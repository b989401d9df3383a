/* plugins.h - plugin files that a command line or a config names. */
#ifndef CO_TRAIN_PLUGINS_H
#define CO_TRAIN_PLUGINS_H

#include <cohort/ext/plugin.h>

#include "core/config.h"

/* Load the files of a config's `plugins` (NULL: none). Call it only for a config that the user
   named. */
co_status co_plugins_load(const co_value *value);
/* CO_E_USAGE unless a file of each name has been loaded, from any folder. */
co_status co_plugins_check(const co_value *value);

#endif
