/*
 * folder.h - the folders of a run's checkpoints: DIR/step-<n>, whole or not there at all.
 *
 * Knows names and the order of file operations; not what is in a checkpoint.
 */
#ifndef CO_CHECKPOINT_FOLDER_H
#define CO_CHECKPOINT_FOLDER_H

#include <stddef.h>
#include <stdint.h>

#include <cohort/safetensors.h>

#define CO_CHECKPOINT_MAX_PATH 4096

/* DIR/step-<n>. */
co_status co_checkpoint_path(char out[CO_CHECKPOINT_MAX_PATH], const char *dir, uint64_t step);
/* FOLDER/FILE. */
co_status co_checkpoint_join(char out[CO_CHECKPOINT_MAX_PATH], const char *folder,
                             const char *file);

/* The steps that DIR has folders of, the latest first; none where DIR is missing. Caller frees with
   co_free. */
co_status co_checkpoint_list(uint64_t **steps, size_t *n, const char *dir);

/* An empty folder under a temporary name, to be filled and committed; makes DIR where it is
   missing. */
co_status co_checkpoint_begin(char out[CO_CHECKPOINT_MAX_PATH], const char *dir, uint64_t step);
/* Syncs the folder, gives it its name, syncs DIR. A folder that has the name goes, afterwards. */
co_status co_checkpoint_commit(const char *dir, uint64_t step);
/* Takes the name away first, so that no half of a checkpoint is ever found. */
co_status co_checkpoint_remove(const char *dir, uint64_t step);
/* co_safetensors_open of a file of a checkpoint, which is no link. */
co_status co_safetensors_open_own(co_safetensors **out, const char *path);

/* The leftovers of writers that were killed. */
void co_checkpoint_clean(const char *dir);

#endif
