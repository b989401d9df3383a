/*
 * session.c - the launcher's side of a run: which generation of ranks comes next, and from which
 * state.
 *
 * Commits alternate between two slots: a rank overwrites commit k with k + 2 only after a
 * collective of a step that every rank enters after its commit k + 1. So the last commit that all
 * ranks have made is complete, whenever one of them dies. If replicas are not in sync, ranks commit
 * when an epoch ends, with a barrier.
 *
 * Must not compute, nor wait for ranks.
 */
#include "control/session.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/session_internal.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/plural.h"

#define SESSION_MAX_RANKS 1024

co_status session_can_resize(const co_session *s, int ranks)
{
    if (ranks < 1 || ranks > s->capacity)
        return co_fail(CO_E_USAGE, "%d rank%s: this run can have 1 to %d", ranks,
                       co_plural((uint64_t)ranks), s->capacity);
    return s->options.fits(s->options.arg, ranks);
}

static co_status session_check(const co_session *s)
{
    if (s->options.on_failure != CO_ON_FAILURE_SHRINK || s->options.ranks == 1)
        return CO_OK;
    if (session_can_resize(s, s->options.ranks - 1) != CO_OK) {
        const char *why = co_error_message();

        return co_fail(CO_E_USAGE, "on_failure: shrink: %s; or choose respawn", why);
    }
    return CO_OK;
}

static co_status session_map(co_session *s)
{
    void *base;

    s->shared_bytes = sizeof(session_shared) + (size_t)s->capacity * sizeof(session_rank);
    base = co_map(s->shared_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1);
    if (!base)
        return co_fail(CO_E_NOMEM, "out of memory (asked for %zu bytes that ranks share)",
                       s->shared_bytes);
    s->shared = base;
    return CO_OK;
}

static co_status session_make(co_session *s)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int ranks = s->options.ranks, room = cores > 4 ? (int)cores * 4 : 16;
    co_state_shape *shape = co_calloc(1, sizeof(*shape));
    co_status st = shape ? CO_OK : CO_E_NOMEM;

    s->ranks = ranks;
    s->capacity = ranks > room ? ranks : room;
    s->capacity = s->capacity > SESSION_MAX_RANKS ? SESSION_MAX_RANKS : s->capacity;
    s->commits = s->options.on_failure != CO_ON_FAILURE_STOP;
    if (st == CO_OK)
        st = session_check(s);
    if (st == CO_OK)
        st = session_map(s);
    if (st == CO_OK) {
        *shape = *s->options.shape;
        shape->capacity = s->capacity;
    }
    for (int i = 0; i < 2 && st == CO_OK; i++)
        st = co_state_create(&s->slot[i], shape, true);
    if (st == CO_OK && s->options.snapshot)
        st = co_state_create(&s->snapshot, shape, true);
    co_free(shape);
    return st;
}

co_status co_session_open(co_session **out, const co_session_options *options)
{
    co_session *s = co_calloc(1, sizeof(*s));
    co_status st;

    if (!s)
        return CO_E_NOMEM;
    s->options = *options;
    s->state = options->base;
    st = session_make(s);
    if (st != CO_OK) {
        co_session_close(s);
        return st;
    }
    *out = s;
    return CO_OK;
}

void co_session_close(co_session *session)
{
    if (!session)
        return;
    co_control_close(session->control);
    for (int i = 0; i < 2; i++)
        co_state_destroy(session->slot[i]);
    if (session->shared)
        munmap(session->shared, session->shared_bytes);
    co_state_destroy(session->snapshot);
    co_free(session);
}

uint64_t session_committed(const co_session *s)
{
    uint64_t least = UINT64_MAX;

    for (int r = 0; r < s->ranks; r++) {
        const uint64_t n = atomic_load(&s->shared->rank[r].committed);

        least = n < least ? n : least;
    }
    return least;
}

/* No rank is alive: go back to the last commit, with which the next ones begin. */
static void session_rewind(co_session *s)
{
    s->committed = session_committed(s);
    s->shm = NULL;
    s->state = s->committed ? s->slot[s->committed % 2] : s->options.base;
}

