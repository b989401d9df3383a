/*
 * waits.h - how long tests wait.
 *
 * A test waits for a condition, never for a fixed time, and gives up after one generous bound,
 * which only has to be below ctest's (COHORT_TEST_SECONDS in cmake/CohortModule.cmake). For a limit
 * that is itself under test use WAITS_SHORT_MS: healthy ranks must not reach it on a machine with
 * ten times as many busy threads as cores.
 */
#ifndef TESTS_WAITS_H
#define TESTS_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/clock.h"

#define WAITS_S        300
#define WAITS_MS       (WAITS_S * 1000)
#define WAITS_SHORT_MS 2000

/* `while (!there) assert_true(waits_more(start))`: sleeps for a moment; false when WAITS_S have
   passed since `start`, a time of co_clock_ns. */
static inline bool waits_more(uint64_t start)
{
    co_clock_sleep_us(2000);
    return co_clock_seconds(start, co_clock_ns()) < WAITS_S;
}

#endif
