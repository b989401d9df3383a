/* types.h - element types and shapes, shared by every module. */
#ifndef COHORT_TYPES_H
#define COHORT_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cohort/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* BF16 is the upper half of an F32: 8 bits of exponent, 7 of fraction. F16 is IEEE 754 binary16: 5
   and 10. Both are in memory as uint16_t. */
typedef enum co_dtype {
    CO_F32 = 0,
    CO_F64,
    CO_I32,
    CO_I64,
    CO_U8,
    CO_BF16,
    CO_F16,
    CO_DTYPE_COUNT
} co_dtype;

/** Bytes of one element; 0 for an unknown type. */
CO_API size_t co_dtype_size(co_dtype dtype);
/** "f32", "f64", "i32", "i64", "u8", "bf16", "f16". Static. */
CO_API const char *co_dtype_name(co_dtype dtype);

#define CO_MAX_DIMS 5

/** Sizes of a tensor, outermost first; images are (N, C, H, W). `ndim` 0 is a scalar. The functions
 *  below do not check `ndim`: 0 to CO_MAX_DIMS. */
typedef struct co_shape {
    int ndim;
    int64_t dim[CO_MAX_DIMS];
} co_shape;

/** Number of elements; 1 for a scalar. Shapes made by Cohort never overflow. */
CO_API int64_t co_shape_count(const co_shape *shape);
/** Write "(64, 1, 28, 28)" into `out` (cut to `size`), return `out`. */
CO_API char *co_shape_format(char *out, size_t size, const co_shape *shape);
CO_API bool co_shape_equal(const co_shape *a, const co_shape *b);

/** Names of the fields of a batch that Cohort itself knows. */
#define CO_FIELD_INPUT "input" /* F32: the input of the network; I32: tokens */
#define CO_FIELD_LABEL                                                                             \
    "label"                      /* I32 (N): the class of each sample, from 0; of tokens:          \
                                   (N, T), the token after each, -1: none */
#define CO_FIELD_TARGET "target" /* F32: the values that the network predicts */

#define CO_MAX_FIELDS 8

/** One field of the samples of a batch: (count, ...) row-major, `shape` of each sample, without the
 *  count; ndim 0 is one number. */
typedef struct co_field {
    const char *name; /* CO_FIELD_INPUT, CO_FIELD_LABEL, ..., or any other of a data set */
    co_dtype dtype;
    co_shape shape;
    const void *data;
} co_field;

#ifdef __cplusplus
}
#endif
#endif
