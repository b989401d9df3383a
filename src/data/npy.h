/* npy.h - NPY, the file format of NumPy's `save`: a header and one array. */
#ifndef CO_DATA_NPY_H
#define CO_DATA_NPY_H

#include "data/file.h"

/* An array, row-major; zero is closed. */
typedef struct co_npy {
    co_dtype dtype;      /* F32, F64, I32, I64, or U8 (booleans, too) */
    co_shape shape;      /* 1 dimension or more, each at least 1 */
    const uint8_t *data; /* borrowed from `file`; may be unaligned */
    co_file file;        /* owned */
} co_npy;

/* Map a file, plain or gzip, that contains one array of these types in C order and nothing else.
   Otherwise CO_E_DATA, with a message that begins with the path. */
co_status co_npy_open(co_npy *out, const char *path);
/* The same from memory, which must outlive `out`; messages call it `name`. */
co_status co_npy_parse(co_npy *out, const uint8_t *bytes, size_t size, const char *name);
void co_npy_close(co_npy *npy);

#endif
