/*
 * sample_lanes_winograd_rows.h - correlation of one input channel with 5 x 5 taps by Winograd's
 * F(4, 5) along rows. Included only by sample_lanes_winograd.h, once per instruction set.
 *
 * With one channel, transforms of two-dimensional tiles cost what their products save. Here the
 * transform of a row is used by the five output rows that depend on it, and the sum over five rows
 * of taps is transformed back once: 40 products for 4 outputs instead of 100, and a quarter of the
 * rounding error of two-dimensional tiles.
 */
#define LANES_WINO_ROWS_O 3

/* Sums of 3 channels, so many tiles and so many points at once fit the registers. */
#ifndef LANES_ROWS_TILES
#define LANES_ROWS_TILES  1
#define LANES_ROWS_POINTS LANES_WINO_IN
#endif

/* Filter transform, (groups of output channels, 5, 8, channels of a group). */
static void lanes_wino_rows_weight(float *to, const float *weight, const lanes_window *s)
{
    const int64_t part = lanes_part(s->o, LANES_WINO_ROWS_O);

    for (int64_t first = 0; first < s->o; first += part) {
        const int64_t no = s->o - first < part ? s->o - first : part;

        for (int i = 0; i < 5; i++, to += LANES_WINO_IN * no) {
            dvec line[5] = {{0}}, all[LANES_WINO_IN];

            for (int64_t t = 0; t < 5 * no; t++)
                line[t % 5][t / 5] = (double)weight[(first + t / 5) * 25 + i * 5 + t % 5];
            lanes_wino_filter(all, line);
            for (int64_t t = 0; t < LANES_WINO_IN * no; t++)
                to[t] = (float)all[t / no][t % no];
        }
    }
}

/* Input transform of the tiles of one row, which has `n` columns. */
static void lanes_wino_rows_places(float *to, const float *x, int64_t n, int64_t tiles)
{
    for (int64_t v = 0; v < tiles * LANES_WINO_OUT;
         v += LANES_WINO_OUT, to += LANES_WINO_IN * LANES) {
        vec d[LANES_WINO_IN];

        SIMD_UNROLL(8)
        for (int j = 0; j < LANES_WINO_IN; j++)
            d[j] = v + j < n ? simd_load(x + (v + j) * LANES) : simd_splat(0);
        lanes_wino_input(d);
        SIMD_UNROLL(8) for (int j = 0; j < LANES_WINO_IN; j++) simd_store(to + j * LANES, d[j]);
    }
}

typedef struct lanes_line {
    const lanes_window *s;
    const float *v; /* (rows, tiles, 8): points of the first row, for tap 0 */
    int64_t tiles;
    int64_t i0, i1; /* rows of taps inside the image */
} lanes_line;

/* Row `i` of taps: sum[o][k] += the points of tile k * the weight of channel o, so many points from
   `first` on. */
SIMD_INLINE void lanes_wino_rows_add(vec (*sum)[LANES_ROWS_TILES][LANES_ROWS_POINTS],
                                     const float *v, const float *tap, const int no, const int nt)
{
    SIMD_UNROLL(8) for (int j = 0; j < LANES_ROWS_POINTS; j++)
    {
        vec value[LANES_ROWS_TILES];

        SIMD_UNROLL(8)
        for (int k = 0; k < nt; k++)
            value[k] = simd_keep(simd_load(v + (k * LANES_WINO_IN + j) * LANES));
        SIMD_UNROLL(8) for (int o = 0; o < no; o++)
        {
            const vec each = simd_splat(tap[j * no + o]);

            SIMD_UNROLL(8) for (int k = 0; k < nt; k++) sum[o][k][j] += value[k] * each;
        }
    }
}

/* Points of `no` channels of `nt` tiles of a row from tile `t` on: LANES_ROWS_POINTS at a time,
   whose sums stay in registers. */
SIMD_INLINE void lanes_wino_rows_points(vec (*m)[LANES_ROWS_TILES][LANES_WINO_IN],
                                        const lanes_line *line, int64_t t, const float *weight,
                                        const int no, const int nt)
{
    const int64_t row = line->tiles * LANES_WINO_IN * LANES;
    const float *v = line->v + line->i0 * row + t * LANES_WINO_IN * LANES;

    for (int first = 0; first < LANES_WINO_IN;
         first += LANES_ROWS_POINTS, v += LANES_ROWS_POINTS * LANES) {
        vec sum[LANES_WINO_ROWS_O][LANES_ROWS_TILES][LANES_ROWS_POINTS];

        SIMD_UNROLL(8)
        for (int o = 0; o < no; o++)
            SIMD_UNROLL(8)
        for (int k = 0; k < nt; k++)
            SIMD_UNROLL(8) for (int j = 0; j < LANES_ROWS_POINTS; j++) sum[o][k][j] = simd_splat(0);
        for (int64_t i = line->i0; i < line->i1; i++)
            lanes_wino_rows_add(sum, v + (i - line->i0) * row,
                                weight + (i * LANES_WINO_IN + first) * no, no, nt);
        SIMD_UNROLL(8)
        for (int o = 0; o < no; o++)
            SIMD_UNROLL(8)
        for (int k = 0; k < nt; k++)
            SIMD_UNROLL(8)
        for (int j = 0; j < LANES_ROWS_POINTS; j++)
            m[o][k][first + j] = sum[o][k][j];
    }
}

