/* write.h - the profiles of all ranks, written down. */
#ifndef CO_PROFILE_WRITE_H
#define CO_PROFILE_WRITE_H

#include "profile/profiler.h"
#include "telemetry/telemetry.h"

typedef struct co_profile_job {
    co_profiler *profiler; /* borrowed */
    co_comm *comm;
    const co_roof *roof;
    const co_run_info *info;
    const char *run_dir;
    bool cut;    /* the run was asked to end */
    FILE *table; /* rank 0; NULL: none */
} co_profile_job;

/* Rank 0 writes profile.json and trace.json into the run directory; a file that cannot be written
   is a warning. Collective. */
co_status co_profile_write(const co_profile_job *job);

#endif
