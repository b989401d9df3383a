/*
 * mpi_requests.h - the control socket of a run that mpiexec has started: rank 0 answers while it
 * trains.
 */
#ifndef CO_CONTROL_MPI_REQUESTS_H
#define CO_CONTROL_MPI_REQUESTS_H

#include <stdbool.h>

#include "control/answers.h"

typedef struct co_mpi_requests co_mpi_requests;

/* All borrowed. */
typedef struct co_mpi_requests_options {
    co_comm *comm;
    const struct co_signal_thread *listener;
    const char *run_dir;
    int restarts;      /* of the ranks so far */
    uint64_t start_ns; /* of the run */
} co_mpi_requests_options;

/* On rank 0, once the run directory is known. *out is NULL, with a warning in the log, if sockets
   are not possible there. */
co_status co_mpi_requests_open(co_mpi_requests **out, const co_mpi_requests_options *options,
                               const co_where *where);
/* All that follow take NULL. */
void co_mpi_requests_close(co_mpi_requests *requests);
/* Publish the position of the run. */
void co_mpi_requests_show(co_mpi_requests *requests, const co_where *where);
void co_mpi_requests_saved(co_mpi_requests *requests, uint64_t step);
/* Whether a stop was requested; whether a checkpoint was requested since the last call. */
bool co_mpi_requests_wants_stop(const co_mpi_requests *requests);
bool co_mpi_requests_wants_save(co_mpi_requests *requests);

#endif
