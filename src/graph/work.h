/*
 * work.h - how much a step of a plan has to do: operations, and bytes that it must move.
 */
#ifndef CO_GRAPH_WORK_H
#define CO_GRAPH_WORK_H

#include "graph/plan.h"

typedef struct co_work {
    double flops; /* by the definition of the op (co_op_work); 0: it only moves */
    bool bf16;    /* it multiplies BF16, or could where there are units for it */
    double bytes; /* of the tensors that it reads and of those that it writes, each once */
} co_work;

/* A step of a plan that is complete, so that layouts are known: padding counts. */
void co_work_of(co_work *out, const co_plan_step *step);

#endif