SIMD_INLINE void lanes_wino_rows_some(float *y, const lanes_line *line, int64_t t,
                                      const float *weight, const float *bias, const int no,
                                      const int nt)
{
    const int64_t plane = line->s->oh * line->s->ow * LANES;
    vec m[LANES_WINO_ROWS_O][LANES_ROWS_TILES][LANES_WINO_IN];

    lanes_wino_rows_points(m, line, t, weight, no, nt);
    SIMD_UNROLL(8) for (int o = 0; o < no; o++) SIMD_UNROLL(8) for (int k = 0; k < nt; k++)
    {
        const int64_t left = line->s->ow - (t + k) * LANES_WINO_OUT;
        const vec b = simd_splat(bias ? bias[o] : 0);
        vec out[LANES_WINO_OUT];

        lanes_wino_output(out, m[o][k]);
        SIMD_UNROLL(8)
        for (int u = 0; u < LANES_WINO_OUT; u++)
            if (u < left)
                simd_store(y + o * plane + ((t + k) * LANES_WINO_OUT + u) * LANES, out[u] + b);
    }
}

/* `no` is a constant in each use. */
SIMD_INLINE void lanes_wino_rows_channels(float *y, const lanes_line *line, const float *weight,
                                          const float *bias, const int no)
{
    const int64_t part = lanes_part(line->tiles, LANES_ROWS_TILES);

    for (int64_t t = 0; t < line->tiles; t += part) {
        const int64_t left = line->tiles - t, n = left < part ? left : part;

        switch (n) {
#if LANES_ROWS_TILES > 1
        case 4:
            lanes_wino_rows_some(y, line, t, weight, bias, no, 4);
            break;
        case 3:
            lanes_wino_rows_some(y, line, t, weight, bias, no, 3);
            break;
        case 2:
            lanes_wino_rows_some(y, line, t, weight, bias, no, 2);
            break;
#endif
        default:
            lanes_wino_rows_some(y, line, t, weight, bias, no, 1);
        }
    }
}

/* One output row of `no` channels. */
static void lanes_wino_rows_line(float *y, const lanes_line *line, const float *weight,
                                 const float *bias, int64_t no)
{
    if (no == 1)
        lanes_wino_rows_channels(y, line, weight, bias, 1);
    else if (no == 2)
        lanes_wino_rows_channels(y, line, weight, bias, 2);
    else
        lanes_wino_rows_channels(y, line, weight, bias, 3);
}

static int64_t lanes_wino_rows_tiles(const lanes_window *s)
{
    return (s->ow + LANES_WINO_OUT - 1) / LANES_WINO_OUT;
}

/* Channels at a time, whose weights are together. */
static int64_t lanes_wino_part(const lanes_window *s)
{
    return s->c == 1 && s->oh <= LANES_WINO_OUT ? lanes_part(s->o, LANES_WINO_ROWS_O) : s->o;
}

static int64_t lanes_wino_rows_room(const lanes_window *s)
{
    return LANES_WINO_IN * lanes_wino_rows_tiles(s) * LANES_WINO_IN * LANES;
}

/* Four output rows at a time, which depend on eight input rows. y points to the first channel that
   is wanted. */
static void lanes_wino_rows(float *y, float *room, const float *x, const float *weight,
                            const float *bias, const lanes_window *s)
{
    const int64_t width = s->w + 2 * s->pad_w, part = lanes_part(s->o, LANES_WINO_ROWS_O);
    lanes_line line = {.s = s, .tiles = lanes_wino_rows_tiles(s)};
    const int64_t step = line.tiles * LANES_WINO_IN * LANES;
    const int64_t begin = s->begin, end = s->part ? begin + s->part : s->o;

    for (int64_t u = 0; u < s->oh; u++) {
        const int64_t top = u - s->pad_h, first = u % LANES_WINO_OUT;

        for (int64_t r = top; begin == 0 && first == 0 && r < top + LANES_WINO_IN; r++)
            if (r >= 0 && r < s->h)
                lanes_wino_rows_places(room + (r - top) * step, x + r * width * LANES, width,
                                       line.tiles);
        line.v = room + first * step;
        line.i0 = top < 0 ? -top : 0;
        line.i1 = top + 5 > s->h ? s->h - top : 5;
        for (int64_t o = begin; o < end; o += part)
            lanes_wino_rows_line(y + ((o - begin) * s->oh + u) * s->ow * LANES, &line,
                                 weight + o * 5 * LANES_WINO_IN, bias ? bias + o : NULL,
                                 end - o < part ? end - o : part);
    }
}
