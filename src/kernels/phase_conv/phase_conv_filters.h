/*
 * phase_conv_filters.h - Winograd's transforms of the filters of phase_conv.h, and the table of
 * loops: a part of phase_conv_impl.h.
 */

/* Where tap (i, j) of an input, a channel and a phase, is in a weight; -1 after its kernel. */
SIMD_INLINE int64_t phase_conv_find_tap(const phase_conv_weight *shape, int64_t input, int64_t i,
                                        int64_t j)
{
    const int64_t s = shape->stride, k = shape->kernel, phase = input % (s * s);
    const int64_t row = i * s + phase / s, column = j * s + phase % s;

    return row < k && column < k ? (input / (s * s) * k * k + row * k + column) * LANES : -1;
}

SIMD_INLINE void phase_conv_transform_filter(float *u, const float *weight,
                                             const phase_conv_weight *shape, int64_t input,
                                             const int r)
{
    const int n = r + 3;
    vec half[PHASE_CONV_MOST_TAPS * PHASE_CONV_MOST_POINTS];

    for (int i = 0; i < r; i++) {
        vec in[PHASE_CONV_MOST_TAPS];

        for (int j = 0; j < r; j++) {
            const int64_t at = phase_conv_find_tap(shape, input, i, j);

            in[j] = at < 0 ? (vec){0} : simd_load(weight + at);
        }
        simd_winograd_g(half + i * n, 1, in, 1, r);
    }
    for (int i = 0; i < n; i++) {
        vec out[PHASE_CONV_MOST_POINTS];

        simd_winograd_g(out, 1, half + i, n, r);
        for (int p = 0; p < n; p++)
            simd_store(u + (p * n + i) * shape->apart, out[p]);
    }
}

static void phase_conv_filter_transform(float *u, const float *weight,
                                        const phase_conv_weight *shape)
{
    for (int64_t d = 0; d < shape->depth; d++)
        PHASE_CONV_FOR_TAPS(shape->taps,
                            phase_conv_transform_filter(u + d * LANES, weight, shape, d, r));
}

SIMD_INLINE void phase_conv_find_filter(float *weight, const float *du,
                                        const phase_conv_weight *shape, int64_t input, const int r)
{
    const int n = r + 3;
    vec half[PHASE_CONV_MOST_TAPS * PHASE_CONV_MOST_POINTS];

    for (int i = 0; i < n; i++) {
        vec in[PHASE_CONV_MOST_POINTS];

        for (int p = 0; p < n; p++)
            in[p] = simd_load(du + (p * n + i) * shape->apart);
        simd_winograd_g_back(half + i, n, in, 1, r);
    }
    for (int i = 0; i < r; i++) {
        vec out[PHASE_CONV_MOST_TAPS];

        simd_winograd_g_back(out, 1, half + i * n, 1, r);
        for (int j = 0; j < r; j++) {
            const int64_t at = phase_conv_find_tap(shape, input, i, j);

            if (at >= 0)
                simd_store(weight + at, out[j]);
        }
    }
}

static void phase_conv_filter_gradient(float *weight, const float *du,
                                       const phase_conv_weight *shape)
{
    for (int64_t d = 0; d < shape->depth; d++)
        PHASE_CONV_FOR_TAPS(shape->taps,
                            phase_conv_find_filter(weight, du + d * LANES, shape, d, r));
}

const phase_conv_loops PHASE_CONV_TABLE = {
    .name = PHASE_CONV_NAME,
    .lanes = LANES,
    .cell = sizeof(cell),
    .split = phase_conv_split,
    .input_transform = phase_conv_input_transform,
    .output_transform = phase_conv_output_transform,
    .gradient_transform = phase_conv_gradient_transform,
    .multiply = phase_conv_multiply,
    .correlate = phase_conv_correlate,
    .filter_transform = phase_conv_filter_transform,
    .filter_gradient = phase_conv_filter_gradient,
};