static void session_prepare(co_session *s, int ranks)
{
    const uint64_t asked = atomic_load(&s->shared->asked) >> 8;

    s->ranks = ranks;
    s->options.next(s->options.arg, s->state, ranks);
    s->rate.seen_ns = 0;
    atomic_store(&s->shared->left, false);
    atomic_store(&s->shared->asked, asked << 8);
    for (int r = 0; r < s->capacity; r++) {
        session_rank *rank = &s->shared->rank[r];

        atomic_store(&rank->entered, 0);
        atomic_store(&rank->agreed, 0);
        atomic_store(&rank->handled, asked);
        atomic_store(&rank->committed, s->committed);
    }
}

/* ---- what the launcher calls ---- */

static void session_started(void *arg, const co_shm *shm, int ranks)
{
    co_session *s = arg;

    (void)ranks;
    s->shm = shm;
}

void session_ask_leave(co_session *s)
{
    s->leave = true;
}

static void session_stop(co_session *s, const char *why)
{
    if (!s->stopping)
        s->stopping = why;
    session_ask_leave(s);
}

/* One request at a time: ranks agree on a step for a request that all of them have seen. */
static void session_post(co_session *s)
{
    const uint64_t asked = atomic_load(&s->shared->asked) >> 8;
    session_ask ask = SESSION_ASK_SAVE;

    if (!s->leave && !s->save)
        return;
    for (int r = 0; r < s->ranks; r++)
        if (atomic_load(&s->shared->rank[r].handled) != asked)
            return;
    if (s->leave)
        ask = s->stopping ? SESSION_ASK_STOP : SESSION_ASK_LEAVE;
    *(ask == SESSION_ASK_SAVE ? &s->save : &s->leave) = false;
    atomic_store(&s->shared->asked, (asked + 1) << 8 | ask);
}

static void session_tick(void *arg)
{
    co_session *s = arg;
    const double limit = (double)s->options.max_seconds;

    co_shown_measure(&s->rate, &s->shared->shown);
    if (limit > 0 && !s->stopping && co_clock_seconds(s->options.asked_ns, co_clock_ns()) >= limit)
        session_stop(s, "the time limit (max_seconds) is reached");
    session_post(s);
}

static bool session_signalled(void *arg, co_status status)
{
    co_session *s = arg;

    s->stopped_by = status;
    session_stop(s, status == CO_E_INTERRUPTED ? "interrupted" : "terminated");
    return true;
}

/* Whether a restart can help; other errors would end the run again. */
static bool session_is_accident(co_status status)
{
    return status == CO_E_PEER || status == CO_E_TIMEOUT || status == CO_E_NOMEM;
}

/* How far the ranks that have failed had come: commits, where one follows each step; else the
   latest step that one of them has begun, or would have. */
static uint64_t session_reached(const co_session *s)
{
    uint64_t most = s->state ? s->state->point.step + 1 : 1;

    if (s->options.each_step)
        return s->committed;
    for (int r = 0; r < s->ranks; r++) {
        const uint64_t step = atomic_load(&s->shared->rank[r].entered);

        most = step > most ? step : most;
    }
    return most;
}

static bool session_give_up(const co_launch_end *end, const char *why)
{
    co_fail(end->status, "%s; %s", end->cause, why);
    return false;
}

static bool session_restart(co_session *s, int *ranks, const co_launch_end *end)
{
    const co_session_options *o = &s->options;
    const uint64_t failed_at = s->failed_at, step = s->state ? s->state->point.step : 0;
    const bool shrink = o->on_failure == CO_ON_FAILURE_SHRINK;
    char why[128];

    if (o->on_failure == CO_ON_FAILURE_STOP || !session_is_accident(end->status) || s->stopped_by)
        return false;
    s->failed_at = session_reached(s) + 1;
    if (failed_at == s->failed_at) {
        snprintf(why, sizeof(why), "given up: step %llu has failed twice",
                 (unsigned long long)(o->each_step ? step + 1 : failed_at - 1));
        return session_give_up(end, why);
    }
    if (s->restarts == o->max_restarts) {
        snprintf(why, sizeof(why), "given up after %d restart%s (max_restarts)", s->restarts,
                 co_plural((uint64_t)s->restarts));
        return session_give_up(end, why);
    }
    if (shrink && *ranks == 1)
        return session_give_up(end, "no rank is left to continue with");
    *ranks -= shrink;
    s->restarts++;
    s->lost_rank = end->rank;
    snprintf(s->cause, sizeof(s->cause), "%s", end->cause);
    co_log(CO_LOG_WARN, "%s; %d rank%s continue%s after step %llu (restart %d of %lld)", end->cause,
           *ranks, co_plural((uint64_t)*ranks), *ranks == 1 ? "s" : "", (unsigned long long)step,
           s->restarts, (long long)o->max_restarts);
    return true;
}

