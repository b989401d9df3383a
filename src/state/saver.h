/*
 * saver.h - makes checkpoints of a running trainer, as its config says.
 *
 * A checkpoint is a snapshot, taken by all ranks between two steps, and a thread of rank 0 that
 * writes it while training continues. If the last one is still being written when the next is due,
 * all ranks wait for it: none is left out, so a run makes the same checkpoints every time.
 */
#ifndef CO_STATE_SAVER_H
#define CO_STATE_SAVER_H

#include "state/state.h"

typedef struct co_saver co_saver;

/* On every rank. Rank 0 knows the run directory by now. */
co_status co_saver_create(co_saver **out, struct trainer *t);
/* Ends the writing thread; takes NULL. */
void co_saver_destroy(co_saver *saver);

/* After a step that is not the last of its epoch or of the run. Collective, as all below. */
co_status co_saver_step(co_saver *saver, struct trainer *t);
/* The trainer is at the beginning of an epoch; `test_accuracy` of the one before: NaN: not
   measured. `best`: it is the best so far. */
co_status co_saver_epoch(co_saver *saver, struct trainer *t, double test_accuracy, bool best);
/* The last of what the run will do, in the middle of an epoch. */
co_status co_saver_last(co_saver *saver, struct trainer *t);
/* Here and now, unless the checkpoint of this step is there already; back when it is on the disk:
   for whoever is about to end the run, or has been asked for a checkpoint. On failure the status
   is that of writing, on rank 0, whatever the config says of errors. */
co_status co_saver_now(co_saver *saver, struct trainer *t);

/* Waits for what is being written. With on_error: stop, its failure. */
co_status co_saver_finish(co_saver *saver);
/* When the run is over and all else is saved: CO_E_IO where checkpoints could not be written. */
co_status co_saver_status(const co_job *job);

/* In the launcher, when no rank is alive: job->state as a checkpoint, unless its step has one. */
co_status co_saver_rescue(const co_job *job);

#endif
