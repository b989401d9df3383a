/*
 * winograd_lines.h - Winograd's transforms (winograd.h) of one row of vectors, for a file that
 * defines WINOGRAD_TILE, and WINOGRAD_SIDE where its kernels are not of 3x3 taps.
 */
#ifndef CO_KERNELS_WINOGRAD_LINES_H
#define CO_KERNELS_WINOGRAD_LINES_H

#include "kernels/winograd/winograd.h"

#ifndef LANES
#define LANES 16
#endif
#include "kernels/simd.h"

/* All lanes, or none. */
#if LANES == 16
typedef __mmask16 winograd_bits;
#define WINOGRAD_ALL 0xffff
#else
typedef bool winograd_bits;
#define WINOGRAD_ALL true
#endif

#ifndef WINOGRAD_SIDE
#define WINOGRAD_SIDE 3
#endif
#define WINOGRAD_TAPS   (WINOGRAD_SIDE * WINOGRAD_SIDE)
#define WINOGRAD_PATCH  (WINOGRAD_TILE + WINOGRAD_SIDE - 1)
#define WINOGRAD_POINTS (WINOGRAD_PATCH * WINOGRAD_PATCH)

/* Their arguments: elements are `by`, `from` or `to` vectors apart.
   b       y = B' x, from a patch to points
   a       y = A' x, from points to outputs
   a_back  y = A x, from gradients of outputs to points
   g       y = G x, from taps to points
   g_back  y = G' x, from points to taps */
#if WINOGRAD_SIDE == 5
#include "kernels/winograd/winograd_lines5.h"
#elif WINOGRAD_TILE == 4
#include "kernels/winograd/winograd_lines4.h"
#else
#include "kernels/winograd/winograd_lines8.h"
#endif

#endif
