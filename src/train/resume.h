/* resume.h - continue the run of a run directory. */
#ifndef CO_TRAIN_RESUME_H
#define CO_TRAIN_RESUME_H

#include "state/state.h"
#include "train/trainer.h"

typedef enum co_resume_kind {
    CO_RESUME_FRESH,   /* there is nothing to resume from */
    CO_RESUME_STATE,   /* from a checkpoint */
    CO_RESUME_COMPLETE /* nothing is left to do */
} co_resume_kind;

/* The last good checkpoint in the run directory, for this job; `state` NULL unless there is one.
   Damaged ones are reported on stderr and passed over. Writes nothing.
   CO_E_DATA: there are checkpoints, but no good one, or not of this model. CO_E_USAGE: the config
   has changed in what a run cannot change; all such keys are named. */
co_status co_resume_find(co_resume_kind *kind, co_state **state, const char *run_dir,
                         const co_job *job);

/* Make the run directory ready to resume from `state` (NULL: from the beginning): config.yaml as it
   is now, metrics.jsonl without events after the state, no summary. */
co_status co_resume_prepare(const char *run_dir, const co_job *job, const co_state *state);

/* Over MPI, on rank 0: the run directory checked or made ready, and locked, as the launcher does it
   elsewhere. */
co_status co_resume_enter(int *lock, co_job *job);

/* What a resume makes of a change of a top-level key, in words. */
const char *co_resume_rule_text(const char *key);

/* What of `config`, a checkpoint's, is another now. Refused keys fail; others are reported on
   stderr. */
co_status co_resume_compare(const co_spec *now, const char *config, const char *folder);

#endif
