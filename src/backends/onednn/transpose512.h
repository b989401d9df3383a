/*
 * transpose512.h - 16 vectors of 16 floats, rows for columns: for files that are compiled for
 * AVX-512.
 */
#ifndef CO_BACKENDS_ONEDNN_TRANSPOSE512_H
#define CO_BACKENDS_ONEDNN_TRANSPOSE512_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
/* With a check at each access, unrolled loops would take the compiler minutes. */
#define LANES_INLINE static
#define LANES_UNROLL
#define LANES_UNROLL_4
#else
#define LANES_INLINE static inline __attribute__((always_inline))
#ifdef __clang__
#define LANES_UNROLL   _Pragma("unroll")
#define LANES_UNROLL_4 _Pragma("unroll 4")
#else
#define LANES_UNROLL   _Pragma("GCC unroll 36")
#define LANES_UNROLL_4 _Pragma("GCC unroll 4")
#endif
#endif

#define LANES 16

typedef float vec __attribute__((vector_size(LANES * sizeof(float)), may_alias));
typedef float loose_vec
    __attribute__((vector_size(LANES * sizeof(float)), may_alias, aligned(sizeof(float))));

/* Elements whose index lacks the bit, b's moved up by it; or those that have it, a's moved down. */
#define LANES_LACK(bit, l) ((l) & (bit) ? LANES + (l) - (bit) : (l))
#define LANES_HAVE(bit, l) ((l) & (bit) ? LANES + (l) : (l) + (bit))
#define LANES_ALL(f, bit)                                                                          \
    f(bit, 0), f(bit, 1), f(bit, 2), f(bit, 3), f(bit, 4), f(bit, 5), f(bit, 6), f(bit, 7),        \
        f(bit, 8), f(bit, 9), f(bit, 10), f(bit, 11), f(bit, 12), f(bit, 13), f(bit, 14),          \
        f(bit, 15)
#define LANES_EXCHANGE(bit)                                                                        \
    LANES_UNROLL for (int i = 0; i < LANES; i++) if (!(i & (bit)))                                 \
    {                                                                                              \
        const vec a = v[i], b = v[i + (bit)];                                                      \
                                                                                                   \
        v[i] = __builtin_shufflevector(a, b, LANES_ALL(LANES_LACK, bit));                          \
        v[i + (bit)] = __builtin_shufflevector(a, b, LANES_ALL(LANES_HAVE, bit));                  \
    }

/* v[i][l] <-> v[l][i] */
LANES_INLINE void lanes_transpose(vec v[LANES])
{
    LANES_EXCHANGE(1)
    LANES_EXCHANGE(2)
    LANES_EXCHANGE(4)
    LANES_EXCHANGE(8)
}

#endif
