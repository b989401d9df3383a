/*
 * lanes_transpose.h - between samples as lanes and samples one behind the other: part of
 * lanes_impl.h, which alone includes it, once for each instruction set.
 */

/* a's and b's elements whose index lacks the bit, b's moved up by it; or those that have it, a's
   moved down. */
#if LANES == 16
#define LANES_LACK_1 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define LANES_HAVE_1 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31
#define LANES_LACK_2 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define LANES_HAVE_2 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define LANES_LACK_4 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define LANES_HAVE_4 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define LANES_LACK_8 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define LANES_HAVE_8 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#elif LANES == 8
#define LANES_LACK_1 0, 8, 2, 10, 4, 12, 6, 14
#define LANES_HAVE_1 1, 9, 3, 11, 5, 13, 7, 15
#define LANES_LACK_2 0, 1, 8, 9, 4, 5, 12, 13
#define LANES_HAVE_2 2, 3, 10, 11, 6, 7, 14, 15
#define LANES_LACK_4 0, 1, 2, 3, 8, 9, 10, 11
#define LANES_HAVE_4 4, 5, 6, 7, 12, 13, 14, 15
#else
#define LANES_LACK_1 0, 4, 2, 6
#define LANES_HAVE_1 1, 5, 3, 7
#define LANES_LACK_2 0, 1, 4, 5
#define LANES_HAVE_2 2, 3, 6, 7
#endif

#define LANES_EXCHANGE(bit)                                                                        \
    LANES_UNROLL for (int i = 0; i < LANES; i++) if (!(i & bit))                                   \
    {                                                                                              \
        const vec a = v[i], b = v[i + bit];                                                        \
                                                                                                   \
        v[i] = __builtin_shufflevector(a, b, LANES_LACK_##bit);                                    \
        v[i + bit] = __builtin_shufflevector(a, b, LANES_HAVE_##bit);                              \
    }

/* v[i][l] <-> v[l][i] */
LANES_INLINE void lanes_transpose(vec v[LANES])
{
    LANES_EXCHANGE(1)
    LANES_EXCHANGE(2)
#if LANES > 4
    LANES_EXCHANGE(4)
#endif
#if LANES > 8
    LANES_EXCHANGE(8)
#endif
}

static void lanes_pack(float *to, const float *from, int64_t n, int64_t count)
{
    const int64_t even = count / LANES * LANES;

    for (int64_t first = 0; first < n; first += LANES, to += count * LANES, from += count * LANES) {
        const int64_t rows = n - first < LANES ? n - first : LANES;

        for (int64_t e = 0; rows == LANES && e < even; e += LANES) {
            vec v[LANES];

            LANES_UNROLL for (int l = 0; l < LANES; l++) v[l] =
                lanes_load_any(from + l * count + e);
            lanes_transpose(v);
            LANES_UNROLL for (int l = 0; l < LANES; l++) lanes_store(to + (e + l) * LANES, v[l]);
        }
        if (rows < LANES)
            memset(to, 0, (size_t)(count * LANES) * sizeof(float));
        for (int64_t l = 0; l < rows; l++)
            for (int64_t e = rows == LANES ? even : 0; e < count; e++)
                to[e * LANES + l] = from[l * count + e];
    }
}

static void lanes_unpack(float *to, const float *from, int64_t n, int64_t count)
{
    const int64_t even = count / LANES * LANES;

    for (int64_t first = 0; first < n; first += LANES, to += count * LANES, from += count * LANES) {
        const int64_t rows = n - first < LANES ? n - first : LANES;

        for (int64_t e = 0; rows == LANES && e < even; e += LANES) {
            vec v[LANES];

            LANES_UNROLL for (int l = 0; l < LANES; l++) v[l] = lanes_load(from + (e + l) * LANES);
            lanes_transpose(v);
            LANES_UNROLL for (int l = 0; l < LANES; l++) lanes_store_any(to + l * count + e, v[l]);
        }
        for (int64_t l = 0; l < rows; l++)
            for (int64_t e = rows == LANES ? even : 0; e < count; e++)
                to[l * count + e] = from[e * LANES + l];
    }
}
