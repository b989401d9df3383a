/*
 * color_avx512.c - the colour loops, compiled for 512-bit vectors.
 */
#include "image/color_impl.h"

const co_color_loops co_color_avx512 = COLOR_LOOPS("AVX-512");
