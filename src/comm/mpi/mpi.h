/* mpi.h - the communicator over MPI's world. */
#ifndef CO_COMM_MPI_MPI_H
#define CO_COMM_MPI_MPI_H

#include <cohort/comm.h>

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
   CO_E_UNSUPPORTED with the remedy. */
co_status co_comm_create_mpi(co_comm **out);
/* The state that the i-th rank of this host records; NULL: there is none, or it is not accessible.
   Of a communicator that co_comm_create_mpi has made. */
struct co_watch *co_mpi_watch(const co_comm *comm, int i);
/* Finalize if co_comm_create_mpi initialised; call it last. */
void co_mpi_finalize(void);

#endif
