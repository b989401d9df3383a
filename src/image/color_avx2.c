/*
 * color_avx2.c - the loops over colours, compiled for vectors of 256 bits.
 */
#include "image/color_impl.h"

const co_color_loops co_color_avx2 = COLOR_LOOPS("AVX2");
