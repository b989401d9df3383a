/*
 * sample_lanes_winograd.h - correlation with 5 x 5 taps in a quarter of the operations. Included
 * only by sample_lanes_impl.h, once per instruction set.
 *
 * Winograd's F(4x4, 5x5) (Lavin & Gray, arXiv:1509.09308) on the points 0, 1, -1, 2, -2, 1/2, -1/2
 * and infinity: a tile of 4 x 4 outputs is A'((G g G') * (B'd B))A of 8 x 8 inputs d and taps g, 64
 * products instead of 400. The tiles of a row of tiles are processed together, one row of their 8 x
 * 8 points at a time, so that intermediate results stay in L1. With one input channel, tiles are
 * rows (sample_lanes_winograd_rows.h).
 */
#define LANES_WINO_IN  8
#define LANES_WINO_OUT LANES_WINOGRAD_ROWS
/* Vectors of a tile between the two transforms A: 8 x 4, plus one so that tiles use different cache
   lines. */
#define LANES_WINO_HALF 33

typedef double dvec __attribute__((vector_size(LANES * sizeof(double)), may_alias));

/* input transform B' of one line: 8 inputs -> 8 points */
SIMD_INLINE void lanes_wino_input(vec d[LANES_WINO_IN])
{
    const vec a1 = d[2] + d[6] - 4.25f * d[4], b1 = d[1] + d[5] - 4.25f * d[3];
    const vec a2 = 0.25f * d[2] + d[6] - 1.25f * d[4], b2 = 0.25f * d[1] + d[5] - 1.25f * d[3];
    const vec a3 = 4 * d[2] + d[6] - 5 * d[4], b3 = 4 * d[1] + d[5] - 5 * d[3];

    d[0] = 5.25f * (d[2] - d[4]) + (d[6] - d[0]);
    d[7] = 5.25f * (d[3] - d[5]) + (d[7] - d[1]);
    d[1] = a1 + b1;
    d[2] = a1 - b1;
    d[3] = a2 + 2 * b2;
    d[4] = a2 - 2 * b2;
    d[5] = a3 + 0.5f * b3;
    d[6] = a3 - 0.5f * b3;
}

/* output transform A' of one line: 8 points -> 4 outputs */
SIMD_INLINE void lanes_wino_output(vec y[LANES_WINO_OUT], const vec m[LANES_WINO_IN])
{
    const vec a1 = m[1] + m[2], b1 = m[1] - m[2];
    const vec a2 = m[3] + m[4], b2 = m[3] - m[4];
    const vec a3 = m[5] + m[6], b3 = m[5] - m[6];

    y[0] = (m[0] + a1) + (a2 + a3);
    y[1] = b1 + 2 * b2 + 0.5f * b3;
    y[2] = a1 + 4 * a2 + 0.25f * a3;
    y[3] = (b1 + m[7]) + 8 * b2 + 0.125f * b3;
}

/* filter transform G of one line: 5 taps -> 8 points */
SIMD_INLINE void lanes_wino_filter(dvec to[LANES_WINO_IN], const dvec g[5])
{
    const dvec a1 = g[0] + g[2] + g[4], b1 = g[1] + g[3];
    const dvec a2 = g[0] + 4 * g[2] + 16 * g[4], b2 = 2 * g[1] + 8 * g[3];
    const dvec a3 = 16 * g[0] + 4 * g[2] + g[4], b3 = 8 * g[1] + 2 * g[3];

    to[0] = -g[0];
    to[1] = (a1 + b1) * (-2 / 9.0);
    to[2] = (a1 - b1) * (-2 / 9.0);
    to[3] = (a2 + b2) * (1 / 90.0);
    to[4] = (a2 - b2) * (1 / 90.0);
    to[5] = (a3 + b3) * (2 / 45.0);
    to[6] = (a3 - b3) * (2 / 45.0);
    to[7] = g[4];
}

#include "kernels/sample_lanes/sample_lanes_winograd_rows.h"

