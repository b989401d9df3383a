/* trainer.h - one rank's part of a run. */
#ifndef CO_TRAIN_TRAINER_H
#define CO_TRAIN_TRAINER_H

#include <stdatomic.h>

#include "model/model.h"
#include "state/saver.h"
#include "train/spec.h"

#define CO_BENCH_MAX_ROUNDS 100

/* What a dry run has measured (dry_run.h). */
typedef struct co_dry_times {
    int ranks;
    uint64_t batch, steps_per_epoch, total_steps;
    uint64_t steps;                                /* measured, after the first */
    double step_seconds, min_seconds, max_seconds; /* mean of them */
    double start_seconds;                          /* process start to the end of the first step */
    double data_wait_share;                        /* of rank 0's time until the last of them */
    double evaluation_seconds; /* of the whole test split, from a part of it; 0: no evaluation */
    uint64_t peak_bytes;       /* resident, of the rank that held most */
} co_dry_times;

/* Results that rank 0 returns to the caller, across processes. */
typedef struct co_job_result {
    co_train_summary train;
    co_eval_summary eval;
    co_bench_summary bench;
    co_dry_times dry;
    co_saver_counts saver;
    co_status stopped_by; /* over MPI: the signal that stopped the run; CO_OK: none */
    bool saved;           /* likewise: whether the last step is in a checkpoint */
} co_job_result;

/* Kernels that rank 0 has measured, as a value of the config's `kernels`: for ranks that start
   later. */
typedef struct co_job_kernels {
    size_t size;       /* of `text` */
    atomic_bool known; /* set after `text` */
    char text[];
} co_job_kernels;

/* What the launcher sets up before it starts ranks; visible to every rank. */
typedef struct co_job {
    co_spec spec;
    co_dataset *train, *test; /* owned; test NULL: no evaluation */
    co_model *model;          /* owned; each rank uses its own copy */
    struct co_device *device; /* owned, of a rank; NULL: the CPU */
    co_model **replica;       /* owned, (ranks): one model per rank if ranks are threads of this
                                 process; else NULL */
    bool quiet;
    co_step_fn on_step;                  /* from co_train_options */
    void *on_step_arg;                   /* borrowed */
    uint64_t start_ns;                   /* process start, on co_clock_ns */
    uint64_t asked_ns;                   /* when the run was asked for: max_seconds begins */
    co_job_result *result;               /* shared with the launcher; written by rank 0 */
    co_job_kernels *kernels;             /* shared likewise; NULL: nothing is to be measured */
    const struct co_image_files *images; /* borrowed: instead of the test split; NULL: none */
    bool pad_images;    /* compute them in batches as large as those of an evaluation */
    int64_t *confusion; /* (classes, classes), shared likewise; NULL: not counted */
    uint64_t profile_skip, profile_steps; /* from co_train_options */
    uint64_t bench_warmup, bench_steps;
    int bench_rounds;
    bool bench_utilization;
    bool under_mpi;
    int cores;             /* that this job may use here, before ranks get their share */
    unsigned needs;        /* co_strategy_needs of the strategy */
    bool common, in_step;  /* strategy properties, see co_distributed_check */
    int lock;              /* owned; lock of the run directory; -1: rank 0 takes it */
    bool resume;           /* the run directory may hold an earlier part of this run */
    const co_state *state; /* borrowed; state to resume from; NULL: start from the beginning */
    struct co_signal_thread *listener; /* borrowed; over MPI; NULL: none (launch/signal_thread.h) */
    struct co_notes_restart *restart;  /* borrowed; over MPI: why ranks were restarted; NULL: no
                                          notes */
    struct co_session *session;        /* borrowed; NULL: ranks are never restarted (session.h) */
} co_job;

/* Check that each of `ranks` ranks can create its samplers. */
co_status co_job_check_ranks(const co_job *job, int ranks);
/* Check optimizer, schedule and strategy for these ranks; sets needs, common and in_step. */
co_status co_job_check_update(co_job *job);
/* Check that the network fits the data, and fit the metrics to it. */
co_status co_job_check_model(co_job *job);
/* CO_E_USAGE: on `ranks` ranks a batch norm has one value of each channel in a step. */
co_status co_job_check_norms(const co_job *job, int ranks);
/* Map job->kernels if the config wants kernels to be measured. */
co_status co_job_open_kernels(co_job *job);
void co_job_close_kernels(co_job *job);
/* In the launcher: put kernels that ranks have measured into the config. */
co_status co_job_learn_kernels(co_job *job);
/* Fails unless the config's kernels can run its layers in training; `batch` is used where the
   config does not say for which they were chosen. */
co_status co_job_check_kernels(const co_job *job, uint64_t batch);
/* Take the kernels of a checkpoint's config if they were measured for it, and are to be now. */
co_status co_job_take_kernels(co_job *job, const char *config);
/* Describe the run for its checkpoints; the caller frees out->config. */
co_status co_job_describe(co_checkpoint_run *out, const co_job *job);
/* Shape of the checkpoint state for `ranks` ranks. */
co_status co_job_state_shape(co_state_shape *out, const co_job *job, int ranks);
/* Train to the end. Collective. Rank 0 writes the run directory result->train.run_dir. */
co_status co_trainer_run(co_comm *comm, co_job *job);
/* Time steps; collective. Rank 0 fills result->bench. */
co_status co_trainer_bench(co_comm *comm, co_job *job);
/* Time a few steps and a part of an evaluation; collective. Rank 0 fills result->dry. */
co_status co_trainer_dry(co_comm *comm, co_job *job);

#endif
