/*
 * reduce.c - the loops of SUM, PROD, MIN, MAX and AVG for every element type.
 *
 * One plain loop per type and operation, which the compiler turns into vector code. Integers
 * wrap around: they are added and multiplied as unsigned, where C defines that.
 */
#include "comm/reduce.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) &&                             \
    !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
/* One binary for every machine: the loader chooses. Sanitizers are not ready when it does. */
#define REDUCE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define REDUCE_CLONES
#endif

#if defined(__GNUC__) && !defined(__clang__)
#define REDUCE_LOOP __attribute__((optimize("O3"))) REDUCE_CLONES
#else
#define REDUCE_LOOP REDUCE_CLONES
#endif

typedef void (*reduce_fn)(void *out, const void *a, const void *b, size_t n);
typedef void (*reduce_divide_fn)(void *data, size_t n, int ranks);

#define REDUCE_FUNCTION(name, type, expression)                                                    \
    REDUCE_LOOP static void reduce_##name(void *out, const void *a, const void *b, size_t n)       \
    {                                                                                              \
        const type *x = a, *y = b;                                                                 \
        type *z = out;                                                                             \
                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            z[i] = (type)(expression);                                                             \
    }

#define REDUCE_TYPE(tag, type, wide)                                                               \
    REDUCE_FUNCTION(sum_##tag, type, (wide)x[i] + (wide)y[i])                                      \
    REDUCE_FUNCTION(prod_##tag, type, (wide)x[i] * (wide)y[i])                                     \
    REDUCE_FUNCTION(min_##tag, type, x[i] < y[i] ? x[i] : y[i])                                    \
    REDUCE_FUNCTION(max_##tag, type, x[i] > y[i] ? x[i] : y[i])                                    \
    REDUCE_LOOP static void reduce_divide_##tag(void *data, size_t n, int ranks)                   \
    {                                                                                              \
        type *z = data;                                                                            \
                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            z[i] = (type)(z[i] / (type)ranks);                                                     \
    }

REDUCE_TYPE(f32, float, float)
REDUCE_TYPE(f64, double, double)
REDUCE_TYPE(i32, int32_t, uint32_t)
REDUCE_TYPE(i64, int64_t, uint64_t)
REDUCE_TYPE(u8, uint8_t, uint32_t)

#define REDUCE_ROW(op)                                                                             \
    {                                                                                              \
        [CO_F32] = reduce_##op##_f32, [CO_F64] = reduce_##op##_f64, [CO_I32] = reduce_##op##_i32,  \
        [CO_I64] = reduce_##op##_i64, [CO_U8] = reduce_##op##_u8                                   \
    }

static const reduce_fn reduce_table[CO_REDUCE_OP_COUNT][CO_DTYPE_COUNT] = {
    [CO_SUM] = REDUCE_ROW(sum), [CO_PROD] = REDUCE_ROW(prod), [CO_MIN] = REDUCE_ROW(min),
    [CO_MAX] = REDUCE_ROW(max), [CO_AVG] = REDUCE_ROW(sum),
};

static const reduce_divide_fn reduce_divide_table[CO_DTYPE_COUNT] = REDUCE_ROW(divide);

void co_reduce_pair(void *out, const void *a, const void *b, size_t n, co_dtype dtype,
                    co_reduce_op op)
{
    reduce_table[op][dtype](out, a, b, n);
}

void co_reduce_divide(void *data, size_t n, co_dtype dtype, int ranks)
{
    reduce_divide_table[dtype](data, n, ranks);
}
