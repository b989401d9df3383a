/* tar_read.h - the members of a tar file, wherever its bytes are: where each begins, and its size.
 */
#ifndef CO_DATA_TAR_READ_H
#define CO_DATA_TAR_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

#define CO_TAR_BLOCK    512
#define CO_TAR_MAX_NAME 4096

/* The bytes of a tar file. */
typedef struct co_tar_source {
    /* Write bytes [offset, offset + n), which are within the file, to `out`. */
    co_status (*read)(void *arg, uint8_t *out, uint64_t offset, size_t n);
    void *arg;
    uint64_t size;    /* of the file */
    const char *name; /* in messages: its path or URL; borrowed */
} co_tar_source;

typedef struct co_tar_reader {
    const co_tar_source *source; /* borrowed */
    uint64_t at;                 /* of the next header */
    char name[CO_TAR_MAX_NAME];  /* of a long name's or pax header, for the next member */
    uint64_t size;               /* of a pax header, if has_size */
    bool has_name, has_size;
} co_tar_reader;

typedef struct co_tar_member {
    char name[CO_TAR_MAX_NAME];
    uint64_t offset, size; /* of its bytes in the file */
    bool is_file;          /* false: a folder */
} co_tar_member;

void co_tar_begin(co_tar_reader *out, const co_tar_source *source);
/* The next member; *end: there is none, and the archive's end is marked. Reads ustar, the files of
   GNU tar with long names, pax and those of before POSIX. CO_E_DATA names the file and the place:
   a wrong checksum of a header, a file that is cut short, a member that is neither file nor folder,
   sparse or compressed. */
co_status co_tar_next(co_tar_member *out, bool *end, co_tar_reader *reader);

#endif
