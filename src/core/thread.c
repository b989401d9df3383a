/*
 * thread.c - cores, binding, floating-point mode.
 */
#include "core/thread.h"

#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/open.h"

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#endif

/* Cores that a cgroup's CPU quota allows, rounded up; 0: no quota. */
static int thread_quota(void)
{
    long quota = -1, period = 100000;
    FILE *file = co_open_system("/sys/fs/cgroup/cpu.max");

    if (file) {
        if (fscanf(file, "%ld %ld", &quota, &period) != 2)
            quota = -1; /* "max" */
        fclose(file);
    } else if ((file = co_open_system("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"))) {
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

struct hwloc_topology *co_thread_topology(void)
{
    hwloc_topology_t topology;

    if (hwloc_topology_init(&topology) != 0)
        return NULL;
    /* Without it that part complains on stderr, and finds no more than the others. */
    if (access("/sys/devices/system/cpu", X_OK) != 0)
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "linux");
    if (hwloc_topology_load(topology) == 0)
        return topology;
    hwloc_topology_destroy(topology);
    return NULL;
}

int co_thread_list_cores(co_core *out, int max, const cpu_set_t *set)
{
    hwloc_topology_t topology = co_thread_topology();
    hwloc_obj_t pu = NULL;
    int n = 0;

    while (topology && n < max &&
           (pu = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_PU, pu)) != NULL)
        if (pu->os_index < CPU_SETSIZE && CPU_ISSET(pu->os_index, set))
            out[n++] = (co_core){(int)pu->os_index, hwloc_bitmap_first(pu->nodeset)};
    if (topology)
        hwloc_topology_destroy(topology);
    return n;
}

/* Each node has the ranks that its part of the cores comes to, and they share its cores. False:
   a node has none, or a rank fewer cores than with shares that do not heed nodes. */
static bool thread_share_of_node(int *begin, int *end, const co_core *core, int n, int index,
                                 int count)
{
    bool found = false;

    for (int a = 0, b; a < n; a = b) {
        int first, ranks;

        for (b = a + 1; b < n && core[b].node == core[a].node; b++)
            ;
        first = (2 * a * count + n) / (2 * n);
        ranks = (2 * b * count + n) / (2 * n) - first;
        if (ranks == 0 || (b - a) / ranks < n / count)
            return false;
        if (index >= first && index < first + ranks) {
            *begin = a + (b - a) * (index - first) / ranks;
            *end = a + (b - a) * (index - first + 1) / ranks;
            found = true;
        }
    }
    return found;
}

void co_thread_share(int *begin, int *end, const co_core *core, int n, int index, int count)
{
    if (n < count) {
        *begin = index % n;
        *end = *begin + 1;
    } else if (!thread_share_of_node(begin, end, core, n, index, count)) {
        *begin = (int)((long)n * index / count);
        *end = (int)((long)n * (index + 1) / count);
    }
}

co_status co_thread_bind_share(int *cores, int index, int count)
{
    co_core core[CPU_SETSIZE];
    cpu_set_t allowed, share;
    int begin, end, n = 0;

    *cores = 1;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
        n = co_thread_list_cores(core, CPU_SETSIZE, &allowed);
    if (n < 1)
        return co_fail(CO_E_UNSUPPORTED, "cannot find out which cores this process may use");
    co_thread_share(&begin, &end, core, n, index, count);
    CPU_ZERO(&share);
    for (int i = begin; i < end; i++)
        CPU_SET((size_t)core[i].number, &share);
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

uint64_t co_thread_float_mode(void)
{
#if defined(__x86_64__) || defined(__i386__)
    return _mm_getcsr() & ~0x3Fu; /* without the flags of what has happened */
#elif defined(__aarch64__)
    uint64_t fpcr;

    __asm__ volatile("mrs %0, fpcr" : "=r"(fpcr));
    return fpcr;
#else
    return 0;
#endif
}

void co_thread_set_float_mode(uint64_t mode)
{
#if defined(__x86_64__) || defined(__i386__)
    _mm_setcsr((unsigned)mode);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
#else
    (void)mode;
#endif
}

void co_thread_flush_denormals(void)
{
#if defined(__x86_64__) || defined(__i386__)
    co_thread_set_float_mode(co_thread_float_mode() |
                             0x8040); /* flush to zero, denormals are zero */
#elif defined(__aarch64__)
    co_thread_set_float_mode(co_thread_float_mode() | (uint64_t)1 << 24);
#endif
}
