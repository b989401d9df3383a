/*
 * ranks.h - ranks of Cohort's communicator over MPI inside SimGrid's SMPI, where all of them are in
 * one process and time is simulated.
 */
#ifndef COHORT_SIMULATE_RANKS_H
#define COHORT_SIMULATE_RANKS_H

#include <cohort/comm.h>

#include "comm/mpi/calls.h"
#include "plan/cluster.h"

typedef struct simulate_options {
    co_cost_link inside, across;
    int each;    /* ranks of a host */
    double poll; /* seconds between looks of a rank that waits */
    double look; /* seconds between those of one that computes (src/comm/mpi/progress_thread.c) */
} simulate_options;

/* The same for all ranks; set before the first communicator. */
extern simulate_options simulate;

double simulate_now(void);
void simulate_sleep(double seconds);
/* A rank computes; what it has posted is looked at meanwhile. `comm`: NULL: nothing. */
co_status simulate_compute(co_comm *comm, double seconds);

/* calls.c: SMPI's calls, with non-blocking collectives as Open MPI has them. */
bool simulate_calls(co_mpi_calls *out);
/* Advance every operation of this rank that is under way, as any call of an MPI does. */
void simulate_progress(void);

#endif
