/*
 * direct_conv_unpack.h - gradients of weights from blocks of inputs by outputs to the format of the
 * store: a part of direct_conv.h's loops that two files share.
 */
SIMD_INLINE void direct_conv_store_square(float *to, vec v[LANES], int64_t row, int64_t rows,
                                          int64_t n, bool add)
{
    for (int64_t l = 0; l < rows; l++) {
        float some[LANES];

        if (n == LANES) {
            if (add)
                v[l] += simd_load_any(to + l * row);
            simd_store_any(to + l * row, v[l]);
            continue;
        }
        simd_store_any(some, v[l]);
        for (int64_t i = 0; i < n; i++)
            to[l * row + i] = add ? to[l * row + i] + some[i] : some[i];
    }
}

static void direct_conv_unpack_rows(float *weight, const float *from,
                                    const direct_conv_weight *shape, int64_t first, bool add)
{
    const int64_t row = shape->in * shape->taps;
    const int64_t rows = direct_conv_least(LANES, shape->out - first);
    direct_conv_place at = {0, 0};

    for (int64_t e = 0; e < row; e += LANES) {
        const int64_t n = direct_conv_least(LANES, row - e);
        vec v[LANES];

        for (int64_t l = 0; l < LANES; l++)
            v[l] = l < n ? simd_load(from + direct_conv_next(&at, shape)) : (vec){0};
        simd_transpose(v);
        direct_conv_store_square(weight + first * row + e, v, row, rows, n, add);
    }
}

static void direct_conv_unpack(float *weight, const float *from, const direct_conv_weight *shape,
                               int64_t k, bool add)
{
    for (int64_t h = 0; h < DIRECT_CONV_BLOCK; h += LANES)
        direct_conv_unpack_rows(weight, from + h, shape, k * DIRECT_CONV_BLOCK + h, add);
}
