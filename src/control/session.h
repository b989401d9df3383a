/*
 * session.h - a run over generations of ranks: what launcher and ranks share on one machine.
 *
 * The launcher keeps two states of the run in memory that outlives the ranks. Ranks commit into
 * them, so that when one dies, or when their number is to change, fresh processes continue from the
 * last committed step. The launcher asks the ranks to pause or stop; they agree among themselves
 * after which step.
 */
#ifndef CO_CONTROL_SESSION_H
#define CO_CONTROL_SESSION_H

#include "launch/policy.h"
#include "telemetry/telemetry.h"
#include "train/trainer.h"

typedef struct co_session co_session;

/* Before ranks start, with job->state as the run begins. Sets job->session, which the caller
   closes. Config keys that do not go together are CO_E_USAGE. */
co_status co_session_open(co_session **out, co_job *job);
void co_session_close(co_session *session);
/* What the launcher needs, ready to be handed over; the session's own. Opens the control socket
   in `run_dir`. */
co_status co_session_policy(const co_launch_policy **out, co_session *session, const char *run_dir);
/* What the launch came to: a run that was asked to stop is its signal's status, not an error of
   its ranks. */
co_status co_session_status(co_session *session, co_status launched);

/* ---- in a rank; all of them take a trainer without a session ---- */

struct trainer;

/* Which generation of ranks this is, and why. */
void co_session_describe(co_run_info *info, const co_job *job);
/* What this generation begins with; before trainer_open. */
void co_session_begin(struct trainer *t);
/* Between two steps: sets t->leaving when all ranks leave the run here. Returns CO_OK then. */
co_status co_session_before_step(struct trainer *t);
/* A step, or an epoch, is complete. */
co_status co_session_after_step(struct trainer *t);
co_status co_session_after_epoch(struct trainer *t);

#endif
