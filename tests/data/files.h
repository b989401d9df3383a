/* files.h - IDX files in a temporary folder, and the location of real data. */
#ifndef CO_TESTS_DATA_FILES_H
#define CO_TESTS_DATA_FILES_H

#include <stddef.h>
#include <stdint.h>

/* For a cmocka group: create the folder that the other calls use; remove it with its contents. */
int files_setup(void **state);
int files_teardown(void **state);

/* "FOLDER/name"; valid until the next call but one. */
const char *files_path(const char *name);
void files_write(const char *name, const void *bytes, size_t size);
void files_remove(const char *name);

/* Build an IDX file: a header, then element i is fill(i). Returns the size. */
size_t files_idx(uint8_t *out, int ndim, const uint32_t *dim, uint8_t (*fill)(size_t i));
/* Compress `size` bytes; `out` has room for size + 100. Returns the compressed size. */
size_t files_gzip(uint8_t *out, const uint8_t *bytes, size_t size);

/* A folder of development data, e.g. "mnist"; NULL if there is none. */
const char *files_real(const char *name);

#endif
