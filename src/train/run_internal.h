/* run_internal.h - a job from its config to its end, shared by run.c and run_eval.c. */
#ifndef CO_TRAIN_RUN_INTERNAL_H
#define CO_TRAIN_RUN_INTERNAL_H

#include <cohort/launch.h>

#include "launch/policy.h"
#include "train/trainer.h"

/* Open data and network; without `train` the test split alone, or job->images. The caller closes
   the job on failure, too. */
co_status co_run_open(co_job *job, const co_train_options *options, bool train);
void co_run_close(co_job *job);
/* Start the ranks. `policy` NULL: one generation. */
co_status co_run_launch(co_job *job, const co_train_options *options,
                        const co_launch_policy *policy, co_rank_fn fn);
/* Load the config's initial weights into the model and its replicas. CO_E_DATA: their
   tokens stand for other text than those of the data. */
co_status co_run_init(const co_job *job);
/* The job as this rank sees it, with its own model. */
co_job co_run_rank_job(const co_job *job, const co_comm *comm);
/* Send the result to ranks that do not share memory with rank 0. */
co_status co_run_share_result(co_comm *comm, const co_job *job);

#endif
