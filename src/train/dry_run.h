/* dry_run.h - a run that is checked and timed, and not made. */
#ifndef CO_TRAIN_DRY_RUN_H
#define CO_TRAIN_DRY_RUN_H

#include "graph/plan.h"
#include "train/resume.h"
#include "train/trainer.h"

/* A layer, and what runs it in training. */
typedef struct co_dry_layer {
    char *name; /* owned */
    const char *op;
    const char *backend;
    char kernel[CO_PLAN_PICK_TEXT]; /* "": the backend's name says it all */
} co_dry_layer;

typedef struct co_dry_run {
    char *model, *dataset, *strategy;                               /* owned */
    uint64_t parameters, train_samples, test_samples, read_samples; /* read: tried in both splits */
    int64_t classes;
    co_shape sample;
    co_dry_times times;
    int n_layer;
    co_dry_layer *layer; /* owned, (n_layer) */
    /* Bytes of a rank: weights, gradients and the optimizer's state; activations of a full batch.
     */
    uint64_t store_bytes, activation_bytes;
    co_resume_kind resume;
    uint64_t first_step; /* made before; 0 unless it resumes */
    char run_dir[1024];  /* "": runs/<model>-<date>-<time> */
    /* Bytes that the run directory will hold at most, besides metrics; free on its disk. */
    uint64_t needed_bytes, free_bytes;
    /* Seconds: an epoch with its evaluation, and what is left of the run. */
    double epoch_seconds, run_seconds;
} co_dry_run;

/*
 * Check all that `cohort train` would with these options, and more: samples of both splits are
 * read, the run directory can be written and has room. Then make some steps and batches of an
 * evaluation, a few seconds of each at most, for the times. Nothing is written. Fails as the run
 * would. The caller frees `out`, also after a failure.
 */
co_status co_dry_run_make(co_dry_run *out, const co_train_options *options);
void co_dry_run_free(co_dry_run *run);

#endif
