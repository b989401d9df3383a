/*
 * agree_stop.c - ranks over MPI agree where to leave: a maximum of small numbers, five times a
 * second.
 *
 * Every step would be simpler, and would hold ranks together that a strategy lets run apart. So
 * each time they also agree how many steps there are to the next time, by the fastest wish: a
 * number of steps, as clocks differ. Must not know signals.
 */
#include "control/agree_stop.h"

#include "comm/watch.h"
#include "control/mpi_requests.h"
#include "core/clock.h"
#include "core/log.h"
#include "launch/signal_thread.h"
#include "train/trainer_internal.h"

#define STOP_EVERY_S 0.2

/* Why a rank wants to end the run; the larger one wins. */
enum { STOP_NOT = 0, STOP_LIMIT, STOP_ASKED, STOP_TERMINATED, STOP_INTERRUPTED };

static int64_t stop_reason(const trainer *t)
{
    const co_job *job = t->job;
    const co_status heard = co_listener_heard(job->listener);
    const double limit = (double)job->spec.max_seconds;

    if (heard != CO_OK)
        return heard == CO_E_INTERRUPTED ? STOP_INTERRUPTED : STOP_TERMINATED;
    if (co_ask_mpi_wants_stop(t->ask))
        return STOP_ASKED;
    return limit > 0 && co_clock_seconds(job->start_ns, co_clock_ns()) >= limit ? STOP_LIMIT
                                                                                : STOP_NOT;
}

/* Steps until ranks should ask again, by the time of those since the last time. */
static int64_t stop_wish(const trainer *t)
{
    const uint64_t made = t->step - t->stop.met;
    double wish;

    if (t->stop.met_ns == 0 || made == 0)
        return 1;
    wish = (double)made * STOP_EVERY_S / co_clock_seconds(t->stop.met_ns, co_clock_ns());
    if (wish > 2 * (double)made) /* the first steps say little */
        wish = 2 * (double)made;
    return wish >= 1 ? (int64_t)wish : 1;
}

static co_status stop_leave(trainer *t, int64_t reason)
{
    co_job_result *result = t->job->result;

    co_watch_phase(t->comm, CO_PHASE_SAVING);
    CO_TRY(co_saver_now(t->saver, t));
    t->leaving = true;
    result->train.stopped = true;
    result->train.steps = t->step;
    result->saved = t->saver != NULL;
    result->stopped_by = reason == STOP_INTERRUPTED  ? CO_E_INTERRUPTED
                         : reason == STOP_TERMINATED ? CO_E_TERMINATED
                                                     : CO_OK;
    if (result->stopped_by == CO_OK && co_comm_rank(t->comm) == 0)
        co_log(CO_LOG_WARN, "stopped after step %llu: %s", (unsigned long long)t->step,
               reason == STOP_ASKED ? CO_ASK_STOPPING : "the time limit (max_seconds) is reached");
    return CO_OK;
}

/* A checkpoint here, and on. */
static co_status stop_save(trainer *t)
{
    co_watch_phase(t->comm, CO_PHASE_SAVING);
    CO_TRY(co_saver_now(t->saver, t));
    if (t->saver)
        co_ask_mpi_saved(t->ask, t->step);
    return CO_OK;
}

co_status co_stop_after_step(trainer *t)
{
    co_ask_mpi_show(t->ask, t);
    return CO_OK;
}

co_status co_stop_before_step(trainer *t)
{
    int64_t word[3];

    if (!t->job->listener)
        return CO_OK;
    co_listener_step(t->job->listener, t->step + 1);
    if (t->step < t->stop.next)
        return CO_OK;
    word[0] = stop_reason(t);
    word[1] = -stop_wish(t);
    word[2] = co_ask_mpi_wants_save(t->ask);
    CO_TRY(co_comm_allreduce(t->comm, word, word, 3, CO_I64, CO_MAX));
    t->stop =
        (co_stop){.next = t->step + (uint64_t)-word[1], .met = t->step, .met_ns = co_clock_ns()};
    if (word[0] != STOP_NOT)
        return stop_leave(t, word[0]);
    return word[2] ? stop_save(t) : CO_OK;
}
