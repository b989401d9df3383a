/*
 * weights.h - a convolution's weight, or its gradient, from blocks of 16 output channels to rows.
 */
#ifndef CO_KERNELS_WEIGHTS_H
#define CO_KERNELS_WEIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#define WEIGHTS_BLOCK 16

#ifdef CO_KERNELS_X86
/* One block, (in / 16, taps, 16 in, 16 out), to rows (16 out, in, taps), or added to them. */
void weights_to_rows_avx512(float *to, const float *from, int64_t in, int64_t taps, bool add);
#endif

#endif
