/*
 * embedding.cu - rows of a weight for tokens, and one added to each position: src/backends/ref has
 * the equations. Sums are in the order of the tokens and samples.
 */
#include "kernels/cuda/embedding.h"

#include "kernels/cuda/grid.h"

KERNEL(embedding_rows, cuda_embedding)
{
    EACH (i, (size_t)arg.tokens * arg.size)
        arg.out[i] = arg.x[(size_t)arg.token[i / arg.size] * arg.size + i % arg.size];
}

/* A block takes a row of the weight, and looks for its token among all, as many at once as it has
   threads. */
KERNEL(embedding_backward, cuda_embedding)
{
    SHARED uint32_t found;
    SHARED bool is[CUDA_BLOCK];

    for (uint32_t row = BLOCK; row < arg.vocab; row += BLOCKS) {
        float *out = arg.out + (size_t)row * arg.size;

        PHASE
            for (uint32_t d = THREAD; d < arg.size && !arg.accumulate; d += THREADS)
                out[d] = 0;
        for (uint32_t first = 0; first < arg.tokens; first += THREADS) {
            SYNC();
            PHASE
                if (THREAD == 0)
                    found = 0;
            PHASE {
                const uint32_t i = first + THREAD;

                is[THREAD] = i < arg.tokens && arg.token[i] == (int32_t)row;
                if (is[THREAD])
                    ATOMIC_ADD(&found, 1);
            }
            if (found == 0)
                continue;
            PHASE
                for (uint32_t d = THREAD; d < arg.size; d += THREADS)
                    for (uint32_t i = 0; i < THREADS; i++)
                        if (is[i])
                            out[d] += arg.x[(size_t)(first + i) * arg.size + d];
        }
    }
}

KERNEL(positions_add, cuda_positions)
{
    EACH (i, (size_t)arg.n * arg.count)
        arg.out[i] = arg.x[i] + arg.weight[i % arg.count];
}

KERNEL(positions_backward, cuda_positions)
{
    EACH (i, arg.rows) {
        float sum = 0;

        for (uint32_t n = 0; n < arg.n && i < arg.count; n++)
            sum += arg.x[(size_t)n * arg.count + i];
        arg.out[i] = (arg.accumulate ? arg.out[i] : 0) + sum;
    }
}
