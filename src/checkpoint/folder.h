/*
 * folder.h - the folders of a run's checkpoints: DIR/step-<n>, complete or absent.
 *
 * Does not read or write what is in a checkpoint.
 */
#ifndef CO_CHECKPOINT_FOLDER_H
#define CO_CHECKPOINT_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include <cohort/safetensors.h>

#define CO_CHECKPOINT_MAX_PATH 4096

/* DIR/step-<n>. */
co_status co_checkpoint_path(char out[CO_CHECKPOINT_MAX_PATH], const char *dir, uint64_t step);

/* The steps of the checkpoints in DIR, latest first; none if DIR is missing. Free with co_free. */
co_status co_checkpoint_list(uint64_t **steps, size_t *n, const char *dir);

/* Create an empty folder under a temporary name, to be filled and committed, and DIR if needed. */
co_status co_checkpoint_begin(char out[CO_CHECKPOINT_MAX_PATH], const char *dir, uint64_t step);
/* Sync the folder, rename it to DIR/step-<n>, and sync DIR. An earlier folder of that name is
   removed afterwards. */
co_status co_checkpoint_commit(const char *dir, uint64_t step);
/* Remove a checkpoint. It is renamed first, so that no partial checkpoint is ever found. */
co_status co_checkpoint_remove(const char *dir, uint64_t step);
/* co_safetensors_open of a file in a checkpoint: a link is refused. */
co_status co_safetensors_open_own(co_safetensors **out, const char *path);

/* Remove the leftovers of writers that were killed. */
void co_checkpoint_clean(const char *dir);

#endif
