/* vector_avx2.c - the loops of ext/vector.h with vectors of 256 bits: AVX2. */
#define VECTOR_TABLE co_vector_avx2
#define VECTOR_NAME  "AVX2"
#define VECTOR_HALF  co_half_avx2

#include "tensor/vector_impl.h"
