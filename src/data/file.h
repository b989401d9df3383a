/* file.h - the bytes of a whole file: mapped, or unpacked when they are gzip. */
#ifndef CO_DATA_FILE_H
#define CO_DATA_FILE_H

#include <cohort/types.h>

/* The most that a gzip file may unpack to: over ten times CIFAR. Plain files may be of any size. */
#define CO_FILE_MAX_UNPACKED ((size_t)2 << 30)

/* Zero is closed. */
typedef struct co_file {
    const uint8_t *data; /* at least one byte, borrowed from one of: */
    size_t size;
    uint8_t *unpacked; /* owned; NULL: the file was plain */
    void *map;         /* owned; NULL: not mapped */
    size_t map_size;
} co_file;

/* CO_E_DATA for what is missing, empty, no regular file, or damaged gzip, with a message that
   begins with the path; `expected` is what to call a good one: "an IDX file". */
co_status co_file_open(co_file *out, const char *path, const char *expected);
/* The same from memory, which must outlive `out`; messages call it `name`. */
co_status co_file_borrow(co_file *out, const uint8_t *bytes, size_t size, const char *name);
void co_file_close(co_file *file);

#endif
