/* row.h - a step of a plan as a row of a profile. */
#ifndef CO_PROFILE_ROW_H
#define CO_PROFILE_ROW_H

#include "graph/plan.h"
#include "telemetry/profile.h"

/* Everything but times and calls; work is that of one call. */
void co_profile_row_of(co_profile_row *out, const co_plan *plan, int step);

#endif
