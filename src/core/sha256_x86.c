/*
 * sha256_x86.c - SHA-256 by sha256rnds2, which takes two rounds, and sha256msg1 and sha256msg2,
 * which compute four words of the schedule (Intel 64 Software Developer's Manual, volume 2).
 */
#include "core/sha256_x86.h"

#include <immintrin.h>

/* The instructions hold the state as a, b, e, f and c, d, g, h, the first in the highest lane. */
typedef struct sha256_lanes {
    __m128i abef, cdgh;
} sha256_lanes;

static sha256_lanes sha256_load(const uint32_t state[8])
{
    const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xb1);
    const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1b);

    return (sha256_lanes){_mm_alignr_epi8(badc, hgfe, 8), _mm_blend_epi16(hgfe, badc, 0xf0)};
}

static void sha256_store(uint32_t state[8], const sha256_lanes *s)
{
    const __m128i abef = _mm_shuffle_epi32(s->abef, 0x1b);
    const __m128i ghcd = _mm_shuffle_epi32(s->cdgh, 0xb1);

    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(abef, ghcd, 0xf0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(ghcd, abef, 8));
}

/* Words 4 i to 4 i + 3 of the schedule, from the 16 before them. */
static inline __m128i sha256_words(const __m128i w[4], unsigned i)
{
    const __m128i last = w[(i + 3) & 3];
    const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]),
                                      _mm_alignr_epi8(last, w[(i + 2) & 3], 4));

    return _mm_sha256msg2_epu32(sum, last);
}

void co_sha256_mix_x86(uint32_t state[8], const uint8_t *block, size_t n)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    sha256_lanes s = sha256_load(state);

    for (; n > 0; n--, block += 64) {
        const sha256_lanes before = s;
        __m128i w[4];

#pragma GCC unroll 16
        for (unsigned i = 0; i < 16; i++) {
            __m128i sum;

            if (i < 4)
                w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(block + 16 * i)),
                                        big_endian);
            else
                w[i & 3] = sha256_words(w, i);
            sum = _mm_add_epi32(w[i & 3], _mm_loadu_si128((const __m128i *)(co_sha256_k + 4 * i)));
            s.cdgh = _mm_sha256rnds2_epu32(s.cdgh, s.abef, sum);
            s.abef = _mm_sha256rnds2_epu32(s.abef, s.cdgh, _mm_shuffle_epi32(sum, 0x0e));
        }
        s.abef = _mm_add_epi32(s.abef, before.abef);
        s.cdgh = _mm_add_epi32(s.cdgh, before.cdgh);
    }
    sha256_store(state, &s);
}