/* What the ranks before were asked, and have not done. */
static void session_ask_again(co_session *s)
{
    const uint64_t asked = atomic_load(&s->shared->asked);

    for (int r = 0; r < s->ranks && (asked & 255) == SESSION_ASK_SAVE; r++)
        s->save = s->save || atomic_load(&s->shared->rank[r].handled) != asked >> 8;
    s->leave = s->stopping || s->wanted;
}

static bool session_again(void *arg, int *ranks, const co_launch_end *end)
{
    co_session *s = arg;

    session_rewind(s);
    if (end->status == CO_OK) {
        const bool stopped = (atomic_load(&s->shared->asked) & 255) == SESSION_ASK_STOP;

        if (!atomic_load(&s->shared->left) || stopped)
            return false;
        if (s->wanted)
            *ranks = s->wanted;
        s->resizes++;
        s->cause[0] = '\0';
    } else if (!session_restart(s, ranks, end)) {
        return false;
    }
    if (s->wanted == *ranks)
        s->wanted = 0;
    session_ask_again(s);
    session_prepare(s, *ranks);
    return true;
}

co_status co_session_policy(const co_launch_policy **out, co_session *session, const char *run_dir)
{
    CO_TRY(co_control_open(&session->control, run_dir, session_answer, session));
    session->policy = (co_launch_policy){.arg = session,
                                         .control = session->control,
                                         .started = session_started,
                                         .tick = session_tick,
                                         .signalled = session_signalled,
                                         .again = session_again};
    *out = &session->policy;
    return CO_OK;
}

/* Save the last commit of an unfinished run as a checkpoint, so that it can be resumed. */
static co_status session_keep(const co_session *s, co_status launched)
{
    char cause[1800];

    if (launched == CO_OK && !atomic_load(&s->shared->left))
        return CO_OK;
    snprintf(cause, sizeof(cause), "%s", co_error_message());
    if (s->options.rescue(s->options.arg, s->state) != CO_OK) {
        co_log(CO_LOG_WARN, "no checkpoint of the last step: %s", co_error_message());
        return launched == CO_OK ? CO_E_IO : co_fail(launched, "%s", cause);
    }
    return launched == CO_OK ? CO_OK : co_fail(launched, "%s", cause);
}

co_status co_session_status(bool *stopped, uint64_t *steps, co_session *s, co_status launched)
{
    const uint64_t step = s->state ? s->state->point.step : 0;

    *stopped = false;
    if (s->committed > 0)
        launched = session_keep(s, launched);
    if (launched != CO_OK || !s->stopping || !atomic_load(&s->shared->left))
        return launched;
    *stopped = true;
    *steps = step;
    if (s->stopped_by != CO_OK)
        return co_fail(s->stopped_by, "%s after step %llu%s", s->stopping, (unsigned long long)step,
                       atomic_load(&s->shared->shown.saved) == step + 1
                           ? ", which is saved: --resume "
                             "continues from it"
                           : "");
    co_log(CO_LOG_WARN, "stopped after step %llu: %s", (unsigned long long)step, s->stopping);
    return CO_OK;
}

/* ---- in a rank ---- */

void co_session_describe(co_run_info *info, const co_session *s)
{
    if (!s)
        return;
    info->restarts = s->restarts;
    info->resizes = s->resizes;
    info->cause = s->cause[0] ? s->cause : NULL;
    info->lost_rank = s->lost_rank;
}

uint64_t co_session_start_ns(const co_session *s, uint64_t start_ns)
{
    return s && s->committed ? atomic_load(&s->shared->commit_ns[s->committed % 2]) : start_ns;
}

bool co_session_commits_steps(const co_session *s)
{
    return s && s->commits && s->options.each_step;
}

co_state *co_session_snapshot(const co_session *s)
{
    return s ? s->snapshot : NULL;
}
