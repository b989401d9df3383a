/*
 * clock.c - monotonic time.
 */
#include "core/clock.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "core/process.h"

uint64_t co_clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t co_clock_thread_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t co_clock_coarse_ns(void)
{
#ifdef CLOCK_MONOTONIC_COARSE
    struct timespec now;

    if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0)
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
    return co_clock_ns();
}

uint64_t co_clock_process_start_ns(void)
{
    unsigned long long ticks = 0;
    struct timespec boot;
    uint64_t now = co_clock_ns(), age;
    char text[1024];
    const char *after = co_process_stat(text, sizeof(text), "/proc/self/stat");

    /* Field 22. */
    if (!after || sscanf(after,
                         " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
                         "%*d %*d %llu",
                         &ticks) != 1)
        return now;
    clock_gettime(CLOCK_BOOTTIME, &boot);
    age = (uint64_t)boot.tv_sec * 1000000000u + (uint64_t)boot.tv_nsec -
          ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
    return age < now ? now - age : now;
}

void co_clock_sleep_us(uint32_t us)
{
    const struct timespec time = {us / 1000000, (long)(us % 1000000) * 1000};

    nanosleep(&time, NULL);
}
