/*
 * direct_conv_turned.h - the copy of direct_conv_tiles.h in which each channel of an image is a
 * line of pixels: the rows of a tile, where sums are over pixels.
 */

/* Of 2 LANES pixels, to a line of LANES pairs for each channel. */
#ifdef __AVX512BW__
SIMD_INLINE __m512i direct_conv_gather(const uint16_t *const *pixel)
{
    __m512i v = _mm512_castsi128_si512(_mm_loadu_si128((const void *)pixel[0]));

    for (int i = 1; i < 4; i++) /* the i-th quarter */
        v = _mm512_mask_broadcast_i32x4(v, (__mmask16)(0xf << 4 * i),
                                        _mm_loadu_si128((const void *)pixel[8 * i]));
    return v;
}

/* Each quarter of a vector has 8 channels of a pixel, and in the end 8 pixels of a channel. */
static void direct_conv_line_up(float *to, const uint16_t *const *pixel)
{
    for (int c = 0; c < DIRECT_CONV_BLOCK; c += 8, to += 8 * LANES) {
        const uint16_t *from[2 * LANES];
        __m512i v[8], pair[8], four[8];

        for (int i = 0; i < 2 * LANES; i++)
            from[i] = pixel[i] + c;
        SIMD_UNROLL(8) for (int i = 0; i < 8; i++) v[i] = direct_conv_gather(from + i);
        SIMD_UNROLL(4) for (int i = 0; i < 4; i++)
        {
            pair[i] = _mm512_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
            pair[i + 4] = _mm512_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
        }
        SIMD_UNROLL(4) for (int i = 0; i < 8; i += 2)
        {
            four[i] = _mm512_unpacklo_epi32(pair[i], pair[i + 1]);
            four[i + 1] = _mm512_unpackhi_epi32(pair[i], pair[i + 1]);
        }
        SIMD_UNROLL(4) for (int i = 0; i < 4; i++)
        {
            const int k = i / 2 * 4 + i % 2;

            simd_store(to + 2 * i * LANES, (vec)_mm512_unpacklo_epi64(four[k], four[k + 2]));
            simd_store(to + (2 * i + 1) * LANES, (vec)_mm512_unpackhi_epi64(four[k], four[k + 2]));
        }
    }
}
#else
static void direct_conv_line_up(float *to, const uint16_t *const *pixel)
{
    for (int h = 0; h < DIRECT_CONV_BLOCK; h += LANES) {
        vec v[LANES];

        for (int i = 0; i < LANES; i++)
            v[i] = half16_join(half16_take(pixel[2 * i] + h), half16_take(pixel[2 * i + 1] + h));
        simd_transpose(v);
        for (int l = 0; l < LANES; l++, to += LANES)
            simd_store(to, v[l]);
    }
}
#endif

/* The next pixels of images whose rows follow each other. */
typedef struct direct_conv_reader {
    const uint16_t *pixel;
    int64_t row, column;
} direct_conv_reader;

static void direct_conv_read_on(direct_conv_reader *at, const direct_conv_spread *how)
{
    at->column += 2;
    at->pixel += 2 * DIRECT_CONV_BLOCK;
    if (at->column < how->columns)
        return;
    at->pixel -= (at->column - how->columns) * DIRECT_CONV_BLOCK;
    at->column = 0;
    if (++at->row == how->h) {
        at->row = 0;
        at->pixel += 2 * how->sample - how->h * how->columns * DIRECT_CONV_BLOCK;
    }
}

static void direct_conv_lines(float *to, const void *from, const direct_conv_spread *how)
{
    static const uint16_t zero[DIRECT_CONV_BLOCK];
    const int64_t pairs = how->rows * ((how->columns + 1) / 2);
    direct_conv_reader at = {from, 0, 0};

    for (int64_t j = 0; j < pairs; j += LANES, to += LANES * DIRECT_CONV_BLOCK) {
        const int64_t n = direct_conv_least(LANES, pairs - j);
        const uint16_t *pixel[2 * LANES];

        for (int64_t i = 0; i < n; i++) {
            const bool both = at.column + 1 < how->columns;

            direct_conv_fetch(at.pixel);
            direct_conv_fetch(at.pixel + DIRECT_CONV_BLOCK);
            pixel[2 * i] = at.pixel;
            pixel[2 * i + 1] = both ? at.pixel + DIRECT_CONV_BLOCK : zero;
            direct_conv_read_on(&at, how);
        }
        for (int64_t i = 2 * n; i < 2 * LANES; i++)
            pixel[i] = zero;
        direct_conv_line_up(to, pixel);
    }
}
