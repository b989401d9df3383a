/* step.h - what simulate.c and step.c share. */
#ifndef COHORT_SIMULATE_STEP_H
#define COHORT_SIMULATE_STEP_H

#include "simulate/ranks.h"

#include "plan/exchange.h"

typedef struct simulate_job {
    co_cluster cluster;
    plan_layout layout;
    co_comm *comm; /* NULL: MPI's own */
    float *data;   /* (most bytes) owned */
    int rank, size;
} simulate_job;

/* All ranks begin at the same moment, which is returned. */
double simulate_meet(void);

/* Steps of the strategy of a config, whose name the line has; microseconds are those of a step. The
   time of a rank's own work is that of the cluster file's `compute`. */
co_status simulate_step(const simulate_job *of, const char *path);

#endif
