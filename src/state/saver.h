/*
 * saver.h - makes checkpoints of a running run, as its config says.
 *
 * A checkpoint is a snapshot, taken by all ranks between two steps, and a thread of rank 0 that
 * writes it while training continues. If the last one is still being written when the next is due,
 * all ranks wait for it: none is left out, so a run makes the same checkpoints every time.
 */
#ifndef CO_STATE_SAVER_H
#define CO_STATE_SAVER_H

#include "state/checkpoint.h"
#include "state/save_policy.h"
#include "state/state.h"

typedef struct co_saver co_saver;

/* Checkpoints of a run so far, by all its generations of ranks. */
typedef struct co_saver_counts {
    uint64_t made, failed;
    char error[512]; /* of the last that failed */
} co_saver_counts;

/* All borrowed. */
typedef struct co_saver_options {
    const co_saver_policy *policy;
    const co_state_source *source;
    co_state *snapshot; /* memory for the state, shared by all ranks; NULL: rank 0 has its own, */
    const co_state_shape *shape; /* of this shape, with room for all ranks */
    /* On rank 0. */
    const char *run_dir;
    const co_checkpoint_run *run;
    co_saver_counts *counts;
} co_saver_options;

/* On every rank. *out NULL: checkpoints are off, and the functions below do nothing. */
co_status co_saver_create(co_saver **out, const co_saver_options *options);
/* Ends the writing thread; takes NULL. */
void co_saver_destroy(co_saver *saver);

/* After `step` steps, which are not all of the epoch or of the run. Collective, as all below. */
co_status co_saver_step(co_saver *saver, uint64_t step);
/* The run is at the beginning of an epoch, after `epoch` of them. */
typedef struct co_saver_epoch_end {
    uint64_t epoch, step;
    co_checkpoint_test test; /* of the epoch before */
    bool best, last;         /* it is the best so far; the run ends here */
} co_saver_epoch_end;
co_status co_saver_epoch(co_saver *saver, const co_saver_epoch_end *end);
/* After the last step of this process, in the middle of an epoch. */
co_status co_saver_last(co_saver *saver, uint64_t step);
/* Now, unless the checkpoint of this step exists already; returns when it is on the disk: before
   the run ends, or when a checkpoint has been requested. On failure the status is that of writing,
   on rank 0, whatever on_error is. */
co_status co_saver_now(co_saver *saver, uint64_t step);

/* Waits for the write in progress. With on_error: stop, its failure. */
co_status co_saver_finish(co_saver *saver);
/* When the run is over and all else is saved: CO_E_IO where checkpoints could not be written. */
co_status co_saver_status(const co_saver_counts *counts);

/* In the launcher, when no rank is alive: the state as a checkpoint, unless its step has one. */
co_status co_saver_rescue(const co_saver_policy *policy, const char *run_dir, const co_state *state,
                          const co_checkpoint_run *run);

#endif
