/*
 * winograd3_lines.h - Winograd's transforms (winograd3.h) of one row of vectors, for a file that
 * defines WINOGRAD3_TILE.
 */
#ifndef CO_KERNELS_WINOGRAD3_LINES_H
#define CO_KERNELS_WINOGRAD3_LINES_H

#include "kernels/winograd3/winograd3.h"

#ifndef LANES
#define LANES 16
#endif
#include "kernels/simd.h"

/* All lanes, or none. */
#if LANES == 16
typedef __mmask16 winograd3_bits;
#define WINOGRAD3_ALL 0xffff
#else
typedef bool winograd3_bits;
#define WINOGRAD3_ALL true
#endif

#define WINOGRAD3_PATCH  (WINOGRAD3_TILE + 2)
#define WINOGRAD3_POINTS (WINOGRAD3_PATCH * WINOGRAD3_PATCH)

/* Their arguments: elements are `by`, `from` or `to` vectors apart.
   b       y = B' x, from a patch to points
   a       y = A' x, from points to outputs
   a_back  y = A x, from gradients of outputs to points
   g       y = G x, from taps to points
   g_back  y = G' x, from points to taps */
#if WINOGRAD3_TILE == 4
#include "kernels/winograd3/winograd3_lines4.h"
#else
#include "kernels/winograd3/winograd3_lines8.h"
#endif

#endif