/* First tap of pair `p` in the order (channels of a tile, c, o within them). */
SIMD_INLINE const float *lanes_wino_pair(const float *weight, int64_t p, const lanes_window *s)
{
    const int64_t part = lanes_part(s->o, LANES_TILE_O), first = p / (part * s->c) * part;
    const int64_t no = s->o - first < part ? s->o - first : part;
    const int64_t in = p - first * s->c;

    return weight + ((first + in % no) * s->c + in / no) * 25;
}

/* Filter transform of LANES pairs of channels, held in lanes: 64 points, `stride` floats apart. */
static void lanes_wino_filter_pairs(float *to, const double (*tap)[LANES], int64_t stride)
{
    dvec half[5][LANES_WINO_IN];

    for (int i = 0; i < 5; i++) {
        dvec line[5];

        SIMD_UNROLL(8) for (int j = 0; j < 5; j++) memcpy(&line[j], tap[i * 5 + j], sizeof(dvec));
        lanes_wino_filter(half[i], line);
    }
    for (int j = 0; j < LANES_WINO_IN; j++) {
        dvec line[5], all[LANES_WINO_IN];

        SIMD_UNROLL(8) for (int i = 0; i < 5; i++) line[i] = half[i][j];
        lanes_wino_filter(all, line);
        SIMD_UNROLL(8)
        for (int i = 0; i < LANES_WINO_IN; i++)
            simd_store_any(to + (i * LANES_WINO_IN + j) * stride,
                           __builtin_convertvector(all[i], vec));
    }
}

static void lanes_wino_weight(float *to, const float *weight, const lanes_window *s)
{
    const int64_t pairs = s->o * s->c, stride = lanes_winograd_stride(s);

    if (s->c == 1) {
        lanes_wino_rows_weight(to, weight, s);
        return;
    }
    for (int64_t p = 0; p < pairs; p += LANES) {
        double tap[25][LANES] = {{0}};

        for (int64_t l = 0; l < LANES && p + l < pairs; l++) {
            const float *from = lanes_wino_pair(weight, p + l, s);

            for (int t = 0; t < 25; t++)
                tap[t][l] = (double)from[t];
        }
        lanes_wino_filter_pairs(to + p, (const double(*)[LANES])tap, stride);
    }
}

/* --- one row of tiles --- */

typedef struct lanes_band {
    const lanes_window *s;
    float *lines; /* (c, 8, columns): B'd of a row of tiles */
    float *v;     /* (c, tiles, 8): one row of points */
    float *m;     /* (o, tiles, 8): products for one row of points, of a group of channels */
    float *half;  /* (o, tiles, 8 x 4 + 1) */
    int64_t tiles, columns;
    int64_t top, left; /* of the first tile's input, in the padded planes */
} lanes_band;

/* Input transform of one column of the planes; points are one line of `lines` apart. */
SIMD_INLINE void lanes_wino_column(float *to, const float *x, const lanes_band *b, const bool whole)
{
    const int64_t row = (b->s->w + 2 * b->s->pad_w) * LANES;
    vec d[LANES_WINO_IN];

    SIMD_UNROLL(8)
    for (int i = 0; i < LANES_WINO_IN; i++)
        d[i] = whole || (b->top + i >= 0 && b->top + i < b->s->h) ? simd_load(x + i * row)
                                                                  : simd_splat(0);
    lanes_wino_input(d);
    SIMD_UNROLL(8)
    for (int i = 0; i < LANES_WINO_IN; i++)
        simd_store(to + i * b->columns * LANES, d[i]);
}

static void lanes_wino_columns(const lanes_band *b, const float *x)
{
    const lanes_window *s = b->s;
    const int64_t width = s->w + 2 * s->pad_w;
    const int64_t n = width - b->left < b->columns ? width - b->left : b->columns;
    const bool whole = b->top >= 0 && b->top + LANES_WINO_IN <= s->h;

    for (int64_t c = 0; c < s->c; c++) {
        const float *from = x + ((c * s->h + b->top) * width + b->left) * LANES;
        float *to = b->lines + c * LANES_WINO_IN * b->columns * LANES;

        for (int64_t v = 0; v < n; v++)
            if (whole)
                lanes_wino_column(to + v * LANES, from + v * LANES, b, true);
            else
                lanes_wino_column(to + v * LANES, from + v * LANES, b, false);
        for (int64_t i = 0; i < LANES_WINO_IN && n < b->columns; i++)
            memset(to + (i * b->columns + n) * LANES, 0,
                   (size_t)((b->columns - n) * LANES) * sizeof(float));
    }
}

