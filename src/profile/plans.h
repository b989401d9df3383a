/* plans.h - the plans that a profiler sees, and the row of each of their kernels. */
#ifndef CO_PROFILE_PLANS_H
#define CO_PROFILE_PLANS_H

#include "graph/plan.h"

typedef struct co_profile_kernel {
    uint32_t row;
    double flops, bytes;
} co_profile_kernel;

typedef struct co_profile_plan {
    const co_plan *plan;
    co_profile_kernel *kernel; /* owned; (steps of the plan) */
} co_profile_plan;

/* Zero is empty. */
typedef struct co_profile_plans {
    co_profile_plan *list; /* owned */
    size_t n, cap;
    size_t running; /* the one that was found last */
} co_profile_plans;

/* The kernels of a plan that is new, for the caller to fill in; one at the same address is gone.
   NULL: no memory. */
co_profile_kernel *co_profile_plans_add(co_profile_plans *plans, const co_plan *plan);
/* A kernel of a plan that was added. */
const co_profile_kernel *co_profile_plans_find(co_profile_plans *plans, const co_plan *plan,
                                               int step);
void co_profile_plans_free(co_profile_plans *plans);

#endif
