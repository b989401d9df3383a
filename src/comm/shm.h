/*
 * shm.h - the memory that ranks of one machine share, and communicators over it.
 *
 * The region is one anonymous shared mapping made before ranks start: forked processes and
 * threads use it alike, nothing has a name in the file system, /dev/shm plays no part.
 */
#ifndef CO_COMM_SHM_H
#define CO_COMM_SHM_H

#include <cohort/comm.h>

typedef struct co_shm co_shm;
struct co_watch;

/* Before the fork. Caller destroys, after every communicator of this process. */
co_status co_shm_create(co_shm **out, int ranks);
void co_shm_destroy(co_shm *shm);

/* The world communicator of one rank; in the rank's own process or thread. Caller destroys. */
co_status co_shm_attach(co_comm **out, co_shm *shm, int rank);

/* What a rank writes down of itself; for the launcher, which looks at all of them. */
struct co_watch *co_shm_watch(const co_shm *shm, int rank);

/* End every wait of every rank; the first call's status, rank and cause stay. `rank` is the one
   at fault. For the launcher, which sees a rank die or fail; within a rank, co_comm_abort does it.
 */
void co_shm_abort(co_shm *shm, int rank, co_status status, const char *cause);
/* What the first abort said; CO_OK: none so far. `rank` and `cause` may be NULL. */
co_status co_shm_cause(const co_shm *shm, int *rank, char *cause, size_t size);

#endif
