/*
 * checkpoint.h - a state of a run in a folder, and back.
 *
 *   weights.safetensors   weights and running statistics under the model's names; where ranks have
 *                         their own, the mean over ranks
 *   ema.safetensors       with `ema` alone: their moving average, likewise
 *   state.safetensors     the optimizer's state and what else goes from step to step, as
 *                         "<array>/<tensor>", or "<rank>/<array>/<tensor>" where ranks differ
 *   manifest.json         the position, the config, checksums (checkpoint/manifest.h)
 *
 * Every tensor is under its name, so nothing depends on how the store is laid out.
 */
#ifndef CO_STATE_CHECKPOINT_H
#define CO_STATE_CHECKPOINT_H

#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "graph/graph.h"
#include "state/state.h"

#define CO_CHECKPOINT_WEIGHTS "weights.safetensors"
#define CO_CHECKPOINT_EMA     "ema.safetensors"
#define CO_CHECKPOINT_STATE   "state.safetensors"

extern const co_manifest_layout co_checkpoint_layout; /* co_run_point, co_rank_point */

/* What a checkpoint says of the run that it is of; all borrowed, but for `config`. */
typedef struct co_checkpoint_run {
    const char *model, *dataset, *strategy, *precision; /* names */
    uint64_t seed, train_samples, parameter_count;
    const co_graph *graph;
    char *config; /* as YAML; owned by the caller */
} co_checkpoint_run;

/* What the test split gave with the weights of a checkpoint. */
typedef struct co_checkpoint_test {
    double accuracy;         /* NaN: not measured, or not defined */
    const co_metric *metric; /* which one says what is best; NULL: not measured */
    double value;            /* of it */
} co_checkpoint_test;

/* Write DIR/step-<n>, whole or not at all. May run beside training: reads the state and what `run`
   points to, and nothing else. `test` NULL: these weights were not measured. */
co_status co_checkpoint_save(const char *dir, const co_state *state, const co_checkpoint_run *run,
                             const co_checkpoint_test *test);

/* Read and check a folder: manifest and checksums. CO_E_DATA names what is wrong. */
co_status co_checkpoint_open(co_manifest *out, const char *folder);
/* Its state on the heap, for a model of this graph; `shape` is what the config makes, with room for
   the manifest's ranks. */
co_status co_checkpoint_load(co_state **out, const co_manifest *manifest, const char *folder,
                             const co_state_shape *shape, const co_graph *graph);

/* Keep the latest `keep` checkpoints and the best; the others go. Never removes the last one. */
co_status co_checkpoint_prune(const char *dir, uint64_t keep, bool best);

/* A checkpoint's folder. `which`: "latest", "best" (on the test split, by what the run finds
   its best by, of equal ones the earliest), or a step's number, in the run directory `run_dir`.
   Only manifests are read, and damaged ones skipped. CO_E_DATA: there is none. */
co_status co_checkpoint_find(char out[CO_CHECKPOINT_MAX_PATH], const char *run_dir,
                             const char *which);
/* The file of a checkpoint's folder whose accuracy its manifest has: the moving average where
   there is one, else the weights. */
co_status co_checkpoint_weights(char out[CO_CHECKPOINT_MAX_PATH], const char *folder);

#endif
