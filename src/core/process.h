/*
 * process.h - facts about a process, from the kernel.
 */
#ifndef CO_CORE_PROCESS_H
#define CO_CORE_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

#include <cohort/status.h>

/* A stat file of /proc into `text`; returns what follows the name, " S 1 ...": fields 3 and
   on, see proc(5). NULL: the process is gone. */
const char *co_process_stat(char *text, size_t size, const char *path);

/* Seconds that a thread of this process has had a core, and in which it could have run and had
   none, since it was started; `tid` 0: the sum of all threads of the process. False: the kernel
   does not say. */
bool co_process_times(double *core, double *delayed, int tid);

/* Whether this process ignores a signal: as nohup makes it ignore SIGHUP, and a shell without job
   control SIGINT for a command started with `&`. A signal that is ignored at the start stays so. */
bool co_process_ignores(int signal);
/* Those of SIGINT, SIGTERM and SIGHUP that ask this process to end: the ones that it does not
   ignore. A signal that is blocked and waited for would be taken although it is ignored. */
void co_process_requests(sigset_t *out);
/* From now on they wait, for co_process_asked: of a command that makes several runs, between which
   one could come. A run hears them all the same. */
void co_process_hold_requests(void);
/* CO_E_INTERRUPTED, CO_E_TERMINATED: one has come. */
co_status co_process_asked(void);

#endif
