/* mpi.h - the communicator over MPI's world. */
#ifndef CO_COMM_MPI_MPI_H
#define CO_COMM_MPI_MPI_H

#include <cohort/comm.h>

#define CO_MPI_START_MS 30000 /* MPI_Init may take this long whatever the timeout */
#define CO_MPI_END_MS   10000 /* MPI_Finalize and MPI_Abort, which no other rank waits for */

/* Whether this process can use an MPI; *why is a static one-line reason when not. */
bool co_mpi_available(const char **why);
/* "Open MPI v4.1.4": the MPI that this process uses or would use; "" where there is none. Returns
   `out`. */
char *co_mpi_library(char *out, size_t size);
/* The i-th MPI that Cohort can use where it is installed, as COHORT_MPI names it: "openmpi",
   "mpich"; NULL after the last. */
const char *co_mpi_name(int i);
/* Join the world: MPI_Init unless the program has done it (then it stays the program's to
   finalize). Destroying the communicator leaves MPI initialised. Where there is no MPI:
   CO_E_UNSUPPORTED with the remedy. Where other ranks do not come for `timeout_ms` (0: the default
   of a communicator) MPI cannot be stopped, and the process ends, with a message. */
co_status co_comm_create_mpi(co_comm **out, uint32_t timeout_ms);
/* State recorded by the i-th rank of this host; NULL: none, or not accessible. For a communicator
   made by co_comm_create_mpi. */
struct co_watch *co_mpi_watch(const co_comm *comm, int i);
/* Finalize if co_comm_create_mpi initialised; call it last. Where MPI_Finalize does not return for
   10 s, the process ends with `exit_code`, with a warning. */
void co_mpi_finalize(int exit_code);

#endif
