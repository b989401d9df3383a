/* nccl_comm.h - a communicator of the stand-in's NCCL: of nccl_comm.c and nccl.c. */
#ifndef TESTS_STANDIN_NCCL_COMM_H
#define TESTS_STANDIN_NCCL_COMM_H

#include <nccl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"
#include "standin/standin.h"

#define RANKS   8
#define BOX     16384 /* bytes of a message that are under way at once */
#define POLL_US 50

/* From one rank to another; empty if there are 0 bytes. */
typedef struct box {
    _Atomic uint32_t bytes;
    bool registered; /* they are of a registered buffer */
    unsigned char data[BOX];
} box;

typedef struct region {
    _Atomic int joined, left;
    box box[RANKS][RANKS];
} region;

struct ncclComm {
    region *shared;
    int rank, ranks;
    bool leaving;
    int asked;           /* times since the last operation */
    _Atomic int jobs;    /* given and not ended, but for those of graphs */
    _Atomic int running; /* of all */
    _Atomic bool aborted;
    uintptr_t begin, end;  /* of the buffer that is registered; both 0: none */
    struct ncclComm *next; /* of all: graphs have them until the process ends */
};

static inline bool is_registered(const struct ncclComm *comm, const void *at)
{
    return (uintptr_t)at >= comm->begin && (uintptr_t)at < comm->end;
}

#endif
