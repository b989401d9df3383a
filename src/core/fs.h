/*
 * fs.h - files read whole, and files written whole or not at all.
 */
#ifndef CO_CORE_FS_H
#define CO_CORE_FS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cohort/status.h>

#include "core/open.h"

/* Read a regular file of at most `max` bytes into a co_calloc block with a NUL after it.
   `status` is the code for a missing, unreadable, too large or non-regular file
   (CO_E_USAGE for a config, CO_E_DATA for data). Free with co_free. */
co_status co_fs_read(uint8_t **out, size_t *size, const char *path, size_t max, co_status status);
/* The same by a rule, which must have a `max`. */
co_status co_fs_read_as(uint8_t **out, size_t *size, const char *path, const co_open_rule *rule);

/* A file that appears under its name complete or not at all: written to a temporary name in the
   same folder, synced, renamed, folder synced. A device, a pipe or /dev/stdout is written to as it
   stands. */
typedef struct co_atomic_file co_atomic_file;
co_status co_atomic_open(co_atomic_file **out, const char *path);
FILE *co_atomic_stream(co_atomic_file *file);
/* Flush, sync and rename; frees `file` whatever happens. On failure (disk full, ...) the
   temporary file is removed and the old file stays. */
co_status co_atomic_commit(co_atomic_file *file);
/* Remove the temporary file; takes NULL. */
void co_atomic_discard(co_atomic_file *file);

/* CO_E_USAGE where `path`, which `option` has named, cannot be a folder: it, or what is above it,
   is a file. */
co_status co_fs_check_folder(const char *path, const char *option);
/* mkdir -p with mode 0777 & ~umask. */
co_status co_fs_mkdirs(const char *path);
/* A new folder, also if others create one in the same second: `prefix`-20260131-235959, with -2,
   -3, ... appended where that exists. `path` (size bytes) gets its name. */
co_status co_fs_make_dated(char *path, size_t size, const char *prefix);
/* Remove a folder with all that is in it, as far as that is possible; links are not followed. */
void co_fs_remove_folder(const char *path);
/* `folder`/`name`, or one of them if the other is empty, to `out` (size bytes); CO_E_USAGE where it
   does not fit. */
co_status co_fs_join(char *out, size_t size, const char *folder, const char *name);
/* The same in a co_calloc block; NULL: no memory. */
char *co_fs_join_new(const char *folder, const char *name);
/* What follows the last slash of a path, or all of it; in `path`. */
const char *co_fs_name(const char *path);
/* The nearest file `name`, in the folder of `file` or one of the two above it, to `out` (size
   bytes); 0: there is none. */
int co_fs_find_above(char *out, size_t size, const char *file, const char *name);
/* Whether a path exists (of any type). */
int co_fs_exists(const char *path);
/* Whether both names exist and refer to one file. */
int co_fs_same(const char *a, const char *b);

/* Sequential reader over untrusted bytes: never goes past the end. */
typedef struct co_reader {
    const uint8_t *at;
    size_t left;
} co_reader;
/* Each returns 0 on success and -1 when too few bytes are left. */
int co_reader_bytes(const uint8_t **out, co_reader *r, size_t n);
int co_reader_u8(uint8_t *out, co_reader *r);
int co_reader_u32be(uint32_t *out, co_reader *r);
int co_reader_u64le(uint64_t *out, co_reader *r);
/* *out = a * b; -1 on overflow. */
int co_mul_size(size_t *out, size_t a, size_t b);

#endif
