/*
 * roof.h - the peak of this rank's cores, or of its GPU, measured here and now: arithmetic, and
 * bytes from each level of the memory (Williams et al., "Roofline", CACM 2009).
 */
#ifndef CO_CORE_ROOF_H
#define CO_CORE_ROOF_H

#include <stdbool.h>
#include <stddef.h>

#include <cohort/status.h>
#include <cohort/types.h>

#define CO_ROOF_LEVELS 3
#define CO_ROOF_ALL    1e30

typedef struct co_roof_level {
    char name[8];    /* "L2", "L3", "RAM"; a GPU's "L2", "memory"; "": no level */
    double capacity; /* bytes that fit, all threads together; of the last: CO_ROOF_ALL */
    double bytes_per_second;
} co_roof_level;

typedef struct co_roof {
    int threads;             /* 0: a GPU's */
    char gpu[64];            /* its name */
    bool tf32;               /* it multiplies fp32 in TF32 */
    double flops_per_second; /* fp32 multiply-adds in registers, counted as two */
    /* Products of such factors, added up in fp32; 0: no units for them. */
    double tf32_flops_per_second, bf16_flops_per_second, f16_flops_per_second;
    co_roof_level level[CO_ROOF_LEVELS];
} co_roof;

/* Takes about a fifth of a second on `threads` threads at once, at most one for each core. `ranks`
   of this machine measure at the same time and share its memory; where they outnumber its cores,
   each has its part of them. */
co_status co_roof_measure(co_roof *out, int threads, int ranks);

/* The minimum time in seconds for so much work, with data from the level that they fit in;
   `factors`: the type of what it multiplies, for which there may be faster units. *bound (may be
   NULL): "flops", or the name of that level; static or the roof's. */
double co_roof_seconds(const char **bound, const co_roof *roof, double flops, double bytes,
                       co_dtype factors);

#endif
