/*
 * types.c - element types and shapes.
 */
#include <assert.h>
#include <cohort/types.h>

#include <inttypes.h>
#include <stdio.h>

static const struct {
    const char *name;
    size_t size;
} types_dtype[CO_DTYPE_COUNT] = {
    [CO_F32] = {"f32", 4}, [CO_F64] = {"f64", 8},   [CO_I32] = {"i32", 4}, [CO_I64] = {"i64", 8},
    [CO_U8] = {"u8", 1},   [CO_BF16] = {"bf16", 2}, [CO_F16] = {"f16", 2},
};

size_t co_dtype_size(co_dtype dtype)
{
    return (unsigned)dtype < CO_DTYPE_COUNT ? types_dtype[dtype].size : 0;
}

const char *co_dtype_name(co_dtype dtype)
{
    return (unsigned)dtype < CO_DTYPE_COUNT ? types_dtype[dtype].name : "unknown";
}

int64_t co_shape_count(const co_shape *shape)
{
    int64_t count = 1;

    assert(shape->ndim >= 0 && shape->ndim <= CO_MAX_DIMS);
    for (int i = 0; i < shape->ndim; i++)
        count *= shape->dim[i];
    return count;
}

char *co_shape_format(char *out, size_t size, const co_shape *shape)
{
    size_t used = (size_t)snprintf(out, size, "(");

    if (shape->ndim < 0 || shape->ndim > CO_MAX_DIMS) { /* as a program has given it */
        snprintf(out, size, "(%d dimensions)", shape->ndim);
        return out;
    }
    for (int i = 0; i < shape->ndim && used < size; i++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%" PRId64, i ? ", " : "", shape->dim[i]);
    if (used < size)
        snprintf(out + used, size - used, ")");
    return out;
}

bool co_shape_equal(const co_shape *a, const co_shape *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}
