/* run_mpi.h - a run as one rank of an MPI world. */
#ifndef CO_TRAIN_RUN_MPI_H
#define CO_TRAIN_RUN_MPI_H

#include <cohort/launch.h>

#include "train/trainer.h"

/* CO_E_USAGE: `on_failure` asks for ranks to be started again, which mpiexec cannot. */
co_status co_run_check_mpi(const co_job *job, const co_train_options *options);

/* Train until the end or until all ranks are asked to stop. A stop is CO_E_INTERRUPTED or
   CO_E_TERMINATED, or CO_OK if options->notes records it. */
co_status co_run_mpi(co_job *job, const co_train_options *options, const co_launch_options *launch);

#endif
