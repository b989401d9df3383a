/*
 * update.cu - optimizers over ranges of the store, in one pass, by the values of the step. A step
 * that was found to overflow moves nothing.
 */
#include "kernels/cuda/update.h"

#include "kernels/cuda/grid.h"

static inline size_t update_count(const cuda_update *arg)
{
    return arg->values->found_inf ? 0 : arg->n;
}

KERNEL(update_sgd, cuda_update)
{
    SHARED co_sgd_rates rates;
    const size_t n = update_count(&arg);

    PHASE
        if (THREAD == 0)
            rates = co_sgd_rates_of(&arg.sgd, arg.values, arg.decay);
    EACH (i, n)
        co_sgd_move(arg.param + i, arg.grad[i], &rates);
}

KERNEL(update_sgd_with_velocity, cuda_update)
{
    SHARED co_sgd_rates rates;
    const size_t n = update_count(&arg);

    PHASE
        if (THREAD == 0)
            rates = co_sgd_rates_of(&arg.sgd, arg.values, arg.decay);
    EACH (i, n)
        co_sgd_move_with_velocity(arg.param + i, arg.first + i, arg.grad[i], &rates);
}

KERNEL(update_moments, cuda_update)
{
    SHARED co_moments_rates rates;
    const size_t n = update_count(&arg);

    PHASE
        if (THREAD == 0)
            rates = co_moments_rates_of(arg.beta1, arg.beta2, arg.eps, arg.values, arg.decay,
                                        arg.beside);
    EACH (i, n)
        co_moments_move(arg.param + i, arg.first + i, arg.second + i, arg.grad[i], &rates);
}

KERNEL(update_adadelta, cuda_update)
{
    SHARED co_adadelta_rates rates;
    const size_t n = update_count(&arg);

    PHASE
        if (THREAD == 0)
            rates = co_adadelta_rates_of(&arg.adadelta, arg.values, arg.decay);
    EACH (i, n)
        co_adadelta_move(arg.param + i, arg.first + i, arg.second + i, arg.grad[i], &rates);
}
