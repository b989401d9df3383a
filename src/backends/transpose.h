/*
 * transpose.h - a square of numbers in vectors, turned over its diagonal. Included once for each
 * instruction set, by a file that has defined LANES (4, 8 or 16) and a `vec` of so many floats.
 */

/* a's and b's elements whose index lacks the bit, b's moved up by it; or those that have it, a's
   moved down. */
#if LANES == 16
#define TRANSPOSE_LACK_1 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define TRANSPOSE_HAVE_1 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#define TRANSPOSE_LACK_2 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define TRANSPOSE_HAVE_2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define TRANSPOSE_LACK_4 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define TRANSPOSE_HAVE_4 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define TRANSPOSE_LACK_8 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define TRANSPOSE_HAVE_8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#elif LANES == 8
#define TRANSPOSE_LACK_1 0, 8, 2, 10, 4, 12, 6, 14
#define TRANSPOSE_HAVE_1 1, 9, 3, 11, 5, 13, 7, 15
#define TRANSPOSE_LACK_2 0, 1, 8, 9, 4, 5, 12, 13
#define TRANSPOSE_HAVE_2 2, 3, 10, 11, 6, 7, 14, 15
#define TRANSPOSE_LACK_4 0, 1, 2, 3, 8, 9, 10, 11
#define TRANSPOSE_HAVE_4 4, 5, 6, 7, 12, 13, 14, 15
#else
#define TRANSPOSE_LACK_1 0, 4, 2, 6
#define TRANSPOSE_HAVE_1 1, 5, 3, 7
#define TRANSPOSE_LACK_2 0, 1, 4, 5
#define TRANSPOSE_HAVE_2 2, 3, 6, 7
#endif

#ifdef __clang__
#define TRANSPOSE_UNROLL _Pragma("unroll")
#else
#define TRANSPOSE_UNROLL _Pragma("GCC unroll 16")
#endif

#define TRANSPOSE_EXCHANGE(bit)                                                                    \
    TRANSPOSE_UNROLL for (int i = 0; i < LANES; i++) if (!(i & bit))                               \
    {                                                                                              \
        const vec a = v[i], b = v[i + bit];                                                        \
                                                                                                   \
        v[i] = __builtin_shufflevector(a, b, TRANSPOSE_LACK_##bit);                                \
        v[i + bit] = __builtin_shufflevector(a, b, TRANSPOSE_HAVE_##bit);                          \
    }

/* v[i][l] <-> v[l][i] */
static inline __attribute__((always_inline)) void transpose_lanes(vec v[LANES])
{
    TRANSPOSE_EXCHANGE(1)
    TRANSPOSE_EXCHANGE(2)
#if LANES > 4
    TRANSPOSE_EXCHANGE(4)
#endif
#if LANES > 8
    TRANSPOSE_EXCHANGE(8)
#endif
}
