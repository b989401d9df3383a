/*
 * mpi_requests.h - the socket of a run that mpiexec has started: rank 0 answers, beside its
 * training.
 */
#ifndef CO_CONTROL_MPI_REQUESTS_H
#define CO_CONTROL_MPI_REQUESTS_H

#include <stdbool.h>

#include "control/answers.h"

typedef struct co_ask_mpi co_ask_mpi;

/* On rank 0, which knows the run directory by now. *out NULL: the folder can hold no socket, which
   is said. The trainer is borrowed. */
co_status co_ask_mpi_open(co_ask_mpi **out, const struct trainer *t);
/* All that follow take NULL. */
void co_ask_mpi_close(co_ask_mpi *ask);
/* Where the run is. */
void co_ask_mpi_show(co_ask_mpi *ask, const struct trainer *t);
void co_ask_mpi_saved(co_ask_mpi *ask, uint64_t step);
/* Whether the owner wants the run to end; wants a checkpoint, since the last question. */
bool co_ask_mpi_wants_stop(const co_ask_mpi *ask);
bool co_ask_mpi_wants_save(co_ask_mpi *ask);

#endif
