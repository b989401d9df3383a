/*
 * update.cu - optimizers over ranges of the store, in one pass, by the values of the step. A step
 * that was found to overflow moves nothing.
 */
#include "kernels/cuda/update.h"

#include "kernels/cuda/grid.h"

#define UPDATE_TILE (8 * CUDA_BLOCK)

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
            rates = co_sgd_rates_of(&arg.sgd, arg.values, arg.missed, arg.decay);
    EACH (i, n)
        co_sgd_move(arg.param + i, arg.grad[i], &rates);
}

KERNEL(update_sgd_with_velocity, cuda_update)
{
    SHARED co_sgd_rates rates;
    const size_t n = update_count(&arg);

    PHASE
        if (THREAD == 0)
            rates = co_sgd_rates_of(&arg.sgd, arg.values, arg.missed, arg.decay);
    EACH (i, n)
        co_sgd_move_with_velocity(arg.param + i, arg.first + i, arg.grad[i], &rates);
}

KERNEL(update_moments, cuda_update)
{
    SHARED co_moments_rates rates;
    const size_t n = update_count(&arg);

    PHASE
        if (THREAD == 0)
            rates = co_moments_rates_of(arg.beta1, arg.beta2, arg.eps, arg.values, arg.missed,
                                        arg.decay, arg.beside);
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

KERNEL(update_lars, cuda_update)
{
    SHARED co_lars_rates rates;
    const size_t n = update_count(&arg);

    PHASE
        if (THREAD == 0)
            rates = co_lars_rates_of(&arg.lars, arg.values, arg.decay, arg.plain, arg.squares[0],
                                     arg.squares[1]);
    EACH (i, n)
        co_lars_move(arg.param + i, arg.first + i, arg.grad[i], &rates);
}

KERNEL(update_lamb_take, cuda_update)
{
    SHARED co_lamb_rates rates;
    const size_t n = update_count(&arg);

    PHASE
        if (THREAD == 0)
            rates =
                co_lamb_rates_of(arg.beta1, arg.beta2, arg.eps, arg.values, arg.missed, arg.decay);
    EACH (i, n)
        co_lamb_take(arg.first + i, arg.second + i, arg.grad[i], &rates);
}

/* One block: the host's eight sums, in its order. */
KERNEL(update_lamb_squares, cuda_update)
{
    SHARED co_lamb_rates rates;
    SHARED double square[UPDATE_TILE], sum[8];

    PHASE {
        if (THREAD == 0)
            rates =
                co_lamb_rates_of(arg.beta1, arg.beta2, arg.eps, arg.values, arg.missed, arg.decay);
        if (THREAD < 8)
            sum[THREAD] = 0;
    }
    for (size_t first = 0; first < arg.n; first += UPDATE_TILE) {
        PHASE
            for (size_t i = THREAD; i < UPDATE_TILE && first + i < arg.n; i += THREADS) {
                const size_t at = first + i;
                const double step =
                    (double)co_lamb_step(arg.param[at], arg.first[at], arg.second[at], &rates);

                square[i] = step * step;
            }
        PHASE
            if (THREAD < 8)
                for (size_t i = THREAD; i < UPDATE_TILE && first + i < arg.n; i += 8)
                    sum[THREAD] += square[i];
    }
    PHASE {
        double all = 0;

        if (THREAD > 0)
            continue;
        for (int k = 0; k < 8; k++)
            all += sum[k];
        arg.squares[1] = all;
    }
}

KERNEL(update_lamb_move, cuda_update)
{
    SHARED co_lamb_rates rates;
    SHARED float rate;
    const size_t n = update_count(&arg);

    PHASE
        if (THREAD == 0) {
            rates =
                co_lamb_rates_of(arg.beta1, arg.beta2, arg.eps, arg.values, arg.missed, arg.decay);
            rate = co_lamb_rate(arg.values, arg.plain, arg.squares[0], arg.squares[1]);
        }
    EACH (i, n)
        arg.param[i] -= rate * co_lamb_step(arg.param[i], arg.first[i], arg.second[i], &rates);
}
