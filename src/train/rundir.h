/* rundir.h - the folder a run leaves behind. */
#ifndef CO_TRAIN_RUNDIR_H
#define CO_TRAIN_RUNDIR_H

#include "train/model.h"
#include "train/spec.h"

/* Make the folder and write config.yaml into it. An empty `path` (size bytes) is filled with
   runs/<model>-<date>-<time>. A folder that holds an earlier run is CO_E_USAGE. */
co_status co_rundir_create(char *path, size_t size, const co_spec *spec);

/* Write final.safetensors; `sha256` gets 64 hex digits. */
co_status co_rundir_save_weights(char sha256[65], const char *path, const co_model *model);

/* Write trained.safetensors: the weights that training has come to, where final.safetensors holds
   their moving average. */
co_status co_rundir_save_trained(const char *path, const co_model *model);

#endif
