/*
 * vector.h - the host's arithmetic on the arrays of the store (ext/vector.h), once for each level
 * of instructions that makes a difference.
 */
#ifndef CO_TENSOR_VECTOR_H
#define CO_TENSOR_VECTOR_H

#include <cohort/ext/vector.h>

#include "core/isa.h"

/* The table of this process's level. */
const co_vector_ops *co_vector_host(void);
/* That of a level which this process has: all give the same bits. */
const co_vector_ops *co_vector_of_level(co_isa level);

#endif
