/*
 * lanes_transpose.h - between samples as lanes and samples one behind the other: part of
 * lanes_impl.h, which alone includes it, once for each instruction set.
 */

#include "backends/transpose.h"

/* v[i][l] <-> v[l][i] */
LANES_INLINE void lanes_transpose(vec v[LANES])
{
    transpose_lanes(v);
}

static void lanes_pack(float *to, const float *from, int64_t n, int64_t count)
{
    const int64_t even = count / LANES * LANES;

    for (int64_t first = 0; first < n; first += LANES, to += count * LANES, from += count * LANES) {
        const int64_t rows = n - first < LANES ? n - first : LANES;

        for (int64_t e = 0; rows == LANES && e < even; e += LANES) {
            vec v[LANES];

            LANES_UNROLL_ALL for (int l = 0; l < LANES; l++) v[l] =
                lanes_load_any(from + l * count + e);
            lanes_transpose(v);
            LANES_UNROLL_ALL for (int l = 0; l < LANES; l++)
                lanes_store(to + (e + l) * LANES, v[l]);
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

            LANES_UNROLL_ALL for (int l = 0; l < LANES; l++) v[l] =
                lanes_load(from + (e + l) * LANES);
            lanes_transpose(v);
            LANES_UNROLL_ALL for (int l = 0; l < LANES; l++)
                lanes_store_any(to + l * count + e, v[l]);
        }
        for (int64_t l = 0; l < rows; l++)
            for (int64_t e = rows == LANES ? even : 0; e < count; e++)
                to[l * count + e] = from[e * LANES + l];
    }
}
