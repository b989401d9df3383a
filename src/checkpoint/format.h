/* format.h - shared by the reader and the writer of safetensors files. */
#ifndef CO_CHECKPOINT_FORMAT_H
#define CO_CHECKPOINT_FORMAT_H

#include <cohort/safetensors.h>

/* Tensors have the same bytes in files and in memory. */
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "safetensors files are little-endian, this machine is not"
#endif

#define FORMAT_METADATA "__metadata__" /* not allowed as the name of a tensor */

/* Limit on a header. A ResNet-152 needs 0.1 MiB; parsed JSON takes up to 20 times its text, so an
   invalid file takes at most 320 MiB. */
#define FORMAT_MAX_HEADER ((size_t)16 << 20)

/* Control characters in a name would garble terminals and messages. */
static inline bool format_name_is_printable(const char *name)
{
    for (; *name; name++)
        if ((unsigned char)*name < ' ' || *name == 0x7f)
            return false;
    return true;
}

/* The format's name of an element type. */
static inline const char *format_dtype_name(co_dtype dtype)
{
    static const char *const names[CO_DTYPE_COUNT] = {
        [CO_F32] = "F32", [CO_F64] = "F64",   [CO_I32] = "I32", [CO_I64] = "I64",
        [CO_U8] = "U8",   [CO_BF16] = "BF16", [CO_F16] = "F16"};

    return (unsigned)dtype < CO_DTYPE_COUNT ? names[dtype] : "unknown";
}

/* ---- half_to_fp32.c ---- */

#define FORMAT_HALF_SIZE 2

/* "F16" or "BF16", static, if `name` is one of these; else NULL. */
const char *format_half_name(const char *name);
/* Convert `count` elements of `from`, which may be unaligned, to floats. Exact. */
void format_half_to_fp32(float *to, const uint8_t *from, size_t count, const char *half);

#endif
