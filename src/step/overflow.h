/* overflow.h - undoes a step whose gradients overflow, if there is a loss scale. */
#ifndef CO_STEP_OVERFLOW_H
#define CO_STEP_OVERFLOW_H

#include "step/distributed.h"
#include "tensor/store.h"

typedef struct co_overflow {
    co_distributed *distributed; /* borrowed */
    co_store *store;             /* borrowed */
    float *kept; /* owned: running statistics before the step; NULL: no loss scale, nothing to do */
} co_overflow;

/* `overflow` must be zeroed. co_overflow_close frees what exists, also after a failure. */
co_status co_overflow_open(co_overflow *overflow, co_distributed *distributed, co_store *store);
void co_overflow_close(co_overflow *overflow);
/* Call before a step: save what it changes even if it is skipped. */
void co_overflow_keep(co_overflow *overflow);
/* If the loss is not finite and this only skips the step, zero `part` and return true. */
bool co_overflow_forgive(co_overflow *overflow, co_result *part);
/* Call after a step: if it was skipped, restore what was saved. */
void co_overflow_settle(co_overflow *overflow);

#endif
