/* roof.cu - loops that only multiply and add, or only move bytes, to be timed. */
#include "kernels/cuda/roof.h"

#include "kernels/cuda/grid.h"

KERNEL(roof_draw, cuda_roof_draw)
{
    EACH (i, arg.n) {
        const uint32_t mixed = (uint32_t)i * 2654435761u;

        arg.word[i] = 0x3c003c00u | ((mixed ^ mixed >> 15) & 0x83ff83ffu);
    }
}

KERNEL(roof_triad, cuda_roof_triad)
{
    EACH (i, arg.n) {
        const cuda_four b = arg.b[i], c = arg.c[i];
        cuda_four a;

        for (int k = 0; k < 4; k++)
            a.x[k] = b.x[k] + arg.s * c.x[k];
        arg.a[i] = a;
    }
}

KERNEL(roof_multiply_add, cuda_roof_multiply_add)
{
    PHASE {
        const size_t at = (size_t)BLOCK * THREADS + THREAD;
        float x[CUDA_ROOF_CHAINS];
        float sum = 0;

        for (int k = 0; k < CUDA_ROOF_CHAINS; k++)
            x[k] = arg.inout[at] + (float)k;
        for (uint32_t round = 0; round < arg.rounds; round++)
            for (int k = 0; k < CUDA_ROOF_CHAINS; k++)
                x[k] = FMA(x[k], arg.factor, arg.summand);
        for (int k = 0; k < CUDA_ROOF_CHAINS; k++)
            sum += x[k];
        arg.inout[at] = sum;
    }
}
