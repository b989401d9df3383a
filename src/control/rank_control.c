/*
 * rank_control.c - forward a rank's calls to the session or, over MPI, to agree_stop.c.
 */
#include "control/rank_control.h"

#include "control/agree_stop.h"
#include "control/session_rank.h"

void co_rank_control_close(co_rank_control *control)
{
    co_mpi_requests_close(control->options.requests);
    control->options.requests = NULL;
}

co_status co_rank_control_before_step(co_rank_control *control, uint64_t step)
{
    return control->options.session ? co_session_before_step(control, step)
                                    : co_stop_before_step(control, step);
}

co_status co_rank_control_after_step(co_rank_control *control, const co_where *where)
{
    if (control->options.session)
        return co_session_after_step(control, where);
    co_mpi_requests_show(control->options.requests, where);
    return CO_OK;
}

co_status co_rank_control_after_epoch(co_rank_control *control)
{
    return control->options.session ? co_session_after_epoch(control) : CO_OK;
}
