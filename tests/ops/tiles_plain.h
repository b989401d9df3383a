/*
 * tiles_plain.h - the kernels for AMX with tiles in plain C: the same loops, which run on every
 * CPU.
 */
#ifndef CO_TESTS_OPS_TILES_PLAIN_H
#define CO_TESTS_OPS_TILES_PLAIN_H

#include "backends/backends.h"

/* A backend with these kernels alone, then the others; ended by NULL. */
extern const co_backend *const tiles_backends[];

#endif
