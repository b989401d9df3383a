/* gemm_neon.c - the loops of gemm.h for NEON. */
#define LANES      4
#define GEMM_N     6
#define GEMM_ROWS  14
#define GEMM_TABLE gemm_loops_neon
#define GEMM_NAME  "dense:neon"

#include "kernels/simd.h"

typedef vec gemm_four;

static inline gemm_four gemm_join(const vec *v)
{
    vec t[LANES] = {v[0], v[1], v[2], v[3]};

    simd_transpose(t);
    return (t[0] + t[1]) + (t[2] + t[3]);
}

#include "kernels/gemm/gemm_impl.h"
