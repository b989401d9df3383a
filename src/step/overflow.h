/* overflow.h - what a step with a loss scale has changed by the time its gradients overflow. */
#ifndef CO_STEP_OVERFLOW_H
#define CO_STEP_OVERFLOW_H

#include "step/distributed.h"
#include "tensor/store.h"

typedef struct co_overflow {
    co_distributed *distributed; /* borrowed */
    co_store *store;             /* borrowed */
    float *kept; /* owned: running statistics before the step; NULL: no loss scale, nothing below */
} co_overflow;

/* `overflow` is all zero; after a failure too, co_overflow_close frees what there is. */
co_status co_overflow_open(co_overflow *overflow, co_distributed *distributed, co_store *store);
void co_overflow_close(co_overflow *overflow);
/* Before a step: save what it would change even if it is skipped. */
void co_overflow_keep(co_overflow *overflow);
/* Whether a loss that is not finite only skips this step: its figures are left out. */
bool co_overflow_forgive(co_overflow *overflow, co_result *part);
/* After a step: if it was skipped, restore what it has changed. */
void co_overflow_settle(co_overflow *overflow);

#endif
