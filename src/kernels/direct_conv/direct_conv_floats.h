/*
 * direct_conv_floats.h - weights of floats for blocks of LANES channels: a part of direct_conv.h's
 * loops for those that multiply floats.
 */
static void direct_conv_turn(float *to, const float *from)
{
    vec v[LANES];

    SIMD_UNROLL(16)
    for (int l = 0; l < LANES; l++)
        v[l] = simd_load(from + l * LANES);
    simd_transpose(v);
    SIMD_UNROLL(16)
    for (int l = 0; l < LANES; l++)
        simd_store(to + l * LANES, v[l]);
}
