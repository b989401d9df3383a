/*
 * dropout_impl.h - the loops of dropout.h for LANES lanes. Included once for each level of
 * instructions, by a file that defines LANES and DROPOUT_TABLE.
 */
#include "kernels/dropout/dropout.h"
#include "kernels/simd_random.h"

SIMD_INLINE vec dropout_choose(vec x, uvec word, uint32_t below, float scale)
{
    return simd_select((ivec)((word >> 8) < below), simd_splat(0), x * scale);
}

static void dropout_rows(float *y, const float *x, int64_t n, const co_rng *rng, uint32_t below,
                         float scale)
{
    uint32_t block = 0;
    uvec word[4];

    for (; n >= SIMD_RANDOM_WORDS; n -= SIMD_RANDOM_WORDS, block += LANES) {
        simd_random_words(word, rng, block);
        SIMD_UNROLL(4)
        for (int i = 0; i < 4; i++)
            simd_store_any(y + i * LANES,
                           dropout_choose(simd_load_any(x + i * LANES), word[i], below, scale));
        y += SIMD_RANDOM_WORDS;
        x += SIMD_RANDOM_WORDS;
    }
    if (n > 0)
        simd_random_words(word, rng, block);
    for (int i = 0; n > 0; i++, n -= LANES, y += LANES, x += LANES) {
        const int64_t some = n < LANES ? n : LANES;

        simd_store_some(y, dropout_choose(simd_load_some(x, some), word[i], below, scale), some);
    }
}

const dropout_loops DROPOUT_TABLE = {
    .rows = dropout_rows,
};
