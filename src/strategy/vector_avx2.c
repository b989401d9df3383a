/* vector_avx2.c - the loops of vector.h with vectors of 256 bits: AVX2. */
#define VECTOR_TABLE co_vector_avx2
#define VECTOR_NAME  "AVX2"

#include "strategy/vector_impl.h"
