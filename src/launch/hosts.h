/*
 * hosts.h - the launcher of a job and the hosts that it may start ranks on.
 */
#ifndef CO_LAUNCH_HOSTS_H
#define CO_LAUNCH_HOSTS_H

#include <stdbool.h>

#include "core/arena.h"
#include "launch/child.h"

#define CO_HOSTS_WORDS 64 /* of the launcher, with what is filled in */
#define CO_HOSTS_MAX   1024

typedef struct co_hosts {
    co_arena *arena;                /* borrowed */
    const char *mpiexec;            /* borrowed: the launcher's words */
    const char *name[CO_HOSTS_MAX]; /* as given: "n1:2"; in the arena */
    int n;                          /* 0: the launcher knows */
} co_hosts;

/* `hosts`: "n1,n2:2"; NULL: the launcher chooses them. */
co_status co_hosts_read(co_hosts *out, co_arena *arena, const char *mpiexec, const char *hosts);
/* The launcher's words for that many ranks, with {ranks} and {hosts} filled in, or appended,
   to argv (CO_HOSTS_WORDS). */
co_status co_hosts_launcher(const char **argv, int *n, const co_hosts *hosts, int ranks);
/* Whether a host of that name, as gethostname has it, is among them. */
bool co_hosts_has(const co_hosts *hosts, const char *name);
/* Continue without it; the last host is kept. */
void co_hosts_drop(co_hosts *hosts, const char *name);
/* Continue without those where the launcher cannot start `program`; if it cannot on any, with
   all. */
co_status co_hosts_drop_lost(co_hosts *hosts, const co_child_guard *guard, const char *program);

#endif
