/*
 * agree_stop.c - ranks over MPI agree where to leave: an all-reduce of three numbers, about five
 * times a second.
 *
 * Doing so in every step would be simpler, but would synchronize ranks that a strategy lets run
 * apart. So each time they also agree on the number of steps until the next time, the smallest that
 * any proposes; steps instead of seconds, as clocks differ.
 */
#include "control/agree_stop.h"

#include "comm/watch.h"
#include "core/clock.h"
#include "core/log.h"
#include "launch/signal_thread.h"

#define STOP_EVERY_S 0.2

/* Why a rank wants to end the run; the maximum wins. */
enum { STOP_NOT = 0, STOP_LIMIT, STOP_ASKED, STOP_TERMINATED, STOP_INTERRUPTED };

static int64_t stop_reason(const co_rank_control_options *o)
{
    const co_status heard = co_signal_thread_heard(o->listener);
    const double limit = (double)o->max_seconds;

    if (heard != CO_OK)
        return heard == CO_E_INTERRUPTED ? STOP_INTERRUPTED : STOP_TERMINATED;
    if (co_mpi_requests_wants_stop(o->requests))
        return STOP_ASKED;
    return limit > 0 && co_clock_seconds(o->asked_ns, co_clock_ns()) >= limit ? STOP_LIMIT
                                                                              : STOP_NOT;
}

/* Steps until the next all-reduce, from the time of the steps since the last one. */
static int64_t stop_interval(const co_meeting *last, uint64_t step)
{
    const uint64_t made = step - last->met;
    double wish;

    if (last->met_ns == 0 || made == 0)
        return 1;
    wish = (double)made * STOP_EVERY_S / co_clock_seconds(last->met_ns, co_clock_ns());
    if (wish > 2 * (double)made) /* the first steps are not typical */
        wish = 2 * (double)made;
    return wish >= 1 ? (int64_t)wish : 1;
}

static co_status stop_leave(co_rank_control *control, uint64_t step, int64_t reason)
{
    const co_rank_control_options *o = &control->options;

    co_watch_phase(o->comm, CO_PHASE_SAVING);
    CO_TRY(co_saver_now(o->saver, step));
    CO_TRY(co_distributed_quiesce(o->source->distributed)); /* nobody waits for what is in flight */
    control->leaving = true;
    control->stopped = true;
    control->saved = o->saver != NULL;
    control->stopped_by = reason == STOP_INTERRUPTED  ? CO_E_INTERRUPTED
                          : reason == STOP_TERMINATED ? CO_E_TERMINATED
                                                      : CO_OK;
    if (control->stopped_by == CO_OK && co_comm_rank(o->comm) == 0)
        co_log(CO_LOG_WARN, "stopped after step %llu: %s", (unsigned long long)step,
               reason == STOP_ASKED ? CO_ANSWER_STOPPING
                                    : "the time limit (max_seconds) is reached");
    return CO_OK;
}

/* Save a checkpoint here, and continue. */
static co_status stop_save(const co_rank_control_options *o, uint64_t step)
{
    bool saved;

    co_watch_phase(o->comm, CO_PHASE_SAVING);
    CO_TRY(co_saver_asked(&saved, o->saver, step));
    if (saved)
        co_mpi_requests_saved(o->requests, step);
    return CO_OK;
}

co_status co_stop_before_step(co_rank_control *control, uint64_t step)
{
    const co_rank_control_options *o = &control->options;
    int64_t word[3];

    if (!o->listener)
        return CO_OK;
    co_signal_thread_step(o->listener, step + 1);
    if (step < control->meeting.next)
        return CO_OK;
    word[0] = stop_reason(o);
    word[1] = -stop_interval(&control->meeting, step);
    word[2] = co_mpi_requests_wants_save(o->requests);
    CO_TRY(co_comm_allreduce(o->comm, word, word, 3, CO_I64, CO_MAX));
    control->meeting =
        (co_meeting){.next = step + (uint64_t)-word[1], .met = step, .met_ns = co_clock_ns()};
    if (word[0] != STOP_NOT)
        return stop_leave(control, step, word[0]);
    return word[2] ? stop_save(o, step) : CO_OK;
}
