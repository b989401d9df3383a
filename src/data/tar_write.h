/* tar_write.h - writes tar files: plain files, the same bytes whenever they are written. */
#ifndef CO_DATA_TAR_WRITE_H
#define CO_DATA_TAR_WRITE_H

#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

#include "data/shard_index.h"

typedef struct co_tar_writer co_tar_writer;

/* The file appears under `path` when it is complete. CO_E_IO names it. */
co_status co_tar_writer_open(co_tar_writer **out, const char *path);
/* *offset: where its bytes begin in the file. `name`: shorter than 100 bytes; n below 8 GiB. */
co_status co_tar_writer_add(uint64_t *offset, co_tar_writer *writer, const char *name,
                            const void *bytes, size_t n);
/* Complete the file; `tag` is its SHA-256. Frees `writer` on failure, too. */
co_status co_tar_writer_commit(uint64_t *size, uint8_t tag[CO_SHARD_TAG], co_tar_writer *writer);
/* Discard the file; takes NULL. */
void co_tar_writer_discard(co_tar_writer *writer);

#endif
