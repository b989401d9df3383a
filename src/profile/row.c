/*
 * row.c - what a step of a plan is called, and how much it has to do.
 */
#include "profile/row.h"

#include <stdio.h>
#include <string.h>

#include "graph/work.h"

void co_profile_row_of(co_profile_row *out, const co_plan *plan, int step)
{
    co_plan_step s;
    co_work work;

    co_plan_step_at(&s, plan, step);
    co_work_of(&work, &s);
    memset(out, 0, sizeof(*out));
    out->kind = s.backward ? CO_PROFILE_BACKWARD : CO_PROFILE_FORWARD;
    snprintf(out->name, sizeof(out->name), "%s", s.name);
    snprintf(out->op, sizeof(out->op), "%s", s.call->op->name);
    snprintf(out->backend, sizeof(out->backend), "%s", s.backend->name);
    if (s.backend->describe_call)
        s.backend->describe_call(out->kernel, sizeof(out->kernel), s.seen, s.gradient);
    else if (s.call->kernel && s.call->kernel->name)
        snprintf(out->kernel, sizeof(out->kernel), "%s", s.call->kernel->name);
    out->shape = s.call->out[0]->shape;
    out->flops = work.flops;
    out->factors = work.factors;
    out->bytes = work.bytes;
}