/* Row `i` of the points of all tiles and channels. */
static void lanes_wino_places(const lanes_band *b, int i)
{
    float *to = b->v;

    for (int64_t c = 0; c < b->s->c; c++)
        for (int64_t t = 0; t < b->tiles; t++, to += LANES_WINO_IN * LANES) {
            const float *from =
                b->lines + ((c * LANES_WINO_IN + i) * b->columns + t * LANES_WINO_OUT) * LANES;
            vec d[LANES_WINO_IN];

            SIMD_UNROLL(8)
            for (int j = 0; j < LANES_WINO_IN; j++)
                d[j] = simd_load(from + j * LANES);
            lanes_wino_input(d);
            SIMD_UNROLL(8) for (int j = 0; j < LANES_WINO_IN; j++) simd_store(to + j * LANES, d[j]);
        }
}

/* Output transform A' of one row of a tile's points. */
SIMD_INLINE void lanes_wino_halve(float *half, const vec m[LANES_WINO_IN])
{
    vec y[LANES_WINO_OUT];

    lanes_wino_output(y, m);
    SIMD_UNROLL(8) for (int j = 0; j < LANES_WINO_OUT; j++) simd_store(half + j * LANES, y[j]);
}

/* One point: m[o][t] = sum_c weight[c][o] v[c][t] */
SIMD_INLINE void lanes_wino_place(float *m, const float *v, const float *weight, int64_t c,
                                  const int no, const int nt)
{
    vec sum[LANES_TILE_O][LANES_TILE_V];

    SIMD_UNROLL(8)
    for (int o = 0; o < no; o++)
        SIMD_UNROLL(8) for (int t = 0; t < nt; t++) sum[o][t] = simd_splat(0);
    for (int64_t k = 0; k < c; k++, v += nt * LANES_WINO_IN * LANES, weight += no)
        SIMD_UNROLL(8) for (int o = 0; o < no; o++)
        {
            const vec u = simd_splat(weight[o]);

            SIMD_UNROLL(8)
            for (int t = 0; t < nt; t++)
                sum[o][t] += simd_load(v + t * LANES_WINO_IN * LANES) * u;
        }
    SIMD_UNROLL(8)
    for (int o = 0; o < no; o++) {
        SIMD_UNROLL(8)
        for (int t = 0; t < nt; t++)
            simd_store(m + (o * nt + t) * LANES_WINO_IN * LANES, sum[o][t]);
    }
}

#define LANES_WINO_CASE(o, t)                                                                      \
    case (o)*8 + (t):                                                                              \
        for (int j = 0; j < LANES_WINO_IN; j++)                                                    \
            lanes_wino_place(b->m + j * LANES, b->v + j * LANES, weight + j * stride, b->s->c, o,  \
                             t);                                                                   \
        break;

/* Products for one row of points of `no` channels, and their output transform A'. */
static void lanes_wino_products(float *half, const lanes_band *b, const float *weight,
                                int64_t stride, int no)
{
    switch (no * 8 + (int)b->tiles) {
        LANES_TILE_CASES(LANES_WINO_CASE)
    default:
        break;
    }
    for (int64_t n = 0; n < no * b->tiles; n++) {
        vec m[LANES_WINO_IN];

        SIMD_UNROLL(8)
        for (int j = 0; j < LANES_WINO_IN; j++)
            m[j] = simd_load(b->m + (n * LANES_WINO_IN + j) * LANES);
        lanes_wino_halve(half + n * LANES_WINO_HALF * LANES, m);
    }
}

/* Output transform of the columns: outputs (rows, columns) of one tile. */
static void lanes_wino_finish(float *y, const float *half, vec bias, int64_t rows, int64_t columns,
                              int64_t width)
{
    for (int64_t v = 0; v < columns; v++, half += LANES) {
        vec m[LANES_WINO_IN], out[LANES_WINO_OUT];

        SIMD_UNROLL(8)
        for (int i = 0; i < LANES_WINO_IN; i++)
            m[i] = simd_load(half + i * LANES_WINO_OUT * LANES);
        lanes_wino_output(out, m);
        SIMD_UNROLL(8)
        for (int i = 0; i < LANES_WINO_OUT; i++)
            if (i < rows)
                simd_store(y + (i * width + v) * LANES, out[i] + bias);
    }
}

