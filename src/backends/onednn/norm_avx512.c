/* norm_avx512.c - batch norm's loops on 16 channels at once, for AVX-512. */
#include <immintrin.h>

#include "backends/onednn/norm.h"

#define LANES      16
#define NORM_TABLE norm_loops_avx512

#include "backends/onednn/norm_float.h"
#include "backends/onednn/norm_mask512.h"

#include "backends/onednn/norm_impl.h"
