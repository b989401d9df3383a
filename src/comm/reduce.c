/*
 * reduce.c - the loops of SUM, PROD, MIN, MAX and AVG for every element type.
 *
 * One plain loop per type and operation, which the compiler vectorizes. Integers wrap: they are
 * added and multiplied as unsigned, which C defines. Half precision is computed in fp32, and each
 * result rounded.
 */
#include "comm/reduce.h"
#include "core/half.h"

/* Vectorize at any optimization level. Baseline vectors are enough: sums are limited by memory
   bandwidth, so wider ones were no faster. */
#if defined(__GNUC__) && !defined(__clang__)
#define REDUCE_LOOP __attribute__((optimize("O3")))
#else
#define REDUCE_LOOP
#endif

typedef void (*reduce_fn)(void *out, const void *a, const void *b, size_t n);
typedef void (*reduce_divide_fn)(void *data, size_t n, int ranks);

typedef float reduce_f32;
typedef double reduce_f64;
typedef int32_t reduce_i32;
typedef int64_t reduce_i64;
typedef uint8_t reduce_u8;

#define REDUCE_FUNCTION(op, tag, expression)                                                       \
    REDUCE_LOOP static void reduce_##op##_##tag(void *out, const void *a, const void *b, size_t n) \
    {                                                                                              \
        const reduce_##tag *x = a, *y = b;                                                         \
        reduce_##tag *z = out;                                                                     \
                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            z[i] = (reduce_##tag)(expression);                                                     \
    }

#define REDUCE_TYPE(tag, wide, number)                                                             \
    REDUCE_FUNCTION(sum, tag, (wide)x[i] + (wide)y[i])                                             \
    REDUCE_FUNCTION(prod, tag, (wide)x[i] * (wide)y[i])                                            \
    REDUCE_FUNCTION(min, tag, x[i] < y[i] ? x[i] : y[i])                                           \
    REDUCE_FUNCTION(max, tag, x[i] > y[i] ? x[i] : y[i])                                           \
    REDUCE_LOOP static void reduce_divide_##tag(void *data, size_t n, int ranks)                   \
    {                                                                                              \
        const number divisor = (number)ranks;                                                      \
        reduce_##tag *z = data;                                                                    \
                                                                                                   \
        for (size_t i = 0; i < n; i++)                                                             \
            z[i] = (reduce_##tag)(z[i] / divisor);                                                 \
    }

/* Arguments: type, type for sums and products, type for the division by the number of ranks. */
REDUCE_TYPE(f32, float, float)
REDUCE_TYPE(f64, double, double)
REDUCE_TYPE(i32, uint32_t, int32_t)
REDUCE_TYPE(i64, uint64_t, int64_t)
REDUCE_TYPE(u8, uint32_t, int32_t)

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

#define REDUCE_HALF_BLOCK ((size_t)512)

/* Half precision, converted to fp32 a block at a time. */
static void reduce_half(uint16_t *out, const uint16_t *a, const uint16_t *b, size_t n,
                        co_dtype dtype, co_reduce_op op)
{
    float x[REDUCE_HALF_BLOCK], y[REDUCE_HALF_BLOCK];

    for (size_t i = 0; i < n; i += REDUCE_HALF_BLOCK) {
        const size_t part = n - i < REDUCE_HALF_BLOCK ? n - i : REDUCE_HALF_BLOCK;

        co_half_widen(x, a + i, part, dtype);
        co_half_widen(y, b + i, part, dtype);
        reduce_table[op][CO_F32](x, x, y, part);
        co_half_round(out + i, x, part, dtype);
    }
}

static void reduce_half_divide(uint16_t *data, size_t n, co_dtype dtype, int ranks)
{
    float x[REDUCE_HALF_BLOCK];

    for (size_t i = 0; i < n; i += REDUCE_HALF_BLOCK) {
        const size_t part = n - i < REDUCE_HALF_BLOCK ? n - i : REDUCE_HALF_BLOCK;

        co_half_widen(x, data + i, part, dtype);
        reduce_divide_f32(x, part, ranks);
        co_half_round(data + i, x, part, dtype);
    }
}

void co_reduce_pair(void *out, const void *a, const void *b, size_t n, co_dtype dtype,
                    co_reduce_op op)
{
    if (co_dtype_is_half(dtype))
        reduce_half(out, a, b, n, dtype, op);
    else
        reduce_table[op][dtype](out, a, b, n);
}

static void reduce_half_all(uint16_t *out, const void *const *source, int k, size_t n,
                            co_dtype dtype, co_reduce_op op)
{
    float x[REDUCE_HALF_BLOCK], y[REDUCE_HALF_BLOCK];

    for (size_t i = 0; i < n; i += REDUCE_HALF_BLOCK) {
        const size_t part = n - i < REDUCE_HALF_BLOCK ? n - i : REDUCE_HALF_BLOCK;

        co_half_widen(x, (const uint16_t *)source[0] + i, part, dtype);
        for (int s = 1; s < k; s++) {
            co_half_widen(y, (const uint16_t *)source[s] + i, part, dtype);
            reduce_table[op][CO_F32](x, x, y, part);
        }
        co_half_round(out + i, x, part, dtype);
    }
}

void co_reduce_all(void *out, const void *const *source, int k, size_t n, co_dtype dtype,
                   co_reduce_op op)
{
    if (co_dtype_is_half(dtype)) {
        reduce_half_all(out, source, k, n, dtype, op);
        return;
    }
    co_reduce_pair(out, source[0], source[1], n, dtype, op);
    for (int s = 2; s < k; s++)
        co_reduce_pair(out, out, source[s], n, dtype, op);
}

void co_reduce_divide(void *data, size_t n, co_dtype dtype, int ranks)
{
    if (co_dtype_is_half(dtype))
        reduce_half_divide(data, n, dtype, ranks);
    else
        reduce_divide_table[dtype](data, n, ranks);
}
