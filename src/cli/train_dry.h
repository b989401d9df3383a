/* train_dry.h - `cohort train --dry-run`. */
#ifndef CO_CLI_TRAIN_DRY_H
#define CO_CLI_TRAIN_DRY_H

#include <cohort/train.h>

#include "cli/cli.h"

/* Check and time a run without making it, and print what was found: as JSON, else as text unless
   options->quiet. `config`: its name. */
co_status cli_train_dry(const co_train_options *options, const char *config, bool json);

#endif
