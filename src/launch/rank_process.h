/* rank_process.h - explains why a rank died without a message, and detects ranks that hang. */
#ifndef CO_LAUNCH_RANK_PROCESS_H
#define CO_LAUNCH_RANK_PROCESS_H

#include "comm/watch.h"

/* Number of OOM kills in this control group so far; 0 if the kernel does not count them. */
uint64_t co_death_memory_kills(void);
/* Describe a waitpid status. `kills_before`: the above, when ranks were started. `watch`: the
   rank's; NULL: unknown. */
void co_death_describe(char *out, size_t size, int how, uint64_t kills_before,
                       const co_watch *watch);

/* Detects ranks that make no progress although they neither compute nor wait for others, which has
   its own time limits. */
typedef struct co_watchdog {
    uint64_t beat_ns, since_ns; /* last sign of progress, and when it was first seen */
    uint64_t ticks;             /* CPU time at that moment */
} co_watchdog;

/* Returns true if the rank has made no progress for `limit_ns`. */
bool co_watchdog_look(co_watchdog *watchdog, co_watch *watch, uint64_t limit_ns);

#endif
