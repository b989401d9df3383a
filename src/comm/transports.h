/* transports.h - the transports of this build, for listing; users create one by name. */
#ifndef CO_COMM_TRANSPORTS_H
#define CO_COMM_TRANSPORTS_H

#include <cohort/ext/comm.h>

extern const co_comm_ops co_transport_self, co_transport_shm, co_transport_mpi;

/* NULL-terminated; `probe` tells which can be used here. */
extern const co_comm_ops *const co_transports[];

#endif
