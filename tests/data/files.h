/* files.h - IDX files in a temporary folder, and where real data lies. */
#ifndef CO_TESTS_DATA_FILES_H
#define CO_TESTS_DATA_FILES_H

#include <stddef.h>
#include <stdint.h>

/* For a cmocka group: the folder every other call means, made and removed with what is in it. */
int files_setup(void **state);
int files_teardown(void **state);

/* "FOLDER/name"; valid until the next but one call. */
const char *files_path(const char *name);
void files_write(const char *name, const void *bytes, size_t size);
void files_remove(const char *name);

/* An IDX file's bytes: header, then element i is fill(i). Returns the size. */
size_t files_idx(uint8_t *out, int ndim, const uint32_t *dim, uint8_t (*fill)(size_t i));
/* gzip of `size` bytes; `out` has room for size + 100. Returns the packed size. */
size_t files_gzip(uint8_t *out, const uint8_t *bytes, size_t size);

/* A folder of development data, e.g. "mnist", or NULL where there is none. */
const char *files_real(const char *name);

#endif
