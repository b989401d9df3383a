/*
 * sample_lanes_pack.h - converts between row-major samples and samples in lanes. Included only by
 * sample_lanes_impl.h, once per instruction set.
 */

static void lanes_pack(float *to, const float *from, int64_t n, int64_t count)
{
    const int64_t even = count / LANES * LANES;

    for (int64_t first = 0; first < n; first += LANES, to += count * LANES, from += count * LANES) {
        const int64_t rows = n - first < LANES ? n - first : LANES;

        for (int64_t e = 0; rows == LANES && e < even; e += LANES) {
            vec v[LANES];

            SIMD_UNROLL(16)
            for (int l = 0; l < LANES; l++)
                v[l] = simd_load_any(from + l * count + e);
            simd_transpose(v);
            SIMD_UNROLL(16) for (int l = 0; l < LANES; l++) simd_store(to + (e + l) * LANES, v[l]);
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

            SIMD_UNROLL(16)
            for (int l = 0; l < LANES; l++)
                v[l] = simd_load(from + (e + l) * LANES);
            simd_transpose(v);
            SIMD_UNROLL(16)
            for (int l = 0; l < LANES; l++)
                simd_store_any(to + l * count + e, v[l]);
        }
        for (int64_t l = 0; l < rows; l++)
            for (int64_t e = rows == LANES ? even : 0; e < count; e++)
                to[l * count + e] = from[e * LANES + l];
    }
}
