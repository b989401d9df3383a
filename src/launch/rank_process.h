/* rank_process.h - why a rank has ended without a reason, or makes no progress. */
#ifndef CO_LAUNCH_RANK_PROCESS_H
#define CO_LAUNCH_RANK_PROCESS_H

#include "comm/watch.h"

/* Processes that the kernel has killed for memory in this control group so far; 0 where that is not
   counted. */
uint64_t co_death_memory_kills(void);
/* From the result of waitpid. `kills_before`: the above, when ranks were started. `watch`: the
   rank's; NULL: unknown. */
void co_death_describe(char *out, size_t size, int how, uint64_t kills_before,
                       const co_watch *watch);

/* Detects ranks that make no progress, and neither compute nor wait for others, which have limits
   of their own. */
typedef struct co_watchdog {
    uint64_t beat_ns, since_ns; /* the last sign of progress, and when it was seen first */
    uint64_t ticks;             /* of the processor, then */
} co_watchdog;

/* True: the rank has made no progress for `limit_ns`, and none of its own limits can end it. */
bool co_watchdog_look(co_watchdog *dog, co_watch *watch, uint64_t limit_ns);

#endif
