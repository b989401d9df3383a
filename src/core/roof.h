/*
 * roof.h - the peak of this rank's cores, measured here and now: arithmetic, and bytes from each
 * level of the memory (Williams et al., "Roofline", CACM 2009).
 */
#ifndef CO_CORE_ROOF_H
#define CO_CORE_ROOF_H

#include <stdbool.h>
#include <stddef.h>

#include <cohort/status.h>

#define CO_ROOF_LEVELS 3

typedef struct co_roof_level {
    char name[8];    /* "L2", "L3", "RAM" */
    double capacity; /* bytes that fit, all threads together; of RAM: no limit */
    double bytes_per_second;
} co_roof_level;

typedef struct co_roof {
    int threads;
    double flops_per_second;      /* fp32 multiply-adds in registers, counted as two */
    double bf16_flops_per_second; /* products of BF16 added up in fp32; 0: no units for them */
    co_roof_level level[CO_ROOF_LEVELS];
} co_roof;

/* Takes about a fifth of a second on `threads` threads at once. `ranks` of this machine measure at
   the same time and share its memory. */
co_status co_roof_measure(co_roof *out, int threads, int ranks);

/* The minimum time in seconds for so much work, with data from the level that they fit in; `bf16`:
   it multiplies in BF16, for which some CPUs have faster units. *bound (may be NULL): "flops", or
   the name of that level; static or the roof's. */
double co_roof_seconds(const char **bound, const co_roof *roof, double flops, double bytes,
                       bool bf16);

#endif
