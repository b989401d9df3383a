/* run_mpi.h - a run as one rank of an MPI world. */
#ifndef CO_TRAIN_RUN_MPI_H
#define CO_TRAIN_RUN_MPI_H

#include <cohort/launch.h>

#include "train/trainer.h"

/* Train to the end, or to where all ranks are asked to stop: CO_E_INTERRUPTED, CO_E_TERMINATED,
   unless options->notes have it. */
co_status co_run_mpi(co_job *job, const co_train_options *options, const co_launch_options *launch);

#endif
