/* session_rank.h - a rank's side of a session (session.h). */
#ifndef CO_CONTROL_SESSION_RANK_H
#define CO_CONTROL_SESSION_RANK_H

#include "control/rank_control.h"

/* As co_rank_control_before_step and so on, if there is a session. */
co_status co_session_before_step(co_rank_control *control, uint64_t step);
co_status co_session_after_step(co_rank_control *control, const co_where *where);
co_status co_session_after_epoch(co_rank_control *control);

#endif
