/*
 * color_avx512.c - the loops over colours, compiled for vectors of 512 bits.
 */
#include "image/color_impl.h"

const co_color_loops co_color_avx512 = COLOR_LOOPS("AVX-512");
