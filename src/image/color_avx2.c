/*
 * color_avx2.c - the colour loops, compiled for 256-bit vectors.
 */
#include "image/color_impl.h"

const co_color_loops co_color_avx2 = COLOR_LOOPS("AVX2");
