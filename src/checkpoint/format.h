/* format.h - what reading and writing safetensors files share. */
#ifndef CO_CHECKPOINT_FORMAT_H
#define CO_CHECKPOINT_FORMAT_H

#include <cohort/safetensors.h>

/* Tensors have the same bytes in files and in memory. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors files are little-endian, this machine is not"
#endif

#define FORMAT_METADATA "__metadata__" /* a key that no tensor may have */

/* The largest header that is read. A ResNet-152 needs 0.1 MiB; parsed JSON takes up to 20 times
   its text, so that an invalid file cannot take more than 320 MiB. */
#define FORMAT_MAX_HEADER ((size_t)16 << 20)

/* The format's name of an element type. */
static inline const char *format_dtype_name(co_dtype dtype)
{
    static const char *const names[CO_DTYPE_COUNT] = {
        [CO_F32] = "F32", [CO_F64] = "F64",   [CO_I32] = "I32", [CO_I64] = "I64",
        [CO_U8] = "U8",   [CO_BF16] = "BF16", [CO_F16] = "F16"};

    return (unsigned)dtype < CO_DTYPE_COUNT ? names[dtype] : "unknown";
}

/* ---- half_to_fp32.c: half precision, which is read as fp32 ---- */

#define FORMAT_HALF_SIZE 2

/* "F16" or "BF16", static, if that is what `name` says; else NULL. */
const char *format_half_name(const char *name);
/* `count` elements of `from`, which need not be aligned, as floats. Exact. */
void format_widen(float *to, const uint8_t *from, size_t count, const char *half);

#endif
