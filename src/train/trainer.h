/* trainer.h - one rank's part of a run. */
#ifndef CO_TRAIN_TRAINER_H
#define CO_TRAIN_TRAINER_H

#include "model/model.h"
#include "state/saver.h"
#include "train/spec.h"

#define CO_BENCH_MAX_ROUNDS 100

/* What a run brings back from rank 0 to the caller, across processes. */
typedef struct co_job_result {
    co_train_summary train;
    co_eval_summary eval;
    co_bench_summary bench;
    co_saver_counts saver;
    co_status stopped_by; /* over MPI: the signal that train.stopped comes of; CO_OK: none */
    bool saved;           /* and whether a checkpoint was made of the last step */
} co_job_result;

/* What the launcher makes before it starts ranks: every rank sees it. */
typedef struct co_job {
    co_spec spec;
    co_dataset *train, *test; /* owned; test NULL: no evaluation */
    co_model *model;          /* owned; each rank continues with its own copy */
    co_model **replica;       /* owned, (ranks): the copies of ranks that are threads, which share
                                 this process's memory; else NULL */
    bool quiet;
    co_step_fn on_step;    /* of co_train_options */
    void *on_step_arg;     /* borrowed */
    uint64_t start_ns;     /* start of the process, on co_clock_ns */
    co_job_result *result; /* shared with the launcher; written by rank 0 */
    int64_t *confusion;    /* (classes, classes), likewise; NULL: an evaluation does not count it */
    uint64_t profile_skip, profile_steps; /* of co_train_options */
    uint64_t bench_warmup, bench_steps;
    int bench_rounds;
    bool under_mpi;
    unsigned needs;        /* co_strategy_needs of the strategy */
    bool common, in_step;  /* of the strategy: co_distributed_check */
    int lock;              /* owned; of the run directory; -1: rank 0 takes it */
    bool resume;           /* the run directory may hold an earlier part of the run */
    const co_state *state; /* borrowed; to resume from; NULL: from the beginning */
    struct co_signal_thread
        *listener; /* borrowed; over MPI; NULL: nobody listens (launch/signal_thread.h) */
    struct co_notes_restart *restart; /* borrowed; over MPI: why ranks run again; NULL: no notes */
    struct co_session *session;       /* borrowed; NULL: one generation of ranks (session.h) */
} co_job;

/* Whether every rank of that many will be able to make what it needs. */
co_status co_job_check_ranks(const co_job *job, int ranks);
/* Whether there can be such an update with such ranks; sets needs, common and in_step. */
co_status co_job_check_update(co_job *job);
/* Both splits. */
co_status co_job_check_splits(const co_job *job);
/* The network and the data; the metrics are fitted to it. */
co_status co_job_check_model(co_job *job);
/* What its checkpoints say of the run; the caller frees out->config. */
co_status co_job_describe(co_checkpoint_run *out, const co_job *job);
/* The shape of its state, for so many ranks. */
co_status co_job_state_shape(co_state_shape *out, const co_job *job, int ranks);
/* Train to the end. Collective. Rank 0 writes the run directory result->train.run_dir. */
co_status co_trainer_run(co_comm *comm, co_job *job);
/* Time steps; collective. Rank 0 fills result->bench. */
co_status co_trainer_bench(co_comm *comm, co_job *job);

#endif
