/* hosts.h - the launcher of a job, and the hosts it may start ranks on. */
#ifndef CO_LAUNCH_HOSTS_H
#define CO_LAUNCH_HOSTS_H

#include <stdbool.h>

#include "core/arena.h"
#include "launch/child.h"

#define CO_HOSTS_WORDS 64 /* of the launcher's command, with what is filled in */
#define CO_HOSTS_MAX   1024

typedef struct co_hosts {
    co_arena *arena;                /* borrowed */
    const char *mpiexec;            /* borrowed: the launcher's command */
    const char *name[CO_HOSTS_MAX]; /* as given: "n1:2"; in the arena */
    int n;                          /* 0: the launcher chooses */
} co_hosts;

/* `hosts`: "n1,n2:2"; NULL: the launcher chooses. */
co_status co_hosts_read(co_hosts *out, co_arena *arena, const char *mpiexec, const char *hosts);
/* Build the launcher's command for `ranks` ranks in argv (CO_HOSTS_WORDS): {ranks} and {hosts} are
   substituted, or appended. */
co_status co_hosts_launcher(const char **argv, int *n, const co_hosts *hosts, int ranks);
/* Whether the host `name`, as from gethostname, is in the list. */
bool co_hosts_has(const co_hosts *hosts, const char *name);
/* Remove the host, unless it is the last one. */
void co_hosts_drop(co_hosts *hosts, const char *name);
/* Remove hosts on which the launcher cannot start `program`; if that is all of them, keep all. */
co_status co_hosts_drop_lost(co_hosts *hosts, const co_child_guard *guard, const char *program);

#endif
