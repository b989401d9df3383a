/*
 * thread.c - cores, binding, floating-point mode.
 */
#include "core/thread.h"

#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

/* Cores that a cgroup's CPU quota allows, rounded up; 0: no quota. */
static int thread_quota(void)
{
    long quota = -1, period = 100000;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");

    if (file) {
        if (fscanf(file, "%ld %ld", &quota, &period) != 2)
            quota = -1; /* "max" */
        fclose(file);
    } else if ((file = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "re"))) {
        if (fscanf(file, "%ld", &quota) != 1)
            quota = -1;
        fclose(file);
    }
    return quota > 0 && period > 0 ? (int)((quota + period - 1) / period) : 0;
}

int co_thread_cores(void)
{
    cpu_set_t set;
    int cores = 1, quota = thread_quota();

    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        cores = CPU_COUNT(&set);
    if (quota && quota < cores)
        cores = quota;
    return cores > 0 ? cores : 1;
}

/* Allowed cores in the order of the machine's topology, neighbours side by side. */
static int thread_ordered_cores(int *order, int max)
{
    hwloc_topology_t topology;
    cpu_set_t allowed;
    hwloc_obj_t pu = NULL;
    int n = 0;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || hwloc_topology_init(&topology) != 0)
        return 0;
    hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    if (hwloc_topology_load(topology) == 0)
        while (n < max && (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)))
            if (pu->os_index < CPU_SETSIZE && CPU_ISSET(pu->os_index, &allowed))
                order[n++] = (int)pu->os_index;
    hwloc_topology_destroy(topology);
    return n;
}

co_status co_thread_bind_share(int *cores, int index, int count)
{
    int order[CPU_SETSIZE], n = thread_ordered_cores(order, CPU_SETSIZE), begin, end;
    cpu_set_t share;

    *cores = 1;
    if (n < 1)
        return co_fail(CO_E_UNSUPPORTED, "cannot tell which cores this process may use");
    begin = n >= count ? (int)((long)n * index / count) : index % n;
    end = n >= count ? (int)((long)n * (index + 1) / count) : begin + 1;
    CPU_ZERO(&share);
    for (int i = begin; i < end; i++)
        CPU_SET((size_t)order[i], &share);
    if (sched_setaffinity(0, sizeof(share), &share) != 0)
        return co_fail(CO_E_UNSUPPORTED, "cannot bind to a core: %s", strerror(errno));
    *cores = end - begin;
    return CO_OK;
}

void co_thread_binding(char *out, size_t size)
{
    cpu_set_t set;
    size_t used = 0;

    out[0] = '\0';
    if (sched_getaffinity(0, sizeof(set), &set) != 0)
        return;
    for (int i = 0; i < CPU_SETSIZE && used < size; i++) {
        int first = i;

        if (!CPU_ISSET((size_t)i, &set))
            continue;
        while (i + 1 < CPU_SETSIZE && CPU_ISSET((size_t)i + 1, &set))
            i++;
        used += (size_t)snprintf(out + used, size - used, first == i ? "%s%d" : "%s%d-%d",
                                 used ? "," : "", first, i);
    }
}

void co_thread_flush_denormals(void)
{
#if defined(__x86_64__) || defined(__i386__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
#elif defined(__aarch64__)
    uint64_t fpcr;

    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    fpcr |= (uint64_t)1 << 24;
    __asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#endif
}
