/* rundir.h - the folder that a run writes. */
#ifndef CO_TRAIN_RUNDIR_H
#define CO_TRAIN_RUNDIR_H

#include "model/model.h"
#include "train/spec.h"

/* An empty `path` (size bytes) is filled with runs/<model>-<date>-<time>, a folder that is made for
   it. One that holds an earlier run, or a file of somebody's own that a run would overwrite, is
   CO_E_USAGE. */
co_status co_rundir_check(char *path, size_t size, const co_spec *spec);
/* The folder of a run that starts from the beginning: checked, made, locked, config.yaml in it. */
co_status co_rundir_create(int *lock, char *path, size_t size, const co_spec *spec);

/* config.yaml, as resolved. */
co_status co_rundir_write_config(const char *path, const co_spec *spec);

/* Make the folder if it is missing and take its lock, for as long as *lock is open, in whichever
   process: CO_E_USAGE where another job has it, or where it holds somebody's own files. */
co_status co_rundir_lock(int *lock, const char *path);
/* Takes -1. */
void co_rundir_unlock(int lock);

/* Write final.safetensors; `sha256` gets 64 hex digits. */
co_status co_rundir_save_weights(char sha256[65], const char *path, const co_model *model);

/* Write trained.safetensors: the weights that training has come to, where final.safetensors holds
   their moving average. */
co_status co_rundir_save_trained(const char *path, const co_model *model);

#endif
