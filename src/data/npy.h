/* npy.h - NPY, the file format of NumPy's `save`: a header, and one array. */
#ifndef CO_DATA_NPY_H
#define CO_DATA_NPY_H

#include "data/file.h"

/* An array, row-major; zero is closed. */
typedef struct co_npy {
    co_dtype dtype;      /* F32, F64, I32, I64, or U8, which booleans become */
    co_shape shape;      /* 1 dimension or more, each at least 1 */
    const uint8_t *data; /* borrowed from `file`; of any alignment */
    co_file file;        /* owned */
} co_npy;

/* Map a file, plain or gzip, that must hold one array of these types in C's order and nothing else.
   Anything else is CO_E_DATA, with a message that begins with the path. */
co_status co_npy_open(co_npy *out, const char *path);
/* The same from memory, which must outlive `out`; `name` stands for the path. */
co_status co_npy_parse(co_npy *out, const uint8_t *bytes, size_t size, const char *name);
void co_npy_close(co_npy *npy);

#endif
