/*
 * saver.h - makes the checkpoints of a run, as its config says.
 *
 * A checkpoint is a snapshot that all ranks take between two steps; a thread of rank 0 writes it
 * while training continues. If the previous one is still being written when the next is due, all
 * ranks wait, so that a run always makes the same checkpoints.
 */
#ifndef CO_STATE_SAVER_H
#define CO_STATE_SAVER_H

#include "state/checkpoint.h"
#include "state/save_policy.h"
#include "state/state.h"

typedef struct co_saver co_saver;

/* Checkpoints so far, over all generations of ranks. */
typedef struct co_saver_counts {
    uint64_t made, failed;
    char error[512]; /* of the last failure */
} co_saver_counts;

/* All borrowed. */
typedef struct co_saver_options {
    const co_saver_policy *policy;
    const co_state_source *source;
    co_state *snapshot;          /* memory shared by all ranks; NULL: rank 0 allocates its own */
    const co_state_shape *shape; /* of that state, with room for all ranks */
    /* Used on rank 0. */
    const char *run_dir;
    const co_checkpoint_run *run;
    co_saver_counts *counts;
} co_saver_options;

/* Call on every rank. *out NULL: checkpoints are off, and the functions below do nothing. */
co_status co_saver_create(co_saver **out, const co_saver_options *options);
/* Waits for the writing thread; takes NULL. */
void co_saver_destroy(co_saver *saver);

/* Whether the number of a step says that a checkpoint follows. */
bool co_saver_is_due(const co_saver *saver, uint64_t step);
/* After step `step`, unless it ends the epoch or the run. Collective, as all below. */
co_status co_saver_step(co_saver *saver, uint64_t step);
/* The position after an epoch: `epoch` epochs and `step` steps are done. */
typedef struct co_saver_epoch_end {
    uint64_t epoch, step;
    co_checkpoint_test test; /* of the last epoch */
    bool best, last;         /* its evaluation is the best so far; the run ends here */
} co_saver_epoch_end;
co_status co_saver_epoch(co_saver *saver, const co_saver_epoch_end *end);
/* After the last step of this process, within an epoch: the state as it is there, which is written
   when the evaluation that follows is known. */
co_status co_saver_last(co_saver *saver, uint64_t step);
co_status co_saver_tested(co_saver *saver, const co_checkpoint_test *test);
/* Save this step unless it is saved already, and return when it is on disk: before the run ends.
   Returns the status of the write on rank 0, whatever on_error says. */
co_status co_saver_now(co_saver *saver, uint64_t step);
/* The same for a checkpoint that was requested in a run that continues: on_error says what a failed
   write means. *saved: there is one; false without checkpoints. Set on rank 0. */
co_status co_saver_asked(bool *saved, co_saver *saver, uint64_t step);

/* Wait for the current write. Returns its failure if on_error is stop. */
co_status co_saver_finish(co_saver *saver);
/* At the very end of a run: CO_E_IO if some checkpoints could not be written. */
co_status co_saver_status(const co_saver_counts *counts);

/* In the launcher, when no rank is alive: save the state unless there is a checkpoint of its
   step. */
co_status co_saver_rescue(const co_saver_policy *policy, const char *run_dir, const co_state *state,
                          const co_checkpoint_run *run);

#endif
