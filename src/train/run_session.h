/* run_session.h - a run on one machine, in which ranks may be started again. */
#ifndef CO_TRAIN_RUN_SESSION_H
#define CO_TRAIN_RUN_SESSION_H

#include "control/session.h"
#include "train/trainer.h"

/* Call before the ranks start. Sets job->session until co_job_close_session. */
co_status co_job_open_session(co_session **out, co_job *job);
void co_job_close_session(co_session *session, co_job *job);

#endif
