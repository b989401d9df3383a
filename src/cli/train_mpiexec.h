/* train_mpiexec.h - `cohort train --mpiexec`: an MPI job that is supervised and restarted. */
#ifndef CO_CLI_TRAIN_MPIEXEC_H
#define CO_CLI_TRAIN_MPIEXEC_H

#include "cli/cli.h"

typedef struct train_options {
    int64_t ranks;
    const char *run_dir;
    cli_list set, plugins;
    bool quiet, resume;
    const char *mpiexec, *hosts, *notes;
    bool profile, dry_run, json;
    int64_t profile_steps, profile_skip;
} train_options;

co_status train_mpiexec(const train_options *o, const char *config);

#endif
