/* cases.c - test data, and expected results in whole-number arithmetic. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/cases.h"
#include "core/half.h"

#define CASES_BLANK 77

bool comm_case_fault(const char *file, int line, const char *what)
{
    fprintf(stderr, "%s:%d: not so: %s (last error: %s)\n", file, line, what, co_error_message());
    return false;
}

bool comm_shares_memory(const co_comm *comm)
{
    const char *text = getenv("COHORT_RANKS_PER_HOST");
    const int size = co_comm_size(comm), each = text ? atoi(text) : size;

    return strcmp(co_comm_transport(comm), "mpi") != 0 || each >= size;
}

int64_t comm_value(co_dtype dtype, int rank, size_t i)
{
    const int64_t v = ((uint32_t)i * 2654435761u + (uint32_t)rank * 1234567891u) >> 29;

    return dtype == CO_U8 ? v : v - 4;
}

static bool cases_is_half(co_dtype dtype)
{
    return dtype == CO_BF16 || dtype == CO_F16;
}

static uint16_t cases_round(co_dtype dtype, double value)
{
    const float wide = (float)value;
    uint16_t bits;

    co_half_round(&bits, &wide, 1, dtype);
    return bits;
}

static double cases_widen(co_dtype dtype, uint16_t bits)
{
    float wide;

    co_half_widen(&wide, &bits, 1, dtype);
    return (double)wide;
}

static void cases_store(void *data, co_dtype dtype, size_t i, int64_t value)
{
    switch (dtype) {
    case CO_F32:
        ((float *)data)[i] = (float)value;
        break;
    case CO_F64:
        ((double *)data)[i] = (double)value;
        break;
    case CO_I32:
        ((int32_t *)data)[i] = (int32_t)value;
        break;
    case CO_I64:
        ((int64_t *)data)[i] = value;
        break;
    case CO_BF16:
    case CO_F16:
        ((uint16_t *)data)[i] = cases_round(dtype, (double)value);
        break;
    default:
        ((uint8_t *)data)[i] = (uint8_t)value;
    }
}

static double cases_load(const void *data, co_dtype dtype, size_t i)
{
    switch (dtype) {
    case CO_F32:
        return (double)((const float *)data)[i];
    case CO_F64:
        return ((const double *)data)[i];
    case CO_I32:
        return ((const int32_t *)data)[i];
    case CO_I64:
        return (double)((const int64_t *)data)[i];
    case CO_BF16:
    case CO_F16:
        return cases_widen(dtype, ((const uint16_t *)data)[i]);
    default:
        return ((const uint8_t *)data)[i];
    }
}

static void *cases_allocate(co_dtype dtype, size_t count)
{
    void *data = malloc(count * co_dtype_size(dtype) + 1);

    if (!data) {
        fprintf(stderr, "out of memory\n");
        abort();
    }
    return data;
}

void *comm_data(co_dtype dtype, int rank, size_t begin, size_t count)
{
    void *data = cases_allocate(dtype, count);

    for (size_t i = 0; i < count; i++)
        cases_store(data, dtype, i, comm_value(dtype, rank, begin + i));
    return data;
}

void *comm_blank(co_dtype dtype, size_t count)
{
    void *data = cases_allocate(dtype, count);

    for (size_t i = 0; i < count; i++)
        cases_store(data, dtype, i, CASES_BLANK);
    return data;
}

void comm_free(void *data)
{
    free(data);
}

bool comm_is_data(const void *data, co_dtype dtype, int rank, size_t begin, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cases_load(data, dtype, i) != (double)comm_value(dtype, rank, begin + i))
            return false;
    return true;
}

bool comm_is_blank(const void *data, co_dtype dtype, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cases_load(data, dtype, i) != CASES_BLANK)
            return false;
    return true;
}

static double cases_average(co_dtype dtype, int64_t sum, int ranks)
{
    if (dtype == CO_F32)
        return (double)((float)sum / (float)ranks);
    if (dtype == CO_F64)
        return (double)sum / ranks;
    if (cases_is_half(dtype))
        return cases_widen(dtype, cases_round(dtype, (double)((float)sum / (float)ranks)));
    return (double)(sum / ranks);
}

static double cases_combined(co_dtype dtype, co_reduce_op op, int ranks, size_t i)
{
    int64_t result = comm_value(dtype, 0, i);

    for (int r = 1; r < ranks; r++) {
        const int64_t v = comm_value(dtype, r, i);

        if (op == CO_PROD)
            result *= v;
        else if (op == CO_MIN)
            result = v < result ? v : result;
        else if (op == CO_MAX)
            result = v > result ? v : result;
        else
            result += v;
    }
    if (op == CO_AVG)
        return cases_average(dtype, result, ranks);
    return dtype == CO_U8 ? (double)(uint8_t)result : (double)result;
}

bool comm_is_combined(const void *data, co_dtype dtype, co_reduce_op op, int ranks, size_t begin,
                      size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (cases_load(data, dtype, i) != cases_combined(dtype, op, ranks, begin + i))
            return false;
    return true;
}
