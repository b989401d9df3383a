/*
 * session_rank.c - a rank's side of a run over generations: commit, and agree where to leave.
 *
 * A request reaches ranks at different moments, and none may wait where another still needs it. So
 * a rank that meets one between two steps says so, and continues if any other has begun the step
 * that comes next; when all have said the same place, that is the place. It holds for every
 * strategy: the rank that is furthest ahead sets the place, and all others get there.
 */
#include "comm/watch.h"
#include "control/session_internal.h"
#include "core/clock.h"
#include "launch/rank_notes.h"
#include "train/trainer_internal.h"

#define RANK_SLEEP_US 200

static session_rank *rank_of(const trainer *t)
{
    return &t->job->session->shared->rank[co_comm_rank(t->comm)];
}

void co_session_begin(trainer *t)
{
    const co_session *s = t->job->session;

    /* The state says how long the run had lasted when it was committed. */
    if (s && s->committed)
        t->job->start_ns = atomic_load(&s->shared->commit_ns[s->committed % 2]);
}

void co_session_describe(co_run_info *info, const co_job *job)
{
    const co_session *s = job->session;

    if (job->state)
        info->first_step = job->state->point.step;
    if (!s && job->restart) {
        info->restarts = job->restart->count;
        info->cause = job->restart->count ? job->restart->cause : NULL;
        info->lost_rank = job->restart->lost_rank;
    }
    if (!s)
        return;
    info->restarts = s->restarts;
    info->resizes = s->resizes;
    info->cause = s->cause[0] ? s->cause : NULL;
    info->lost_rank = s->lost_rank;
}

static co_status rank_commit(trainer *t, bool settle)
{
    const co_session *s = t->job->session;
    session_rank *me = rank_of(t);
    const uint64_t k = atomic_load(&me->committed) + 1;
    co_state *slot = s->slot[k % 2];

    if (settle)
        CO_TRY(co_state_capture(slot, t));
    else
        CO_TRY(co_state_capture_part(slot, t));
    if (co_comm_rank(t->comm) == 0)
        atomic_store(&s->shared->commit_ns[k % 2], co_clock_ns());
    atomic_store_explicit(&me->committed, k, memory_order_release);
    return CO_OK;
}

/* 1: all ranks meet the request at `place`, and some may have gone on from there since. 0: one has
   gone on without having met it. -1: not known yet. */
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

static co_status rank_agree(bool *here, trainer *t, uint64_t request)
{
    const session_shared *shared = t->job->session->shared;
    const uint64_t place = request << 40 | (t->step + 1), start = co_clock_ns();
    const uint64_t limit_ns = (uint64_t)co_comm_timeout(t->comm) * 1000000;
    int known;

    atomic_store(&rank_of(t)->agreed, place);
    while ((known = rank_poll(shared, co_comm_size(t->comm), t->step, place)) < 0) {
        CO_TRY(co_comm_progress(t->comm));
        if (co_clock_ns() - start > limit_ns)
            return co_fail(CO_E_TIMEOUT, "ranks have not agreed where to leave within %u ms",
                           co_comm_timeout(t->comm));
        co_clock_sleep_us(RANK_SLEEP_US);
    }
    *here = known == 1;
    return CO_OK;
}

/* All ranks are here. */
static co_status rank_obey(trainer *t, session_ask ask)
{
    session_shared *shared = t->job->session->shared;

    if (ask != SESSION_ASK_LEAVE) {
        co_watch_phase(t->comm, CO_PHASE_SAVING);
        CO_TRY(co_saver_now(t->saver, t));
        if (t->saver && co_comm_rank(t->comm) == 0)
            atomic_store(&shared->shown.saved, t->step + 1);
    }
    if (ask == SESSION_ASK_SAVE)
        return CO_OK;
    CO_TRY(rank_commit(t, true));
    t->leaving = true;
    if (co_comm_rank(t->comm) == 0)
        atomic_store(&shared->left, true);
    return CO_OK;
}

co_status co_session_before_step(trainer *t)
{
    const co_session *s = t->job->session;
    uint64_t asked;
    bool here = false;

    if (!s)
        return co_stop_before_step(t);
    asked = atomic_load(&s->shared->asked);
    if (asked >> 8 != atomic_load(&rank_of(t)->handled))
        CO_TRY(rank_agree(&here, t, asked >> 8));
    if (here) {
        CO_TRY(rank_obey(t, (session_ask)(asked & 255)));
        atomic_store(&rank_of(t)->handled, asked >> 8);
    }
    if (!t->leaving)
        atomic_store(&rank_of(t)->entered, t->step + 1);
    return CO_OK;
}

co_status co_session_after_step(trainer *t)
{
    const co_session *s = t->job->session;

    if (!s)
        return co_stop_after_step(t);
    if (co_comm_rank(t->comm) == 0)
        co_shown_set(&s->shared->shown, t);
    return s->commits && s->each_step ? rank_commit(t, false) : CO_OK;
}

co_status co_session_after_epoch(trainer *t)
{
    const co_session *s = t->job->session;

    return s && s->commits ? rank_commit(t, true) : CO_OK;
}
