/*
 * signal_thread.h - takes the signals of one MPI rank, and records its end.
 *
 * The first SIGINT, SIGTERM, SIGHUP or SIGUSR1 is a request that the rank polls between two steps;
 * the second one ends the process. A signal that was ignored at the start stays so. SIGUSR1 means
 * SIGTERM, and mpiexec passes it on without killing ranks soon after.
 */
#ifndef CO_LAUNCH_SIGNAL_THREAD_H
#define CO_LAUNCH_SIGNAL_THREAD_H

#include <cohort/comm.h>

typedef struct co_signal_thread co_signal_thread;

/* Before MPI starts threads. `notes`: the folder of rank_notes.h, borrowed; NULL: none. */
co_status co_signal_thread_open(co_signal_thread **out, const char *notes);
/* Identifies this rank: from now on the notes have it. */
void co_signal_thread_begin(co_signal_thread *listener, const co_comm *comm);
/* CO_OK: nothing; CO_E_INTERRUPTED, CO_E_TERMINATED. */
co_status co_signal_thread_heard(const co_signal_thread *listener);
/* The step that the rank is in, from 1. */
void co_signal_thread_step(co_signal_thread *listener, uint64_t step);
/* The rank's last note: a failure, or CO_OK and CO_E_INTERRUPTED, CO_E_TERMINATED for leaving in
   good order. */
void co_signal_thread_end(co_signal_thread *listener, co_status status, const char *message);
/* Takes NULL. After a request signals stay blocked: the process is about to end, and signals that
   mpiexec still sends must not prevent its last note. */
void co_signal_thread_close(co_signal_thread *listener);

#endif
