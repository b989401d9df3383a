/* registry.c - the transports of this build. */
#include <stddef.h>

#include "comm/transports.h"

const co_comm_ops *const co_transports[] = {
    &co_transport_self,
    &co_transport_shm,
    &co_transport_mpi,
    NULL,
};
