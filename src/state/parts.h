/* parts.h - arrays of a state of which each rank has a part, or a copy of its own. */
#ifndef CO_STATE_PARTS_H
#define CO_STATE_PARTS_H

#include "state/state.h"

/* This rank's parts of an array that is divided as the update is; queued. */
co_status co_state_copy_parts(float *to, const float *from, const co_state_source *source);
/* Those of rank r to the first of the ranks that divide the update, into `to` there. */
co_status co_state_gather_parts(float *to, const float *live, const co_state_source *source, int r);
/* Each rank's array of n elements to rank 0, into `to`, in host memory. */
co_status co_state_gather_copies(float *to, const co_state_source *source, const float *live,
                                 size_t n);

#endif
