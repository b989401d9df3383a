/* shard_files.h - the shards of a folder, kept open: a file that is replaced or changed while it is
   in use is noticed. */
#ifndef CO_DATA_SHARD_FILES_H
#define CO_DATA_SHARD_FILES_H

#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

typedef struct co_shard_file {
    char *path; /* owned */
    int fd;     /* owned; -1: opened for each read */
    uint64_t size;
    int64_t changed_ns; /* when it was last written to */
} co_shard_file;

/* Zero is empty. */
typedef struct co_shard_files {
    co_shard_file *file; /* owned: (n) */
    size_t n;
} co_shard_files;

/* Room for n files. */
co_status co_shard_files_create(co_shard_files *out, size_t n);
/* Open file k. CO_E_DATA names it: missing, no file. */
co_status co_shard_files_open(co_shard_files *files, size_t k, const char *path);
/* Bytes [offset, offset + n) of file k; thread-safe. CO_E_IO names it: it is missing now, shorter,
   or was changed since it was opened. */
co_status co_shard_files_read(uint8_t *out, const co_shard_files *files, size_t k, uint64_t offset,
                              size_t n);
void co_shard_files_close(co_shard_files *files);

#endif
