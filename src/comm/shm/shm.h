/*
 * shm.h - the memory that ranks of one machine share, and communicators over it.
 *
 * The region is one anonymous shared mapping made before ranks start: forked processes and threads
 * use it alike, nothing has a name in the file system, /dev/shm is not used. Processes that were
 * started separately share a file in memory, without a name either (join.c).
 */
#ifndef CO_COMM_SHM_SHM_H
#define CO_COMM_SHM_SHM_H

#include <cohort/comm.h>

typedef struct co_shm co_shm;
struct co_watch;

/* Before the fork. Caller destroys, after every communicator of this process. */
co_status co_shm_create(co_shm **out, int ranks);
void co_shm_destroy(co_shm *shm);

/* How processes without a common parent find a region: plain numbers, for a message. */
typedef struct co_shm_address {
    int64_t process, region, windows; /* process id; descriptors open in it, -1: none */
    uint64_t device, inode;           /* of the region's file */
} co_shm_address;

/* A region that others join while this one is here. CO_E_UNSUPPORTED: not on this system. */
co_status co_shm_create_open(co_shm **out, co_shm_address *address, int ranks);
/* CO_E_UNSUPPORTED: it is not accessible from here. Destroyed as one's own. */
co_status co_shm_join(co_shm **out, const co_shm_address *address, int ranks);

/* The world communicator of one rank; in the rank's own process or thread. Caller destroys. */
co_status co_shm_attach(co_comm **out, co_shm *shm, int rank);

/* The state that a rank records; for the launcher, which reads those of all. */
struct co_watch *co_shm_watch(const co_shm *shm, int rank);

/* End every wait of every rank; the first call's status, rank and cause stay. `rank` is the one at
   fault. For the launcher, which sees a rank die or fail; within a rank co_comm_abort calls it. */
void co_shm_abort(co_shm *shm, int rank, co_status status, const char *cause);
/* The record of the first abort; CO_OK: none so far. `rank` and `cause` may be NULL. */
co_status co_shm_cause(const co_shm *shm, int *rank, char *cause, size_t size);

#endif
