/*
 * signal_thread.h - receives the signals of an MPI rank, and records how the rank ends; and what it
 * does, once it has not got on for half of the timeout.
 *
 * The first SIGINT, SIGTERM, SIGHUP or SIGUSR1 is a request that the rank polls between steps; the
 * second ends the process. Signals that were ignored at the start stay ignored. SIGUSR1 means
 * SIGTERM, but mpiexec passes it on without killing the ranks soon after.
 */
#ifndef CO_LAUNCH_SIGNAL_THREAD_H
#define CO_LAUNCH_SIGNAL_THREAD_H

#include <cohort/comm.h>

typedef struct co_signal_thread co_signal_thread;

/* Call before MPI starts threads. `notes`: folder for rank_notes.h, borrowed; NULL: none, then a
   rank that does not get on says so in the log, unless it waits for others. */
co_status co_signal_thread_open(co_signal_thread **out, const char *notes, uint32_t timeout_ms);
/* Sets the rank, and writes its first note. `comm` is watched until co_signal_thread_end. */
void co_signal_thread_begin(co_signal_thread *listener, const co_comm *comm);
/* The request received: CO_OK (none), CO_E_INTERRUPTED or CO_E_TERMINATED. */
co_status co_signal_thread_heard(const co_signal_thread *listener);
/* Record the current step, from 1. */
void co_signal_thread_step(co_signal_thread *listener, uint64_t step);
/* Write the rank's final note: a failure; or CO_OK, CO_E_INTERRUPTED or CO_E_TERMINATED for leaving
   in order. */
void co_signal_thread_end(co_signal_thread *listener, co_status status, const char *message);
/* Takes NULL. After a request the signals stay blocked: the process is about to end, and more
   signals from mpiexec must not prevent its final note. */
void co_signal_thread_close(co_signal_thread *listener);

#endif
