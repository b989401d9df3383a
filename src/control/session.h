/*
 * session.h - a run over generations of ranks: what launcher and ranks share on one machine.
 *
 * The launcher keeps two states of the run in memory that outlives the ranks. Ranks commit into
 * them, so that when one dies, or when their number is to change, new processes continue from the
 * last committed step. The launcher requests that ranks pause or stop; they agree among themselves
 * after which step.
 */
#ifndef CO_CONTROL_SESSION_H
#define CO_CONTROL_SESSION_H

#include "launch/on_failure.h"
#include "launch/policy.h"
#include "state/state.h"
#include "telemetry/telemetry.h"

typedef struct co_session co_session;

/* All borrowed. */
typedef struct co_session_options {
    int ranks; /* of the first generation */
    co_on_failure on_failure;
    int64_t max_restarts, max_seconds; /* 0 seconds: no limit */
    uint64_t start_ns;                 /* of the run */
    uint64_t asked_ns;                 /* max_seconds count from then */
    bool each_step; /* replicas are in sync: ranks commit after each step; else after each epoch */
    const co_state_shape *shape;
    bool snapshot;        /* ranks take checkpoints, in memory that they share */
    const co_state *base; /* state to begin with; NULL: the start of the run */
    /* CO_OK if the config allows continuing with that many ranks; else an error with the reason. */
    co_status (*fits)(void *arg, int ranks);
    /* Called while no rank is alive: `ranks` ranks will begin with this state. */
    void (*next)(void *arg, const co_state *state, int ranks);
    /* Called while no rank is alive, in an unfinished run: save the state as a checkpoint. */
    co_status (*rescue)(void *arg, const co_state *state);
    void *arg;
} co_session_options;

/* Before ranks start. Contradictory config keys are CO_E_USAGE. */
co_status co_session_open(co_session **out, const co_session_options *options);
void co_session_close(co_session *session);
/* The policy for the launcher; owned by the session. Opens the control socket in `run_dir`. */
co_status co_session_policy(const co_launch_policy **out, co_session *session, const char *run_dir);
/* The result of the launch; if the run was requested to stop, the status of the signal, not an
   error of its ranks. *stopped: it ended early, after *steps. */
co_status co_session_status(bool *stopped, uint64_t *steps, co_session *session,
                            co_status launched);

/* ---- in a rank; NULL: there is no session ---- */

/* Restarts and resizes so far, and the reason for this generation. */
void co_session_describe(co_run_info *info, const co_session *session);
/* When the state that this generation begins with was committed, on the run's clock; else
   `start_ns`. */
uint64_t co_session_start_ns(const co_session *session, uint64_t start_ns);
/* Whether ranks commit after each step. */
bool co_session_commits_steps(const co_session *session);
/* Where checkpoints are captured; NULL: ranks share no memory for them. */
co_state *co_session_snapshot(const co_session *session);

#endif
