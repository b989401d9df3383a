/* resume.h - resuming a run from its run directory. */
#ifndef CO_TRAIN_RESUME_H
#define CO_TRAIN_RESUME_H

#include "state/state.h"
#include "train/trainer.h"

typedef enum co_resume_kind {
    CO_RESUME_FRESH,   /* no checkpoint: start from the beginning */
    CO_RESUME_STATE,   /* from a checkpoint */
    CO_RESUME_COMPLETE /* the run is already complete */
} co_resume_kind;

/* Find the newest valid checkpoint of the run directory that fits this job. `state` is NULL unless
   there is one. Reports damaged checkpoints on stderr and skips them. Writes nothing.
   CO_E_DATA: no checkpoint is valid, or it is of another model. CO_E_USAGE: the config changed in
   keys that a resumed run cannot change; the message names them all. Kernels that were measured for
   the run become those of the job. */
co_status co_resume_find(co_resume_kind *kind, co_state **state, const char *run_dir, co_job *job);

/* Prepare the run directory to resume from `state` (NULL: from the beginning): write the current
   config.yaml, cut metrics.jsonl back to the state, remove the summary. */
co_status co_resume_prepare(const char *run_dir, const co_job *job, const co_state *state);

/* Over MPI, on rank 0: check or prepare the run directory and lock it, as the launcher does
   otherwise. */
co_status co_resume_enter(int *lock, co_job *job);

/* The rule for changing a top-level key on resume, in words. */
const char *co_resume_rule_text(const char *key);

/* Compare with `config`, the text of a checkpoint's config. Fails on changed keys that must stay
   the same, reports other changes on stderr. */
co_status co_resume_compare(const co_spec *now, const char *config, const char *folder);

#endif
