/*
 * measure.h - what the weights of a run show on the test split, for the page: measured by whoever
 * can (the command line gives the function), in a process of its own.
 *
 * While the run trains, that process gets a core only while nobody else wants one, so that the run
 * does not notice.
 */
#ifndef CO_LIVE_MEASURE_H
#define CO_LIVE_MEASURE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "live/live.h"

typedef struct co_measured {
    pid_t child; /* 0: none */
    bool idle;   /* it began while the run was training */
    int out;     /* of the child, in memory */
    /* Of the weights that were looked at last. */
    struct timespec modified;
    ino_t inode;
    uint64_t next_ns; /* not again before, unless the run has just ended */
    json_t *json;     /* owned: members of the run; NULL: nothing yet */
} co_measured;

/* Begin, if there are weights that were not looked at. `training`: the run is. */
co_status co_measured_begin(co_measured *m, const co_live_measure *how, const char *dir,
                            bool training);
/* Whether the child has ended since, with something new. */
bool co_measured_take(co_measured *m);
/* Ends the child, too. */
void co_measured_free(co_measured *m);

#endif
