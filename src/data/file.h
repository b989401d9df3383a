/* file.h - the contents of a file: mapped, or unpacked if it is gzip. */
#ifndef CO_DATA_FILE_H
#define CO_DATA_FILE_H

#include <cohort/types.h>

/* Limit on an unpacked gzip file: over ten times CIFAR. Plain files may have any size. */
#define CO_FILE_MAX_UNPACKED ((size_t)2 << 30)

/* Zero is closed. */
typedef struct co_file {
    const uint8_t *data; /* at least one byte, borrowed from the caller or from: */
    size_t size;
    uint8_t *unpacked; /* owned; NULL if the file is plain */
    void *map;         /* owned; NULL if nothing is mapped */
    size_t map_size;
} co_file;

/* CO_E_DATA for a file that is missing, empty, not regular, or damaged gzip, with a message that
   begins with the path. `expected` names a valid one: "an IDX file". */
co_status co_file_open(co_file *out, const char *path, const char *expected);
/* The same from memory, which must outlive `out`; messages call it `name`. */
co_status co_file_borrow(co_file *out, const uint8_t *bytes, size_t size, const char *name);
void co_file_close(co_file *file);

#endif
