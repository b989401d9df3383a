/*
 * rank_process.c - what the kernel reports about a rank's process: how it died, out of memory, CPU
 * time.
 */
#include "launch/rank_process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/open.h"
#include "core/process.h"

/* The number after `key` at the start of a line, from a file in /proc or /sys; `otherwise` if there
   is none. */
static uint64_t rank_number(const char *path, const char *key, uint64_t otherwise)
{
    const size_t n = strlen(key);
    FILE *file = co_open_system(path);
    uint64_t value = otherwise;
    char line[256];

    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, key, n) == 0 && line[n] == ' ')
            value = strtoull(line + n, NULL, 10);
    if (file)
        fclose(file);
    return value;
}

uint64_t co_death_memory_kills(void)
{
    char line[3072], path[4096];
    FILE *file = co_open_system("/proc/self/cgroup");
    uint64_t kills = UINT64_MAX;

    while (file && kills == UINT64_MAX && fgets(line, sizeof(line), file)) {
        char *name = strchr(line, ':'), *group = name ? strchr(name + 1, ':') : NULL;

        if (!group)
            continue;
        *group++ = '\0';
        group[strcspn(group, "\n")] = '\0';
        if (strcmp(name, ":") == 0) {
            snprintf(path, sizeof(path), "/sys/fs/cgroup%s/memory.events", group);
            kills = rank_number(path, "oom_kill", kills);
        } else if (strcmp(name, ":memory") == 0) {
            snprintf(path, sizeof(path), "/sys/fs/cgroup/memory%s/memory.oom_control", group);
            kills = rank_number(path, "oom_kill", kills);
        }
    }
    if (file)
        fclose(file);
    /* If the group's file is not visible, as in a container, use the machine's counter. */
    if (kills == UINT64_MAX)
        kills = rank_number("/sys/fs/cgroup/memory.events", "oom_kill", UINT64_MAX);
    return kills == UINT64_MAX ? rank_number("/proc/vmstat", "oom_kill", 0) : kills;
}

void co_death_describe(char *out, size_t size, int how, uint64_t kills_before,
                       const co_watch *watch)
{
    size_t used;

    if (!WIFSIGNALED(how)) {
        snprintf(out, size, "exited with code %d and gave no reason", WEXITSTATUS(how));
        co_watch_add_step(out, size, watch);
        return;
    }
    co_watch_describe_killed(out, size, watch, WTERMSIG(how));
    used = strlen(out);
    if (WTERMSIG(how) == SIGKILL && co_death_memory_kills() > kills_before)
        snprintf(out + used, size - used,
                 "; the kernel has killed for lack of memory meanwhile: give the job more of it, "
                 "or take a smaller batch");
}

/* CPU time of the rank's process, in clock ticks. */
static uint64_t rank_ticks(const co_watch *watch)
{
    char path[64], text[1024];
    uint64_t ticks = 0;
    const char *at;

    snprintf(path, sizeof(path), "/proc/%d/stat", atomic_load(&((co_watch *)watch)->pid));
    at = co_process_stat(text, sizeof(text), path);
    for (int field = 3; at && field <= 15; field++) { /* fields 14 and 15: utime and stime */
        at = strchr(at, ' ');
        if (at && field >= 14)
            ticks += strtoull(at + 1, NULL, 10);
        at = at ? at + 1 : NULL;
    }
    return ticks;
}

bool co_watchdog_look(co_watchdog *watchdog, co_watch *watch, uint64_t limit_ns)
{
    const uint64_t now = co_clock_ns(), beat = atomic_load(&watch->beat_ns);
    const unsigned phase = atomic_load(&watch->phase);
    uint64_t busy_ns;

    if (!atomic_load(&watch->pid) || phase == CO_PHASE_STARTING)
        return false;
    /* fsync may take long and shows no progress. */
    if (phase == CO_PHASE_SAVING &&
        now < atomic_load(&watch->phase_ns) + CO_WATCH_SAVING * limit_ns &&
        !co_watch_is_stopped(watch))
        atomic_store(&watch->beat_ns, now);
    if (beat != watchdog->beat_ns || atomic_load(&watch->waiting)) {
        *watchdog = (co_watchdog){beat, now, rank_ticks(watch)};
        return false;
    }
    if (now < watchdog->since_ns + limit_ns)
        return false;
    busy_ns = (rank_ticks(watch) - watchdog->ticks) *
              (UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK));
    if (busy_ns < (now - watchdog->since_ns) / 10)
        return true;
    watchdog->since_ns = now;
    watchdog->ticks = rank_ticks(watch);
    return false;
}
