/*
 * state.h - everything a run needs to continue after some step: the contents of checkpoints, and
 * what restarted ranks read. It does not depend on the number of ranks where ranks hold equal
 * values.
 *
 * Use by a launcher that commits every step in its own memory, or by checkpoints:
 *
 *   before ranks start       co_state_shape_of, co_state_create(shared), for arrays that all ranks
 *                            see
 *   each rank, after a step  co_distributed_quiesce, then co_state_capture_part, which copies this
 *                            rank's slice of common arrays and all of its own. The state is
 *                            complete when every rank has returned from it. The caller has to
 *                            ensure that, and that nobody writes into a state that is still being
 *                            read; co_state_capture does both with a barrier.
 *   a rank that continues    job->state = state; trainer_open starts the loader at that position
 *                            and restores the rest with co_state_restore. After that the state is
 *                            no longer borrowed.
 *
 * Strategies whose ranks have their own weights or optimizer state keep one copy per rank. On
 * another number of ranks, the optimizer's own states and the running statistics become their mean
 * over the former ranks, and a rank's part of a sum becomes an equal part of that sum. Own weights
 * that differ are refused, because training on from their mean is a different run. If quiescing is
 * expensive (co_distributed_is_settled is false: ranks run independently, or sums are in flight),
 * commit once per epoch rather than every step.
 *
 * Does not know files.
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

/* Resources used by the run so far, as counted on rank 0; see co_event. */
typedef struct co_spent {
    double compute_seconds, sync_seconds, data_wait_seconds;
    uint64_t bytes_sent;
} co_spent;

/* Position in the run. Plain numbers; the only pointer, last.rank, is NULL. */
typedef struct co_run_point {
    uint64_t epoch;      /* 0-based; of the next step */
    uint64_t epoch_step; /* steps made in it */
    uint64_t step;       /* steps made in the run; also the schedule's position */
    uint64_t samples;    /* in all complete epochs */
    uint64_t epoch_samples;
    uint64_t batch, steps_per_epoch; /* that epoch_step and step refer to */
    double train_seconds;            /* in steps of complete epochs */
    double epoch_seconds;            /* in steps of this epoch */
    double wall_seconds;             /* of the run, including its earlier parts */
    co_spent spent;                  /* likewise */
    co_best best;                    /* of all epochs so far */
    co_event last;                   /* of the last complete epoch; step 0: none */
} co_run_point;

/* State of one rank. */
typedef struct co_rank_point {
    co_result seen;       /* this epoch so far */
    co_rank_means means;  /* likewise */
    uint64_t bad_samples; /* likewise; replaced by others */
    co_recent_spans recent;
    co_sum metrics[CO_METRICS_MAX_SUMS];      /* likewise; sums of the config's metrics */
    uint64_t updates;                         /* by this rank's optimizer */
    co_loss_scale scaler;                     /* scale 0: none */
    uint64_t count[CO_STRATEGY_MAX_COUNTERS]; /* of the strategy */
    co_strategy_merge merge;                  /* likewise; not stored in checkpoints */
} co_rank_point;

/* Then follow: two of the moving average, if any; the optimizer's; the strategy's. */
enum { CO_STATE_PARAM, CO_STATE_BUFFER, CO_STATE_MORE };

#define CO_STATE_EMA "ema" /* name of the moving average, at CO_STATE_MORE */

typedef struct co_state_array {
    char name[CO_DISTRIBUTED_MAX_NAME]; /* "param", "buffer", "momentum_buffer", "exp_avg",
                                           "local.0" */
    size_t n;                           /* elements per copy */
    bool buffer;                        /* laid out like the store's buffer; else like its param */
    bool own;                           /* one copy per rank; else a single copy */
    bool share;                         /* copies are parts of a sum over ranks */
    bool carry;                         /* belongs to the strategy */
    float *data;                        /* (copies, n) */
} co_state_array;

typedef struct co_state_shape {
    int capacity; /* maximum number of ranks that write the state */
    bool ema;     /* it has those of a moving average, from CO_STATE_MORE on */
    int n_param;  /* parameters and running statistics of the model's graph */
    int n_array;
    co_state_array array[CO_STATE_MAX_ARRAYS]; /* data NULL */
} co_state_shape;

typedef struct co_state {
    co_state_shape shape;
    int ranks; /* that wrote it; 0: empty */
    bool shared;
    co_run_point point;
    co_rank_point *rank; /* (capacity) */
    uint64_t *missed;    /* (n_param): updates that went by while it was frozen */
    size_t bytes;        /* of the whole block, including this struct */
} co_state;

/* The shape for `update` over such a model, with or without a moving average. Also works in a
   process without ranks. */
co_status co_state_shape_of(co_state_shape *out, const co_distributed_values *update,
                            const co_model *model, bool ema, int capacity);
/* An empty state. `shared`: in a mapping that forked children see at the same address; else on the
   heap. Untouched memory costs nothing. */
co_status co_state_create(co_state **out, const co_state_shape *shape, bool shared);
void co_state_destroy(co_state *state);
/* Number of copies of an array in use. */
int co_state_copies(const co_state *state, int array);

/* Whether all copies of an array are equal, so that one is enough. */
bool co_state_is_common(const co_state *state, int array);
/* Whether the run's final weights need an outer step on top of the ranks' mean. */
bool co_state_steps_on(const co_state *state);
/* The mean over copies of elements [begin, end), in double and in rank order, so that everyone gets
   the same. If ranks have their own weights, these and the running statistics become what the
   strategy's finish would produce. */
void co_state_mean(float *out, const co_state *state, int array, size_t begin, size_t end);

/* A rank whose state is captured or restored; all borrowed. */
typedef struct co_state_source {
    co_comm *comm;
    co_store *store;
    co_distributed *distributed;
    co_ema *ema; /* NULL: none */
    /* Fill in the run's position, and of the rank what is of its epoch so far. */
    void (*tell)(co_run_point *run, co_rank_point *own, const void *arg);
    /* Before anything is captured: the results of all steps that the store's device was given are
       read, and were good. Collective. NULL: they always are. */
    co_status (*settle)(void *arg);
    void *arg;
} co_state_source;

/* Copy this rank's part into a shared state. No communication. Rank 0 also writes the run's
   point. */
co_status co_state_capture_part(co_state *state, const co_state_source *source);
/* Quiesce and capture the whole state. Collective. In a shared state every rank copies its part; a
   state on the heap is filled on rank 0 only, and may be NULL elsewhere. */
co_status co_state_capture(co_state *state, const co_state_source *source);
/* Fails unless the state has this plan of an epoch. */
co_status co_state_check(const co_state *state, uint64_t batch, uint64_t steps_per_epoch);
/* Restore arrays, loss scale and counters into a newly created rank; all ranks from the same state.
   `own` gets the rank's point, or its part of the former ranks' points; the run's position is in
   state->point. Collective. */
co_status co_state_restore(co_rank_point *own, const co_state_source *to, const co_state *state);

#endif
