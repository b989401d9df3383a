/* idx.h - IDX, the file format of MNIST: a header, and an array of bytes. */
#ifndef CO_DATA_IDX_H
#define CO_DATA_IDX_H

#include "data/file.h"

#define CO_IDX_MAX_DIMS 3

/* An array of unsigned bytes, row-major; zero is closed. */
typedef struct co_idx {
    int ndim;
    size_t dim[CO_IDX_MAX_DIMS];
    const uint8_t *data; /* dim[0] * dim[1] * ... bytes, borrowed from `file` */
    co_file file;        /* owned */
} co_idx;

/* Map a file, plain or gzip, that contains one array of `ndim` dimensions and nothing else.
   Otherwise CO_E_DATA, with a message that begins with the path. */
co_status co_idx_open(co_idx *out, const char *path, int ndim);
/* The same from memory, which must outlive `out`; messages call it `name`. */
co_status co_idx_parse(co_idx *out, const uint8_t *bytes, size_t size, int ndim, const char *name);
void co_idx_close(co_idx *idx);

#endif
