/*
 * agree_stop.h - end a run over MPI in good order: ranks hear of a signal or a time limit at
 * different moments, and agree after which step they leave. On one machine the session does it.
 */
#ifndef CO_CONTROL_AGREE_STOP_H
#define CO_CONTROL_AGREE_STOP_H

#include <cohort/status.h>

#include <stdint.h>

struct trainer;

/* Of one rank; all of it is the same on all ranks, but for the time. */
typedef struct co_stop {
    uint64_t next;   /* step before which ranks ask each other */
    uint64_t met;    /* and before which they did last */
    uint64_t met_ns; /* 0: never */
} co_stop;

/* Between two steps: sets t->leaving when all ranks leave the run here, with a checkpoint, and then
   job->result says why. Collective; nothing where nobody listens. */
co_status co_stop_before_step(struct trainer *t);
/* A step is complete: where the run is, for whoever asks. */
co_status co_stop_after_step(struct trainer *t);

#endif
