/* rundir.h - the run directory, which holds what a run writes. */
#ifndef CO_TRAIN_RUNDIR_H
#define CO_TRAIN_RUNDIR_H

#include "data/data.h"
#include "model/model.h"
#include "train/spec.h"

/* Whether what options name can be a run directory; `path` NULL: they name none. CO_E_USAGE: a run
   that resumes needs one; it is a file, or too long. */
co_status co_rundir_check_named(const char *path, bool resume);
/* If `path` (size bytes) is empty, create runs/<model>-<date>-<time> and store its name there.
   CO_E_USAGE if the folder holds an earlier run, or files of the user's that a run would
   overwrite. */
co_status co_rundir_check(char *path, size_t size, const co_spec *spec);

/* Create the folder of a new run: check and lock it, and co_rundir_begin. */
co_status co_rundir_create(int *lock, char *path, size_t size, const co_spec *spec,
                           const co_dataset *data);

/* Write what a run has before its first step: what is known of its data, and config.yaml. */
co_status co_rundir_begin(const char *path, const co_spec *spec, const co_dataset *data);
/* A text that goes by the characters of an earlier run goes by those that the run in the folder has
   kept, once the earlier one is gone. */
co_status co_rundir_keep_characters(co_spec *spec, const char *path);
/* CO_E_DATA where the data that a run in the folder was started with had other numbers for what is
   in `data`: the characters of a text. Classes of another name are a warning. */
co_status co_rundir_check_data(const char *path, const co_dataset *data);
/* CO_E_DATA where weights are of a run whose tokens stand for other text than those of the data. */
co_status co_rundir_check_weights(const char *file, const co_dataset *data);
/* Write the resolved config.yaml. */
co_status co_rundir_write_config(const char *path, const co_spec *spec);

/* Create the folder if it is missing and lock it for as long as *lock is open in any process.
   CO_E_USAGE if another job holds the lock, or if the folder holds the user's own files. */
co_status co_rundir_lock(int *lock, const char *path);
/* `lock` may be -1. */
void co_rundir_unlock(int lock);

/* Write final.safetensors; `sha256` gets 64 hex digits. */
co_status co_rundir_save_weights(char sha256[65], const char *path, const co_model *model);

/* Write trained.safetensors: the weights as trained, when final.safetensors holds their moving
   average. */
co_status co_rundir_save_trained(const char *path, const co_model *model);

#endif
