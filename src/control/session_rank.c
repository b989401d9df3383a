/*
 * session_rank.c - a rank's side of a run over generations: commit, and agree where to leave.
 *
 * Ranks see a request at different times, and none may wait while another still needs it. So a rank
 * that sees one between two steps announces its step, and continues if any other has begun the next
 * one; when all have announced the same step, they handle the request there. This works for every
 * strategy: the rank that is furthest ahead determines the step, and all others reach it.
 */
#include "control/session_rank.h"

#include "comm/watch.h"
#include "control/session_internal.h"
#include "core/clock.h"

#define RANK_SLEEP_US 200

static session_rank *rank_of(const co_rank_control_options *o)
{
    return &o->session->shared->rank[co_comm_rank(o->comm)];
}

static co_status rank_commit(const co_rank_control_options *o, bool settle)
{
    const co_session *s = o->session;
    session_rank *me = rank_of(o);
    const uint64_t k = atomic_load(&me->committed) + 1;
    co_state *slot = s->slot[k % 2];

    if (settle)
        CO_TRY(co_state_capture(slot, o->source));
    else
        CO_TRY(co_state_capture_part(slot, o->source));
    if (co_comm_rank(o->comm) == 0)
        atomic_store(&s->shared->commit_ns[k % 2], co_clock_ns());
    atomic_store_explicit(&me->committed, k, memory_order_release);
    return CO_OK;
}

/* 1: all ranks have announced `place` (request and step), and some may have continued since. 0: one
   has continued without announcing it. -1: not known yet. */
static int rank_poll(const session_shared *shared, int ranks, uint64_t step, uint64_t place)
{
    bool all = true, passed = false;

    for (int r = 0; r < ranks; r++) {
        session_rank *rank = (session_rank *)&shared->rank[r];
        const bool agreed = atomic_load(&rank->agreed) == place;

        all = all && agreed;
        passed = passed || (!agreed && atomic_load(&rank->entered) > step);
    }
    return all ? 1 : passed ? 0 : -1;
}

/* Grows as long as a rank that is behind gets on. */
static uint64_t rank_sum_steps(const session_shared *shared, int ranks)
{
    uint64_t sum = 0;

    for (int r = 0; r < ranks; r++)
        sum += atomic_load(&((session_rank *)&shared->rank[r])->entered);
    return sum;
}

static co_status rank_agree(bool *here, const co_rank_control_options *o, uint64_t step,
                            uint64_t request)
{
    const session_shared *shared = o->session->shared;
    const uint64_t place = request << 40 | (step + 1);
    const uint64_t limit_ns = (uint64_t)co_comm_timeout(o->comm) * 1000000;
    const int ranks = co_comm_size(o->comm);
    uint64_t since = co_clock_ns(), steps = rank_sum_steps(shared, ranks), now;
    int known;

    atomic_store(&rank_of(o)->agreed, place);
    while ((known = rank_poll(shared, ranks, step, place)) < 0) {
        CO_TRY(co_comm_progress(o->comm));
        now = rank_sum_steps(shared, ranks);
        if (now > steps) { /* a slower one is on its way */
            steps = now;
            since = co_clock_ns();
            co_watch_beat(o->comm);
        }
        if (co_clock_ns() - since > limit_ns)
            return co_fail(CO_E_TIMEOUT, "ranks have not agreed where to leave within %u ms",
                           co_comm_timeout(o->comm));
        co_clock_sleep_us(RANK_SLEEP_US);
    }
    *here = known == 1;
    return CO_OK;
}

/* Save a checkpoint; where the run continues, as far as that is possible. */
static co_status rank_save(const co_rank_control_options *o, uint64_t step, bool goes_on)
{
    bool saved = o->saver != NULL;

    co_watch_phase(o->comm, CO_PHASE_SAVING);
    CO_TRY(goes_on ? co_saver_asked(&saved, o->saver, step) : co_saver_now(o->saver, step));
    if (saved && co_comm_rank(o->comm) == 0)
        atomic_store(&o->session->shared->shown.saved, step + 1);
    return CO_OK;
}

/* Carry out a request; all ranks are at this step. */
static co_status rank_execute(co_rank_control *control, uint64_t step, session_ask ask)
{
    const co_rank_control_options *o = &control->options;

    if (ask != SESSION_ASK_LEAVE)
        CO_TRY(rank_save(o, step, ask == SESSION_ASK_SAVE));
    if (ask == SESSION_ASK_SAVE)
        return CO_OK;
    CO_TRY(rank_commit(o, true));
    control->leaving = true;
    if (co_comm_rank(o->comm) == 0)
        atomic_store(&o->session->shared->left, true);
    return CO_OK;
}

co_status co_session_before_step(co_rank_control *control, uint64_t step)
{
    const co_rank_control_options *o = &control->options;
    const uint64_t asked = atomic_load(&o->session->shared->asked);
    bool here = false;

    if (asked >> 8 != atomic_load(&rank_of(o)->handled))
        CO_TRY(rank_agree(&here, o, step, asked >> 8));
    if (here) {
        CO_TRY(rank_execute(control, step, (session_ask)(asked & 255)));
        atomic_store(&rank_of(o)->handled, asked >> 8);
    }
    if (!control->leaving)
        atomic_store(&rank_of(o)->entered, step + 1);
    return CO_OK;
}

co_status co_session_after_step(co_rank_control *control, const co_where *where)
{
    const co_rank_control_options *o = &control->options;

    if (co_comm_rank(o->comm) == 0)
        co_shown_set(&o->session->shared->shown, where);
    return co_session_commits_steps(o->session) ? rank_commit(o, false) : CO_OK;
}

co_status co_session_after_epoch(co_rank_control *control)
{
    const co_rank_control_options *o = &control->options;

    return o->session->commits ? rank_commit(o, true) : CO_OK;
}
