/*
 * waits.h - how long a test waits for what takes a moment on an idle machine.
 *
 * A test waits for a condition, never for a time, and all of them give up after the same, generous
 * bound: it only has to be shorter than ctest's (COHORT_TEST_SECONDS in cmake/CohortModule.cmake).
 * A limit that is itself under test is WAITS_SHORT_MS: ranks that are well must not meet it on a
 * machine with ten times as much to do as it has cores.
 */
#ifndef TESTS_WAITS_H
#define TESTS_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"

#define WAITS_S        300
#define WAITS_MS       (WAITS_S * 1000)
#define WAITS_SHORT_MS 2000

/* `while (!there) assert_true(waits_more(start))`: sleeps for a moment; false when it is WAITS_S
   since `start`, a time of co_clock_ns. */
static inline bool waits_more(uint64_t start)
{
    co_clock_sleep_us(2000);
    return co_clock_seconds(start, co_clock_ns()) < WAITS_S;
}

#endif
