/*
 * squares.cu - sums of squares: those of whole blocks of elements, added up from first to last,
 * with the bits of the host; and one for a figure that is shown.
 */
#include "kernels/cuda/grid.h"
#include "kernels/cuda/vector.h"

#define SUMS  CUDA_SQUARES_SUMS
#define PARTS CUDA_BLOCK /* CO_VECTOR_PARTS */

static inline double squares_of(const cuda_squares *arg, size_t i)
{
    const double used = arg->rule ? co_grad_use(arg->x[i], *arg->rule) : arg->x[i];

    return used * used;
}

/* Sum k of the block at `begin`. */
static inline double squares_sum(const cuda_squares *arg, size_t begin, uint32_t k)
{
    const size_t rest = arg->n - begin, whole = arg->n / SUMS * SUMS;
    const size_t end = rest < CUDA_SQUARES ? arg->n : begin + CUDA_SQUARES;
    double sum = 0;

    for (size_t i = begin + k; i < end && i < whole; i += SUMS)
        sum += squares_of(arg, i);
    for (size_t i = whole; i < end && k == 0; i++)
        sum += squares_of(arg, i);
    return sum;
}

/* Of each block; eight threads share one. */
KERNEL(squares_blocks, cuda_squares)
{
    SHARED double sum[CUDA_BLOCK];
    const size_t blocks = (arg.n + CUDA_SQUARES - 1) / CUDA_SQUARES, each = CUDA_BLOCK / SUMS;

    for (size_t first = BLOCK * each; first < blocks; first += BLOCKS * each) {
        PHASE {
            const size_t b = first + THREAD / SUMS;

            sum[THREAD] = b < blocks ? squares_sum(&arg, b * CUDA_SQUARES, THREAD % SUMS) : 0;
        }
        PHASE {
            double all = 0;

            if (THREAD % SUMS > 0 || first + THREAD / SUMS >= blocks)
                continue;
            for (uint32_t k = 0; k < SUMS; k++)
                all += sum[THREAD + k];
            arg.out[first + THREAD / SUMS] = all;
        }
    }
}

/* One block: the sum of the parts (n), from first to last; `more`: after what is there. */
KERNEL(squares_add, cuda_squares)
{
    SHARED double tile[CUDA_BLOCK], all;

    PHASE
        if (THREAD == 0)
            all = arg.more ? *arg.out : 0;
    for (size_t first = 0; first < arg.n; first += CUDA_BLOCK) {
        PHASE
            if (first + THREAD < arg.n)
                tile[THREAD] = arg.part[first + THREAD];
        PHASE
            for (size_t i = 0; i < CUDA_BLOCK && first + i < arg.n && THREAD == 0; i++)
                all += tile[i];
    }
    PHASE
        if (THREAD == 0)
            *arg.out = all;
}

/* ---- for a figure ---- */

/* Of a whole block: tile[0] becomes the sum. */
static inline void squares_join_tile(double *tile)
{
    for (uint32_t half = CUDA_BLOCK / 2; half > 0; half /= 2)
        PHASE
            if (THREAD < half)
                tile[THREAD] += tile[THREAD + half];
}

/* Part p has every PARTS-th run of CUDA_BLOCK elements, from run p on. */
KERNEL(squares_parts, cuda_squares)
{
    SHARED double tile[CUDA_BLOCK];
    const size_t step = (size_t)PARTS * THREADS;

    for (uint32_t p = BLOCK; p < PARTS; p += BLOCKS) {
        PHASE {
            double sum = 0;

            for (size_t i = (size_t)p * THREADS + THREAD; i < arg.n; i += step)
                sum += squares_of(&arg, i);
            tile[THREAD] = sum;
        }
        squares_join_tile(tile);
        PHASE
            if (THREAD == 0)
                arg.out[p] = tile[0];
    }
}

KERNEL(squares_join, cuda_squares)
{
    SHARED double tile[CUDA_BLOCK];

    PHASE
        tile[THREAD] = arg.part[THREAD];
    squares_join_tile(tile);
    PHASE
        if (THREAD == 0)
            *arg.out = tile[0];
}
