/*
 * train_hosts.h - the launcher of a job and the hosts that it may start ranks on.
 */
#ifndef CO_CLI_TRAIN_HOSTS_H
#define CO_CLI_TRAIN_HOSTS_H

#include <stdbool.h>

#include "cli/child.h"
#include "core/arena.h"

#define TRAIN_HOSTS_WORDS 64 /* of the launcher, with what is filled in */
#define TRAIN_HOSTS_MAX   1024

typedef struct train_hosts {
    co_arena *arena;                   /* borrowed */
    const char *mpiexec;               /* borrowed: the launcher's words */
    const char *name[TRAIN_HOSTS_MAX]; /* as given: "n1:2"; in the arena */
    int n;                             /* 0: the launcher knows */
} train_hosts;

/* `hosts`: "n1,n2:2"; NULL: none are named. */
co_status train_hosts_read(train_hosts *out, co_arena *arena, const char *mpiexec,
                           const char *hosts);
/* The launcher's words for that many ranks, with {ranks} and {hosts} filled in, or put behind them,
   to argv (TRAIN_HOSTS_WORDS). */
co_status train_hosts_launcher(const char **argv, int *n, const train_hosts *hosts, int ranks);
/* Whether a host of that name, as gethostname has it, is among them. */
bool train_hosts_has(const train_hosts *hosts, const char *name);
/* Go on without it; the last one stays. */
void train_hosts_drop(train_hosts *hosts, const char *name);
/* Go on without those where the launcher cannot start `program`; where it can nowhere, with all. */
co_status train_hosts_drop_lost(train_hosts *hosts, const cli_guard *guard, const char *program);

#endif
