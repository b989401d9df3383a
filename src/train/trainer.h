/* trainer.h - one rank's part of a run. */
#ifndef CO_TRAIN_TRAINER_H
#define CO_TRAIN_TRAINER_H

#include "model/model.h"
#include "train/spec.h"

#define CO_BENCH_MAX_ROUNDS 100

/* Checkpoints of a run so far, by all its generations of ranks. */
typedef struct co_saver_counts {
    uint64_t made, failed;
    char error[512]; /* of the last that failed */
} co_saver_counts;

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
    uint64_t start_ns;     /* start of the process, on co_clock_ns */
    co_job_result *result; /* shared with the launcher; written by rank 0 */
    int64_t *confusion;    /* (classes, classes), likewise; NULL: an evaluation does not count it */
    uint64_t profile_skip, profile_steps; /* of co_train_options */
    uint64_t bench_warmup, bench_steps;
    int bench_rounds;
    bool under_mpi;
    unsigned needs;            /* co_strategy_needs of the strategy */
    bool common, in_step;      /* of the strategy: co_distributed_check */
    int lock;                  /* owned; of the run directory; -1: rank 0 takes it */
    bool resume;               /* the run directory may hold an earlier part of the run */
    struct co_state *snapshot; /* borrowed; where checkpoints are taken, shared by all ranks; NULL:
                                  rank 0 has one of its own */
    const struct co_state *state; /* borrowed; to resume from; NULL: from the beginning (state.h) */
    struct co_listener
        *listener; /* borrowed; over MPI; NULL: nobody listens (launch/signal_thread.h) */
    struct co_notes_restart *restart; /* borrowed; over MPI: why ranks run again; NULL: no notes */
    struct co_session *session;       /* borrowed; NULL: one generation of ranks (session.h) */
} co_job;

/* Whether every rank of that many will be able to make what it needs. */
co_status co_job_check_ranks(const co_job *job, int ranks);
/* Train to the end. Collective. Rank 0 writes the run directory result->train.run_dir. */
co_status co_trainer_run(co_comm *comm, co_job *job);
/* Time steps; collective. Rank 0 fills result->bench. */
co_status co_trainer_bench(co_comm *comm, co_job *job);

/* Ranks have seen different samples, so their running statistics differ: the mean, on every rank.
   Collective. */
co_status co_trainer_average_buffers(co_comm *comm, co_model *model);
/* A sampler and its loader for one split, as the spec says. */
typedef struct co_feed {
    co_sampler *sampler;
    co_loader *loader;
    int readers;   /* its threads */
    co_tree *tree; /* of the shards; NULL: there are none */
} co_feed;
/* `first`: the epoch and the step in it to begin at; NULL: at the first. */
co_status co_feed_open(co_feed *out, const co_spec *spec, const co_dataset *dataset,
                       const co_comm *comm, co_split split, const co_batch *first);
void co_feed_close(co_feed *feed);
/* Counts over the test split, each sample once, the same on every rank; `own` (NULL: not wanted)
   are those of this rank's part. Collective. */
co_status co_trainer_evaluate(co_result *out, co_result *own, co_comm *comm, co_model *model,
                              const co_feed *feed);
/* The sampler's options alone. */
co_status co_feed_options(co_sampler_options *out, const co_spec *spec, const co_dataset *dataset,
                          int ranks, co_split split);
/* The sampler alone. That of the test split takes each sample once, or is refused. */
co_status co_feed_sampler(co_sampler **out, const co_spec *spec, const co_dataset *dataset,
                          int ranks, co_split split);

#endif
