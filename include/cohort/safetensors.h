/*
 * safetensors.h - named tensors in one file, the format that Python's `safetensors` reads.
 *
 * Layout: u64 little-endian header length, JSON header {"name": {"dtype", "shape",
 * "data_offsets"}}, then the bytes. Written and read here: F32, F64, I32, I64, U8, F16 and BF16, of
 * which the last two become F32 when read; BOOL is read as U8. Values are bytes here: a NaN is
 * written and read as it is.
 *
 * Threads: an open file may be read by any number of threads.
 */
#ifndef COHORT_SAFETENSORS_H
#define COHORT_SAFETENSORS_H

#include <cohort/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct co_named_tensor {
    const char *name;
    co_dtype dtype;
    co_shape shape;
    const void *data; /* little-endian, row-major; of files from elsewhere perhaps not aligned */
    size_t bytes;
} co_named_tensor;

/** Write the tensors, those with larger elements first and then in name order; `metadata` is NULL
 * or {key, value, key, value, ..., NULL}. The file appears complete or not at all. CO_E_USAGE: a
 *  tensor without name or data, of a duplicate name, or whose `bytes` do not match its type and
 *  shape. */
CO_API co_status co_safetensors_write(const char *path, const co_named_tensor *tensors, size_t n,
                                      const char *const *metadata);

typedef struct co_safetensors co_safetensors;

/** Map a file and check its header: CO_E_DATA says what is wrong. */
CO_API co_status co_safetensors_open(co_safetensors **out, const char *path);
/** The same from memory, which is borrowed. Messages call the file `name`. */
CO_API co_status co_safetensors_parse(co_safetensors **out, const uint8_t *bytes, size_t size,
                                      const char *name);
CO_API void co_safetensors_close(co_safetensors *file);
CO_API size_t co_safetensors_count(const co_safetensors *file);
/** Tensor i in name order; borrowed. NULL after the last. */
CO_API const co_named_tensor *co_safetensors_tensor(const co_safetensors *file, size_t i);
/** Type of its elements in the file, by the format's names: "BF16" of a tensor that is F32 now.
 *  Static. */
CO_API const char *co_safetensors_stored(const co_safetensors *file, size_t i);
/** NULL if there is no tensor of that name. */
CO_API const co_named_tensor *co_safetensors_find(const co_safetensors *file, const char *name);
/** Value of a metadata key, or NULL. */
CO_API const char *co_safetensors_metadata(const co_safetensors *file, const char *key);
/** Metadata entry i, in the order of the file; false after the last. */
CO_API bool co_safetensors_metadata_at(const co_safetensors *file, size_t i, const char **key,
                                       const char **value);

/** SHA-256, as 64 hex digits, of the tensors' bytes in name order. The tensors are not checked. */
CO_API void co_safetensors_sha256(char out[65], const co_named_tensor *tensors, size_t n);

#ifdef __cplusplus
}
#endif
#endif
