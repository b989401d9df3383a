/*
 * thread.h - what a compute thread needs of the machine: cores, binding, floating-point mode.
 */
#ifndef CO_CORE_THREAD_H
#define CO_CORE_THREAD_H

#include <sched.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

/* Cores this process may use (affinity mask and cgroup quota), at least 1. */
int co_thread_cores(void);

/* A core as the system numbers it, and the memory node beside it. */
typedef struct co_core {
    int number, node;
} co_core;

/* hwloc's picture of the machine, for its caller to destroy; NULL: there is none. Without /sys, as
   in some chroots, it has the number of cores alone. */
struct hwloc_topology *co_thread_topology(void);
/* Those of the set in the order of the machine's topology, neighbours side by side and the cores of
   a node together; how many, `max` at most. */
int co_thread_list_cores(co_core *out, int max, const cpu_set_t *set);
/* Cores [begin, end) of the list are the share of rank `index` of `count`. A share is within a
   node where that costs no rank a core. More ranks than cores: one core each, in turn. */
void co_thread_share(int *begin, int *end, const co_core *core, int n, int index, int count);
/* Rank `index` of `count` on this host: bind the calling thread to its share of the allowed cores,
   so that memory which it touches first is beside them. co_thread_cores() is the rank's share
   afterwards, as `cores` is. */
co_status co_thread_bind_share(int *cores, int index, int count);
/* "0-3,8": the cores this thread is bound to, for messages. */
void co_thread_binding(char *out, size_t size);
/* Flush denormals to zero in the calling thread: a convolution on denormals was measured
   200 times slower. */
void co_thread_flush_denormals(void);
/* That and the rest of how the calling thread computes, for a thread that shall do as it does. */
uint64_t co_thread_float_mode(void);
void co_thread_set_float_mode(uint64_t mode);

#endif
