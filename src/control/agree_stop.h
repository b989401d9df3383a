/*
 * agree_stop.h - end a run over MPI cleanly: ranks notice a signal or a time limit at different
 * times, and agree after which step they leave. On one machine the session does this.
 */
#ifndef CO_CONTROL_AGREE_STOP_H
#define CO_CONTROL_AGREE_STOP_H

#include "control/rank_control.h"

/* After `step` steps: sets control->leaving if all ranks leave the run here, after a checkpoint if
   the run saves any, and logs why unless it was a signal. Collective; does nothing without a signal
   thread. */
co_status co_stop_before_step(co_rank_control *control, uint64_t step);

#endif