/* One run of tiles of a row; y points to their first output. */
static void lanes_wino_band(float *y, const lanes_band *b, const float *x, const float *weight,
                            const float *bias, int64_t rows, int64_t columns)
{
    const lanes_window *s = b->s;
    const int64_t part = lanes_part(s->o, LANES_TILE_O), stride = lanes_winograd_stride(s);

    lanes_wino_columns(b, x);
    for (int i = 0; i < LANES_WINO_IN; i++) {
        const float *u = weight + i * LANES_WINO_IN * stride;

        lanes_wino_places(b, i);
        for (int64_t o = 0; o < s->o; o += part) {
            const int no = (int)(s->o - o < part ? s->o - o : part);

            float *half = b->half + (o * b->tiles * LANES_WINO_HALF + i * LANES_WINO_OUT) * LANES;

            lanes_wino_products(half, b, u + o * s->c, stride, no);
        }
    }
    for (int64_t o = 0; o < s->o; o++)
        for (int64_t t = 0; t < b->tiles; t++) {
            const int64_t left = columns - t * LANES_WINO_OUT;

            lanes_wino_finish(y + (o * s->oh * s->ow + t * LANES_WINO_OUT) * LANES,
                              b->half + (o * b->tiles + t) * LANES_WINO_HALF * LANES,
                              simd_splat(bias ? bias[o] : 0), rows,
                              left < LANES_WINO_OUT ? left : LANES_WINO_OUT, s->ow);
        }
}

/* Tiles processed together. */
static int64_t lanes_wino_tiles(const lanes_window *s)
{
    return lanes_part((s->ow + LANES_WINO_OUT - 1) / LANES_WINO_OUT, LANES_TILE_V);
}

/* Offsets of a band's parts after its lines, and its total size, in floats. */
typedef struct lanes_wino_layout {
    int64_t v, m, half, size;
} lanes_wino_layout;

static lanes_wino_layout lanes_wino_lay_out(const lanes_window *s)
{
    const int64_t tiles = lanes_wino_tiles(s);
    lanes_wino_layout l;

    l.v = s->c * LANES_WINO_IN * (tiles + 1) * LANES_WINO_OUT * LANES;
    l.m = l.v + LANES_WINO_IN * s->c * tiles * LANES;
    l.half = l.m + LANES_WINO_IN * LANES_TILE_O * tiles * LANES;
    l.size = l.half + s->o * tiles * LANES_WINO_HALF * LANES;
    return l;
}

static int64_t lanes_wino_room(const lanes_window *s)
{
    return s->c == 1 ? lanes_wino_rows_room(s) : lanes_wino_lay_out(s).size;
}

static void lanes_wino(float *y, float *room, const float *x, const float *weight,
                       const float *bias, const lanes_window *s)
{
    const int64_t tiles = lanes_wino_tiles(s), step = tiles * LANES_WINO_OUT;
    const lanes_wino_layout l = lanes_wino_lay_out(s);
    lanes_band b = {.s = s, .lines = room, .v = room + l.v, .m = room + l.m, .half = room + l.half};

    if (s->c == 1) {
        lanes_wino_rows(y, room, x, weight, bias, s);
        return;
    }
    for (int64_t u = 0; u < s->oh; u += LANES_WINO_OUT)
        for (int64_t v = 0; v < s->ow; v += step) {
            const int64_t rows = s->oh - u, left = s->ow - v;

            b.tiles = left < step ? (left + LANES_WINO_OUT - 1) / LANES_WINO_OUT : tiles;
            b.columns = (b.tiles + 1) * LANES_WINO_OUT;
            b.top = u - s->pad_h;
            b.left = v;
            lanes_wino_band(y + (u * s->ow + v) * LANES, &b, x, weight, bias,
                            rows < LANES_WINO_OUT ? rows : LANES_WINO_OUT, left);
        }
}
