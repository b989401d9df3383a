/*
 * work.h - how much a step of a plan has to do: operations, and bytes that it must move.
 */
#ifndef CO_GRAPH_WORK_H
#define CO_GRAPH_WORK_H

#include "graph/plan.h"

typedef struct co_work {
    double flops;     /* by the definition of the op (co_op_work); 0: it only moves data */
    co_dtype factors; /* of what it multiplies, for which there may be faster units */
    double bytes;     /* of the tensors that it reads and writes, each once */
} co_work;

/* For a step of a complete plan, so that layouts are known: padding counts. */
void co_work_of(co_work *out, const co_plan_step *step);

#endif
