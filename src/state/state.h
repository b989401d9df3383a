/*
 * state.h - everything that a run needs to continue after some step: what a checkpoint holds, and
 * what a rank that is started anew reads. Independent of the number of ranks where the ranks hold
 * the same values.
 *
 * The use of it, by a launcher that commits every step in memory of its own, or by checkpoints:
 *
 *   before ranks start    co_state_shape_of, co_state_create(shared): arrays that all ranks see
 *   each rank, after a step (or an epoch's end)
 *                         co_distributed_quiesce, then co_state_capture_part: this rank's slice of
 * what is common, all of its own. When every rank is back from it the state is whole; whoever calls
 *                         has to make sure of that (co_state_capture does, with a barrier), and
 *                         that nobody writes into a state that is still being read.
 *   a rank that is to continue from a state
 *                         job->state = state: trainer_open starts the loader at its place and
 *                         restores the rest by co_state_restore. The state is read by then, and is
 *                         borrowed no longer.
 *
 * Strategies whose ranks have weights or optimizer state of their own keep one copy per rank. On
 * another number of ranks the optimizer's own states and the running statistics continue as their
 * mean over the ranks that there were, and what is a rank's part of a sum continues as equal parts
 * of that sum; own weights that differ are refused, as their mean is another run. Where settling
 * costs something (co_distributed_is_settled is false: ranks that run apart wait for each other,
 * sums under way are waited for) commit once an epoch rather than every step.
 *
 * Must not know files.
 */
#ifndef CO_STATE_STATE_H
#define CO_STATE_STATE_H

#include "state/best.h"
#include "state/rank_means.h"
#include "state/recent_steps.h"
#include "step/distributed.h"
#include "step/ema.h"
#include "telemetry/telemetry.h"

#define CO_STATE_MAX_ARRAYS 80

/* What the run has taken so far, as rank 0 counts it; co_event says what each is. */
typedef struct co_spent {
    double compute_seconds, sync_seconds, data_wait_seconds;
    uint64_t bytes_sent;
} co_spent;

/* Position in the run. Plain numbers: no pointer except last.rank, which is NULL. */
typedef struct co_run_point {
    uint64_t epoch;      /* 0-based; the one that the next step belongs to */
    uint64_t epoch_step; /* steps of it that are made */
    uint64_t step;       /* steps made since the beginning; also the schedule's position */
    uint64_t samples;    /* used in all complete epochs */
    uint64_t epoch_samples;
    uint64_t batch, steps_per_epoch; /* the plan of the epoch that these are of */
    double train_seconds;            /* in steps of complete epochs */
    double epoch_seconds;            /* in steps of this epoch */
    double wall_seconds;             /* of the run, including its earlier parts */
    co_spent spent;                  /* likewise */
    co_best best;                    /* of any epoch's end so far */
    co_event last;                   /* figures of the last complete epoch; step 0: there is none */
} co_run_point;

/* What belongs to one rank. */
typedef struct co_rank_point {
    co_result seen;      /* of this epoch so far */
    co_rank_means means; /* likewise */
    co_recent_spans recent;
    co_sum metrics[CO_METRICS_MAX_SUMS];      /* likewise; sums of the metrics in the config */
    uint64_t updates;                         /* made by this rank's optimizer */
    co_loss_scale scaler;                     /* scale 0: of a run without one */
    uint64_t count[CO_STRATEGY_MAX_COUNTERS]; /* the strategy's */
    co_strategy_merge merge;                  /* likewise; not in checkpoints */
} co_rank_point;

/* After them: the two of the moving average, if there is one; the optimizer's; the strategy's. */
enum { CO_STATE_PARAM, CO_STATE_BUFFER, CO_STATE_MORE };

#define CO_STATE_EMA "ema" /* name of the average of the weights, which is at CO_STATE_MORE */

typedef struct co_state_array {
    char name[CO_DISTRIBUTED_MAX_NAME]; /* names: "param", "buffer", "momentum_buffer", "exp_avg",
                                           "local.0" */
    size_t n;                           /* elements of one copy */
    bool buffer;                        /* laid out as the store's buffer; else as its param */
    bool own;                           /* each rank has its own: `ranks` copies; else one */
    bool share;  /* parts of a sum over ranks; else copies of the same kind */
    bool carry;  /* the strategy's */
    float *data; /* (copies, n) */
} co_state_array;

typedef struct co_state_shape {
    int capacity; /* most ranks that may write the state */
    int n_array;
    co_state_array array[CO_STATE_MAX_ARRAYS]; /* data NULL */
} co_state_shape;

typedef struct co_state {
    co_state_shape shape;
    int ranks; /* that have written it; 0: it is empty */
    bool shared;
    co_run_point point;
    co_rank_point *rank; /* (capacity) */
    size_t bytes;        /* of the whole block, this struct included */
} co_state;

/* Of what `update` makes over such a store, with a moving average or without; in a process that has
   not started ranks, too. */
co_status co_state_shape_of(co_state_shape *out, const co_distributed_values *update,
                            const co_store *store, bool ema, int capacity);
/* Empty. `shared`: in a mapping that forked children see, at the same address; else on the heap.
   Memory that is never written costs nothing. */
co_status co_state_create(co_state **out, const co_state_shape *shape, bool shared);
void co_state_destroy(co_state *state);
/* Number of copies of an array that are filled. */
int co_state_copies(const co_state *state, int array);

/* Whether all copies of an array are the same, so that one of them is enough. */
bool co_state_is_common(const co_state *state, int array);
/* Whether the final weights of the run are more than a mean of the ranks' own. */
bool co_state_steps_on(const co_state *state);
/* The mean over the copies of elements [begin, end), in double and in their order, so that everyone
   finds the same. Where ranks hold weights of their own, theirs and the running statistics become
   what the strategy's finish would make of them. */
void co_state_mean(float *out, const co_state *state, int array, size_t begin, size_t end);

/* A rank whose state is captured or restored; all borrowed. */
typedef struct co_state_source {
    co_comm *comm;
    co_store *store;
    co_distributed *distributed;
    co_ema *ema; /* NULL: none */
    /* Position of the run; of the rank's own state `seen`, `means` and `recent`. */
    void (*tell)(co_run_point *run, co_rank_point *own, const void *arg);
    const void *arg;
} co_state_source;

/* This rank's part into a shared state; no communication. Rank 0 writes the point. */
co_status co_state_capture_part(co_state *state, const co_state_source *source);
/* The whole state, settled. Collective. Into a shared state every rank copies its part; a state on
   the heap is filled on rank 0 alone, and may be NULL on the others. */
co_status co_state_capture(co_state *state, const co_state_source *source);
/* Whether this plan of an epoch is the one of the state. */
co_status co_state_check(const co_state *state, uint64_t batch, uint64_t steps_per_epoch);
/* Arrays, loss scale and counters into a rank that has just been made; all ranks from the same
   state. `own` gets what it had said of itself, or what it has of the ranks that there were; where
   the run was is in state->point. Collective. */
co_status co_state_restore(co_rank_point *own, const co_state_source *source,
                           const co_state *state);

#endif
