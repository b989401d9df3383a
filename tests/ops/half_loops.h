/*
 * half_loops.h - kernels of BF16 tensors by one form of product each, whatever this CPU runs
 * fastest.
 */
#ifndef CO_TESTS_OPS_HALF_LOOPS_H
#define CO_TESTS_OPS_HALF_LOOPS_H

#include "backends/backends.h"

/* A backend with the kernels of a form alone, then the others; ended by NULL. */
typedef struct half_loops {
    const char *name; /* "tiles", in plain C; "pairs"; "floats" */
    const co_backend *const *backends;
} half_loops;

/* NULL: there is none of this name, or this CPU cannot run it. */
const half_loops *half_loops_find(const char *name);

#endif
