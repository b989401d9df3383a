/*
 * thread.h - what a compute thread needs of the machine: cores, binding, floating-point mode.
 */
#ifndef CO_CORE_THREAD_H
#define CO_CORE_THREAD_H

#include <stddef.h>

#include <cohort/status.h>

/* Cores this process may use (affinity mask and cgroup quota), at least 1. */
int co_thread_cores(void);
/* Rank `index` of `count` on this host: bind the calling thread to its share of the allowed cores,
   near each other in the topology (hwloc). More ranks than cores: each is bound to one core,
   in turn. So co_thread_cores() is the rank's share afterwards, as `cores` is. */
co_status co_thread_bind_share(int *cores, int index, int count);
/* "0-3,8": the cores this thread is bound to, for messages. */
void co_thread_binding(char *out, size_t size);
/* Flush denormals to zero in the calling thread: a convolution on denormals was measured
   200 times slower. */
void co_thread_flush_denormals(void);

#endif
