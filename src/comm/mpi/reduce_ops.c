/*
 * reduce_ops.c - the MPI operations that combine elements.
 *
 * MPI has operations for C's types. For half precision it calls our own loops; such a function gets
 * only the data, so there is one for each type and operation.
 */
#include "comm/mpi/internal.h"
#include "comm/reduce.h"
#include "core/half.h"

#define OP_FUNCTION(name, dtype, op)                                                               \
    static void op_##name(void *in, void *inout, int *n, void *type)                               \
    {                                                                                              \
        (void)type;                                                                                \
        co_reduce_pair(inout, in, inout, (size_t)*n, dtype, op);                                   \
    }

OP_FUNCTION(sum_bf16, CO_BF16, CO_SUM)
OP_FUNCTION(prod_bf16, CO_BF16, CO_PROD)
OP_FUNCTION(min_bf16, CO_BF16, CO_MIN)
OP_FUNCTION(max_bf16, CO_BF16, CO_MAX)
OP_FUNCTION(sum_f16, CO_F16, CO_SUM)
OP_FUNCTION(prod_f16, CO_F16, CO_PROD)
OP_FUNCTION(min_f16, CO_F16, CO_MIN)
OP_FUNCTION(max_f16, CO_F16, CO_MAX)

co_status co_mpi_ops_create(mpi_comm *c)
{
    static mpi_combine *const function[2][CO_REDUCE_OP_COUNT] = {
        {[CO_SUM] = op_sum_bf16,
         [CO_PROD] = op_prod_bf16,
         [CO_MIN] = op_min_bf16,
         [CO_MAX] = op_max_bf16,
         [CO_AVG] = op_sum_bf16},
        {[CO_SUM] = op_sum_f16,
         [CO_PROD] = op_prod_f16,
         [CO_MIN] = op_min_f16,
         [CO_MAX] = op_max_f16,
         [CO_AVG] = op_sum_f16},
    };

    for (int half = 0; half < 2; half++)
        for (int op = 0; op < CO_REDUCE_OP_COUNT; op++)
            CO_TRY(co_mpi_check(co_mpi->op_create(function[half][op], &c->half[half][op]),
                                "making an operation"));
    return CO_OK;
}

void co_mpi_ops_free(mpi_comm *c)
{
    for (int half = 0; half < 2; half++)
        for (int op = 0; op < CO_REDUCE_OP_COUNT; op++)
            co_mpi->op_free(&c->half[half][op]);
}

mpi_operator co_mpi_op(const mpi_comm *c, co_dtype dtype, co_reduce_op op)
{
    if (co_dtype_is_half(dtype))
        return c->half[dtype == CO_F16][op];
    switch (op) {
    case CO_PROD:
        return co_mpi->prod;
    case CO_MIN:
        return co_mpi->min;
    case CO_MAX:
        return co_mpi->max;
    default:
        return co_mpi->sum;
    }
}
