/*
 * heads.cu - rows of sequences, queries, keys and values among them: put together and rotated.
 * src/backends/ref has the equations.
 */
#include "kernels/cuda/heads.h"

#include <math.h>

#include "kernels/cuda/elements.h"
#include "kernels/cuda/grid.h"

#define TURN 6.28318530717958647692 /* 2 pi */

KERNEL(heads_move, cuda_move)
{
    EACH (i, (size_t)arg.rows * arg.width) {
        const size_t row = i / arg.width, at = i % arg.width;

        element_write(arg.out, arg.at + row * arg.out_step + at, arg.type,
                      element_read(arg.x, arg.x_at + row * arg.step + at, arg.from));
    }
}

KERNEL(heads_pad, cuda_move)
{
    EACH (i, (size_t)arg.rows * arg.out_step) {
        const size_t row = i / arg.out_step, at = i % arg.out_step;

        element_write(arg.out, i, arg.type,
                      at < arg.width ? element_read(arg.x, row * arg.step + at, arg.from) : 0);
    }
}

/* A thread has one angle of a row, for all heads. In double up to the last turn: at late positions
   a float has lost the digits of the angle. */
KERNEL(heads_rotate, cuda_rotate)
{
    const uint32_t size = 2 * arg.half, heads = arg.turned + arg.kept;

    EACH (k, (size_t)arg.rows * arg.half) {
        const uint32_t row = (uint32_t)(k / arg.half), i = (uint32_t)(k % arg.half);
        const double slow = exp2(-(double)i / (double)arg.half * arg.log_theta);
        const double angle = (double)(row % arg.length) * slow;
        const float rest = (float)(angle - TURN * rint(angle / TURN));
        const float c = cosf(rest), s = arg.sign * sinf(rest);

        for (uint32_t h = 0; h < heads; h++) {
            const size_t at = ((size_t)row * heads + h) * size + i;
            const float a = element_read(arg.x, at, arg.type);
            const float b = element_read(arg.x, at + arg.half, arg.type);

            element_write(arg.out, at, arg.type, h < arg.turned ? a * c - b * s : a);
            element_write(arg.out, at + arg.half, arg.type, h < arg.turned ? b * c + a * s : b);
        }
    }
}
