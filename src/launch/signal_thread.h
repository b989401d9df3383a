/*
 * signal_thread.h - what the process of one MPI rank hears of signals, and what it notes of its
 * end.
 *
 * The first SIGINT, SIGTERM, SIGHUP or SIGUSR1 is a request that the rank asks about between two
 * steps; the second one ends the process. One that was ignored at the start stays so. SIGUSR1 is
 * SIGTERM in words that mpiexec passes on without killing anybody soon after.
 */
#ifndef CO_LAUNCH_SIGNAL_THREAD_H
#define CO_LAUNCH_SIGNAL_THREAD_H

#include <cohort/comm.h>

typedef struct co_listener co_listener;

/* Before MPI starts threads. `notes`: the folder of rank_notes.h, borrowed; NULL: none. */
co_status co_listener_open(co_listener **out, const char *notes);
/* Who this is: from now on the notes have it. */
void co_listener_begin(co_listener *listener, const co_comm *comm);
/* CO_OK: nothing; CO_E_INTERRUPTED, CO_E_TERMINATED. */
co_status co_listener_heard(const co_listener *listener);
/* The step that the rank is in, from 1. */
void co_listener_step(co_listener *listener, uint64_t step);
/* The rank's last word: a failure, or CO_OK and CO_E_INTERRUPTED, CO_E_TERMINATED for leaving in
   good order. */
void co_listener_end(co_listener *listener, co_status status, const char *message);
/* Takes NULL. After a request that was heard signals stay blocked: the process is about to end, and
   what mpiexec still sends must not cut off its last word. */
void co_listener_close(co_listener *listener);

#endif
