/* plans.c - plans found by their addresses; there is one for each size of a batch. */
#include "profile/plans.h"

#include "core/mem.h"

#define PLANS_FIRST 16

static co_profile_plan *plans_take(co_profile_plans *plans, const co_plan *plan)
{
    for (size_t i = 0; i < plans->n; i++)
        if (plans->list[i].plan == plan)
            return &plans->list[i];
    if (plans->n == plans->cap) {
        const size_t cap = plans->cap ? plans->cap * 2 : PLANS_FIRST;
        co_profile_plan *grown = co_realloc(plans->list, cap, sizeof(*grown));

        if (!grown)
            return NULL;
        plans->list = grown;
        plans->cap = cap;
    }
    plans->list[plans->n] = (co_profile_plan){plan, NULL};
    return &plans->list[plans->n++];
}

co_profile_kernel *co_profile_plans_add(co_profile_plans *plans, const co_plan *plan)
{
    co_profile_plan *entry = plans_take(plans, plan);

    if (!entry)
        return NULL;
    co_free(entry->kernel);
    entry->kernel = co_calloc((size_t)co_plan_step_count(plan), sizeof(*entry->kernel));
    return entry->kernel;
}

const co_profile_kernel *co_profile_plans_find(co_profile_plans *plans, const co_plan *plan,
                                               int step)
{
    for (size_t i = 0; plans->list[plans->running].plan != plan && i < plans->n; i++)
        if (plans->list[i].plan == plan)
            plans->running = i;
    return &plans->list[plans->running].kernel[step];
}

void co_profile_plans_free(co_profile_plans *plans)
{
    for (size_t i = 0; i < plans->n; i++)
        co_free(plans->list[i].kernel);
    co_free(plans->list);
    *plans = (co_profile_plans){NULL};
}
