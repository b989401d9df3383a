/*
 * shm.h - memory that ranks of one machine share, and communicators over it.
 *
 * The region is mapped before ranks start, so that forked processes and threads use it alike; it
 * has no name in the file system and does not use /dev/shm. Processes started separately share a
 * memfd, which has no name either (join.c).
 */
#ifndef CO_COMM_SHM_SHM_H
#define CO_COMM_SHM_SHM_H

#include <cohort/comm.h>

typedef struct co_shm co_shm;
struct co_watch;

/* Call before forking. The caller destroys it, after every communicator of this process. */
co_status co_shm_create(co_shm **out, int ranks);
void co_shm_destroy(co_shm *shm);

/* How a process without a common parent finds a region: plain numbers that fit in a message. */
typedef struct co_shm_address {
    int64_t process, region, windows; /* process id; its open descriptors, -1: none */
    uint64_t device, inode;           /* of the region's file */
} co_shm_address;

/* Create a region that others can join while this process lives. CO_E_UNSUPPORTED: not on this
   system. */
co_status co_shm_create_open(co_shm **out, co_shm_address *address, int ranks);
/* Join a region; the caller destroys it. CO_E_UNSUPPORTED: not accessible from here. */
co_status co_shm_join(co_shm **out, const co_shm_address *address, int ranks);

/* The world communicator of one rank, in that rank's process or thread. The caller destroys it. */
co_status co_shm_attach(co_comm **out, co_shm *shm, int rank);

/* A rank's record of its state, also for the launcher. */
struct co_watch *co_shm_watch(const co_shm *shm, int rank);

/* End every wait of every rank; the first call's status, rank and cause are kept. `rank`: the one
   at fault. For the launcher, when a rank dies or fails; within a rank, co_comm_abort calls it. */
void co_shm_abort(co_shm *shm, int rank, co_status status, const char *cause);
/* The record of the first abort; CO_OK: none. `rank` and `cause` may be NULL. */
co_status co_shm_cause(const co_shm *shm, int *rank, char *cause, size_t size);

#endif
