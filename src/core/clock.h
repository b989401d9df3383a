/* clock.h - monotonic time. */
#ifndef CO_CORE_CLOCK_H
#define CO_CORE_CLOCK_H

#include <stdint.h>

/* Nanoseconds since an arbitrary point, never going back. */
uint64_t co_clock_ns(void);
/* The same clock as of its last tick, at most some milliseconds ago, at a fifth of the cost. */
uint64_t co_clock_coarse_ns(void);
/* Time that a core has spent in this thread. */
uint64_t co_clock_thread_ns(void);
/* When this process was started, on the same clock (to 10 ms, as the kernel keeps it). */
uint64_t co_clock_process_start_ns(void);
/* Seconds between two such readings. */
static inline double co_clock_seconds(uint64_t from_ns, uint64_t to_ns)
{
    return (double)(to_ns - from_ns) * 1e-9;
}
/* Sleep at least this long; returns early on a signal. */
void co_clock_sleep_us(uint32_t us);

#endif
