/*
 * checkpoint.h - a state of a run in a folder, and back.
 *
 *   weights.safetensors   weights and running statistics under the model's names; if ranks have
 *                         their own, the mean over ranks
 *   ema.safetensors       with `ema` only: their moving average, likewise
 *   state.safetensors     the optimizer's state and the other arrays, as
 *                         "<array>/<tensor>", or "<rank>/<array>/<tensor>" if ranks differ
 *   manifest.json         the position, the config, checksums (checkpoint/manifest.h)
 *
 * Tensors are stored by name, so files do not depend on the layout of the store.
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

extern const co_manifest_layout co_checkpoint_layout; /* for co_run_point and co_rank_point */

/* What a checkpoint records about its run; borrowed except `config`. */
typedef struct co_checkpoint_run {
    const char *model, *dataset, *strategy, *precision; /* names */
    uint64_t seed, train_samples, parameter_count;
    const co_graph *graph;
    char *config; /* as YAML; owned by the caller */
} co_checkpoint_run;

/* Evaluation of a checkpoint's weights on the test split. */
typedef struct co_checkpoint_test {
    double accuracy;         /* NaN: not evaluated, or not defined */
    const co_metric *metric; /* metric that defines the best; NULL: not evaluated */
    double value;            /* of that metric */
} co_checkpoint_test;

/* Write DIR/step-<n>, completely or not at all. May run concurrently with training: reads only the
   state and what `run` points to. `test` NULL: these weights were not evaluated. */
co_status co_checkpoint_save(const char *dir, const co_state *state, const co_checkpoint_run *run,
                             const co_checkpoint_test *test);

/* Read and verify a folder: manifest and checksums. CO_E_DATA names the problem. */
co_status co_checkpoint_open(co_manifest *out, const char *folder);
/* Load its state onto the heap. `shape` is the config's, with room for the manifest's ranks. */
co_status co_checkpoint_load(co_state **out, const co_manifest *manifest, const char *folder,
                             const co_state_shape *shape, const co_graph *graph);

/* Remove all but the latest `keep` checkpoints and, with `best`, the best. Never removes the last
   one. */
co_status co_checkpoint_prune(const char *dir, uint64_t keep, bool best);

/* Find a checkpoint's folder. `which`: "latest", "best" (on the test split by the run's metric; the
   earliest of equals) or a step number. Reads only manifests and skips damaged ones. CO_E_DATA:
   there is none. */
co_status co_checkpoint_find(char out[CO_CHECKPOINT_MAX_PATH], const char *run_dir,
                             const char *which);
/* The file in a checkpoint's folder that its recorded accuracy is of: the moving average if there
   is one, else the weights. */
co_status co_checkpoint_weights(char out[CO_CHECKPOINT_MAX_PATH], const char *folder);

#endif
