/*
 * sample_lanes_impl.h - the loops of sample_lanes.h, for LANES lanes. Included once for each
 * instruction set, by a file that defines LANES, LANES_TABLE and the sizes of the tiles that fit
 * its registers:
 *
 *   LANES_NAME     name of the instruction set, for users
 *   LANES_SPOT_COST   as lanes_loops has it
 *   LANES_TILE_O   output channels (correlate, correlate_weight)
 *   LANES_TILE_V   output columns (correlate)
 *   LANES_TILE_J   taps in a row (correlate_weight)
 *   LANES_SPARSE_ROWS, LANES_SPARSE_VECS   vectors of a channel's weight (sample_lanes_sparse.h)
 *   LANES_SQUARE_VECS   vectors of a square's row (sample_lanes_squares.h), 2 or 4
 *   lanes_nonzero  a bit for each lane that is not zero
 *   lanes_read_bytes, lanes_write_bytes   LANES bytes <-> a vector lanes_int of 32 bits
 *   LANES_SQUEEZES there is lanes_squeeze(to, mask, v): stores the lanes whose bit is set, first,
 *                  and writes LANES floats at most; its value: pays from so many spots of LANES
 *                  vectors on
 *   LANES_PICKS    lanes are picked by masks: there are lanes_bits(from, bits), those whose byte
 *                  has some of these bits, and lanes_bytes(from, value), those whose byte is this
 *
 *   LANES_ROWS_TILES, LANES_ROWS_POINTS   of sample_lanes_winograd_rows.h, if not 1 tile and 8
 *
 * Independent of calls, tensors and plans.
 */
#include <string.h>

#include "kernels/sample_lanes/sample_lanes.h"
#include "kernels/simd.h"

/* Bytes of dy per pass of correlate_weight: half of an L1 cache. */
#define LANES_PASS_BYTES 24576

SIMD_INLINE ivec lanes_widen(const uint8_t *from)
{
    return (ivec)lanes_read_bytes(from);
}

/* Lanes whose gradient ReLU stops. */
SIMD_INLINE simd_mask lanes_nowhere(const uint8_t *place)
{
#ifdef LANES_PICKS
    return lanes_bytes(place, LANES_NOWHERE);
#else
    return simd_equal(lanes_widen(place), (ivec){0} + LANES_NOWHERE);
#endif
}

SIMD_INLINE void lanes_narrow(uint8_t *to, ivec v)
{
    lanes_write_bytes(to, (lanes_int)v);
}

#include "kernels/sample_lanes/sample_lanes_pack.h"

/* --- correlation --- */

typedef struct lanes_tile {
    int64_t row, column; /* of tap (0, 0), in the padded planes */
    int64_t i0, i1;      /* taps inside the image */
    int64_t j0, j1;
} lanes_tile;

/* sum[o][v] += tap of channel o * its input for column v */
SIMD_INLINE void lanes_add_tap(vec (*sum)[LANES_TILE_V], const float *in, const float *tap,
                               const int64_t taps, const int no, const int nv)
{
    vec value[LANES_TILE_V];

    SIMD_UNROLL(8) for (int v = 0; v < nv; v++) value[v] = simd_load(in + v * LANES);
    SIMD_UNROLL(8) for (int o = 0; o < no; o++)
    {
        const vec k = simd_splat(tap[o * taps]);

        SIMD_UNROLL(8) for (int v = 0; v < nv; v++) sum[o][v] += value[v] * k;
    }
}

/* `no` channels of `nv` adjacent columns; both are compile-time constants. */
SIMD_INLINE void lanes_correlate_tile(float *y, const float *x, const float *weight,
                                      const float *bias, const lanes_window *s, const lanes_tile *t,
                                      const int no, const int nv)
{
    const int64_t width = s->w + 2 * s->pad_w, taps = s->c * s->kh * s->kw;
    vec sum[LANES_TILE_O][LANES_TILE_V];

    SIMD_UNROLL(8)
    for (int o = 0; o < no; o++)
        SIMD_UNROLL(8) for (int v = 0; v < nv; v++) sum[o][v] = simd_splat(bias ? bias[o] : 0);
    for (int64_t c = 0; c < s->c; c++)
        for (int64_t i = t->i0; i < t->i1; i++) {
            const int64_t row = c * s->h + t->row + i * s->step_h;
            const float *in = x + (row * width + t->column + t->j0 * s->step_w) * LANES;
            const float *tap = weight + (c * s->kh + i) * s->kw;

            for (int64_t j = t->j0; j < t->j1; j++, in += s->step_w * LANES)
                lanes_add_tap(sum, in, tap + j, taps, no, nv);
        }
    SIMD_UNROLL(8)
    for (int o = 0; o < no; o++)
        SIMD_UNROLL(8)
    for (int v = 0; v < nv; v++)
        simd_store(y + (o * s->oh * s->ow + v) * LANES, sum[o][v]);
}

/* Taps [*begin, *end) of `n`, `step` apart, that fall into [0, extent) for at least one of the
   positions first .. last. */
static void lanes_find_taps(int64_t *begin, int64_t *end, int64_t first, int64_t last, int64_t n,
                            int64_t step, int64_t extent)
{
    *begin = last >= 0 ? 0 : (-last + step - 1) / step;
    *end = first >= extent ? 0 : (extent - first + step - 1) / step;
    *end = *end < n ? *end : n;
    *begin = *begin < *end ? *begin : *end;
}

/* All tiles that fit the registers: output channels x vectors of columns. */
#define LANES_TILE_CASES(call)                                                                     \
    call(1, 1) call(1, 2) call(1, 3) call(2, 1) call(2, 2) call(2, 3) call(3, 1) call(3, 2)        \
        call(3, 3) LANES_TILE_MORE(call)
#if LANES_TILE_O > 3
#define LANES_TILE_MORE(call)                                                                      \
    call(1, 4) call(2, 4) call(3, 4) call(4, 1) call(4, 2) call(4, 3) call(4, 4) call(5, 1)        \
        call(5, 2) call(5, 3) call(5, 4)
#else
#define LANES_TILE_MORE(call)
#endif

#define LANES_CORRELATE_CASE(o, v)                                                                 \
    case (o)*8 + (v):                                                                              \
        lanes_correlate_tile(y, x, weight, bias, s, t, o, v);                                      \
        break;

static void lanes_correlate_any(float *y, const float *x, const float *weight, const float *bias,
                                const lanes_window *s, const lanes_tile *t, int no, int nv)
{
    switch (no * 8 + nv) {
        LANES_TILE_CASES(LANES_CORRELATE_CASE)
    default:
        break;
    }
}

/* Size of the parts when n is split into equal parts of at most `max`. */
static int64_t lanes_part(int64_t n, int64_t max)
{
    const int64_t parts = (n + max - 1) / max;

    return (n + parts - 1) / parts;
}

static void lanes_correlate(float *y, const float *x, const float *weight, const float *bias,
                            const lanes_window *s)
{
    const int64_t part_o = lanes_part(s->o, LANES_TILE_O), taps = s->c * s->kh * s->kw;

    for (int64_t u = 0; u < s->oh; u++)
        for (int64_t o = 0; o < s->o; o += part_o)
            for (int64_t v = 0; v < s->ow; v += LANES_TILE_V) {
                const int64_t no = s->o - o < part_o ? s->o - o : part_o;
                const int64_t nv = s->ow - v < LANES_TILE_V ? s->ow - v : LANES_TILE_V;
                lanes_tile t = {.row = u - s->pad_h, .column = v};

                lanes_find_taps(&t.i0, &t.i1, t.row, t.row, s->kh, s->step_h, s->h);
                lanes_find_taps(&t.j0, &t.j1, v - s->pad_w, v + nv - 1 - s->pad_w, s->kw, s->step_w,
                                s->w);
                lanes_correlate_any(y + ((o * s->oh + u) * s->ow + v) * LANES, x, weight + o * taps,
                                    bias ? bias + o : NULL, s, &t, (int)no, (int)nv);
            }
}

/* --- gradient of the weight --- */

/* `rows` output rows of `no` channels with `nj` adjacent taps. dy and x point to the first row and
   tap. */
SIMD_INLINE void lanes_weight_tile(float *sum, const float *dy, const float *x,
                                   const lanes_window *s, int64_t rows, const int no, const int nj)
{
    const int64_t width = s->w + 2 * s->pad_w, taps = s->c * s->kh * s->kw;
    const int64_t plane = s->oh * s->ow * LANES;
    vec part[LANES_TILE_O][LANES_TILE_J];

    SIMD_UNROLL(8)
    for (int o = 0; o < no; o++)
        SIMD_UNROLL(8)
    for (int j = 0; j < nj; j++)
        part[o][j] = simd_load(sum + (o * taps + j) * LANES);
    for (int64_t u = 0; u < rows; u++) {
        const float *in = x + u * width * LANES;
        const float *out = dy + u * s->ow * LANES;

        for (int64_t v = 0; v < s->ow; v++, in += LANES, out += LANES) {
            vec value[LANES_TILE_J];

            SIMD_UNROLL(8)
            for (int j = 0; j < nj; j++)
                value[j] = simd_load(in + j * s->step_w * LANES);
            SIMD_UNROLL(8) for (int o = 0; o < no; o++)
            {
                const vec d = simd_load(out + o * plane);

                SIMD_UNROLL(8) for (int j = 0; j < nj; j++) part[o][j] += value[j] * d;
            }
        }
    }
    SIMD_UNROLL(8)
    for (int o = 0; o < no; o++)
        SIMD_UNROLL(8)
    for (int j = 0; j < nj; j++)
        simd_store(sum + (o * taps + j) * LANES, part[o][j]);
}

#define LANES_WEIGHT_CASE(o, j)                                                                    \
    case (o)*8 + (j):                                                                              \
        lanes_weight_tile(sum, dy, x, s, rows, o, j);                                              \
        break

static void lanes_weight_any(float *sum, const float *dy, const float *x, const lanes_window *s,
                             int64_t rows, int no, int nj)
{
    switch (no * 8 + nj) {
        LANES_WEIGHT_CASE(1, 1);
        LANES_WEIGHT_CASE(1, 2);
        LANES_WEIGHT_CASE(1, 3);
        LANES_WEIGHT_CASE(2, 1);
        LANES_WEIGHT_CASE(2, 2);
        LANES_WEIGHT_CASE(2, 3);
        LANES_WEIGHT_CASE(3, 1);
        LANES_WEIGHT_CASE(3, 2);
        LANES_WEIGHT_CASE(3, 3);
#if LANES_TILE_O > 3
        LANES_WEIGHT_CASE(1, 4);
        LANES_WEIGHT_CASE(1, 5);
        LANES_WEIGHT_CASE(2, 4);
        LANES_WEIGHT_CASE(2, 5);
        LANES_WEIGHT_CASE(3, 4);
        LANES_WEIGHT_CASE(3, 5);
        LANES_WEIGHT_CASE(4, 1);
        LANES_WEIGHT_CASE(4, 2);
        LANES_WEIGHT_CASE(4, 3);
        LANES_WEIGHT_CASE(4, 4);
        LANES_WEIGHT_CASE(4, 5);
        LANES_WEIGHT_CASE(5, 1);
        LANES_WEIGHT_CASE(5, 2);
        LANES_WEIGHT_CASE(5, 3);
        LANES_WEIGHT_CASE(5, 4);
        LANES_WEIGHT_CASE(5, 5);
#endif
    default:
        break;
    }
}

/* All taps for output rows [u0, u1) of `no` channels; dy and sum point to the first channel. */
static void lanes_weight_rows(float *sum, const float *dy, const float *x, const lanes_window *s,
                              int64_t u0, int64_t u1, int no)
{
    const int64_t width = s->w + 2 * s->pad_w, part_j = lanes_part(s->kw, LANES_TILE_J);

    for (int64_t c = 0; c < s->c; c++)
        for (int64_t i = 0; i < s->kh; i++) {
            /* output row u uses image row u + shift for tap i */
            const int64_t shift = i * s->step_h - s->pad_h;
            const int64_t begin = u0 + shift < 0 ? -shift : u0;
            const int64_t end = u1 + shift > s->h ? s->h - shift : u1;

            for (int64_t j = 0; begin < end && j < s->kw; j += part_j)
                lanes_weight_any(
                    sum + ((c * s->kh + i) * s->kw + j) * LANES, dy + begin * s->ow * LANES,
                    x + ((c * s->h + begin + shift) * width + j * s->step_w) * LANES, s,
                    end - begin, no, (int)(s->kw - j < part_j ? s->kw - j : part_j));
        }
}

static void lanes_sum(float *sum, const float *x, int64_t n)
{
    vec a = simd_load(sum), b = {0};
    int64_t i = 0;

    for (; i + 1 < n; i += 2) {
        a += simd_load(x + i * LANES);
        b += simd_load(x + (i + 1) * LANES);
    }
    if (i < n)
        a += simd_load(x + i * LANES);
    simd_store(sum, a + b);
}

static int64_t lanes_weight_channels(const lanes_window *s)
{
    return lanes_part(s->o, LANES_TILE_O);
}

static void lanes_correlate_weight(float *sum, float *bias_sum, const float *dy, const float *x,
                                   const lanes_window *s, int64_t begin, int64_t last)
{
    const int64_t part_o = lanes_weight_channels(s), plane = s->oh * s->ow * LANES;
    const int64_t row_bytes = part_o * s->ow * LANES * (int64_t)sizeof(float);
    const int64_t fit = LANES_PASS_BYTES / row_bytes, rows = lanes_part(s->oh, fit > 1 ? fit : 1);
    const int64_t taps = s->c * s->kh * s->kw;

    for (int64_t o = begin; o < last; o += part_o) {
        const int64_t no = last - o < part_o ? last - o : part_o;

        for (int64_t u = 0; u < s->oh; u += rows) {
            const int64_t end = u + rows < s->oh ? u + rows : s->oh;

            for (int64_t k = o; bias_sum && k < o + no; k++)
                lanes_sum(bias_sum + k * LANES, dy + k * plane + u * s->ow * LANES,
                          (end - u) * s->ow);
            lanes_weight_rows(sum + o * taps * LANES, dy + o * plane, x, s, u, end, (int)no);
        }
    }
}

static void lanes_reduce(float *to, const float *from, int64_t n, bool add)
{
    for (int64_t i = 0; i < n; i++, from += LANES) {
        float part[LANES];

        memcpy(part, from, sizeof(part));
        SIMD_UNROLL(8)
        for (int half = LANES / 2; half > 0; half /= 2)
            SIMD_UNROLL(8) for (int l = 0; l < half; l++) part[l] += part[l + half];
        to[i] = add ? to[i] + part[0] : part[0];
    }
}

#include "kernels/sample_lanes/sample_lanes_pool.h"
#include "kernels/sample_lanes/sample_lanes_random.h"
#include "kernels/sample_lanes/sample_lanes_sparse.h"
#include "kernels/sample_lanes/sample_lanes_squares.h"
#ifdef LANES_PICKS
#include "kernels/sample_lanes/sample_lanes_picked.h"
#else
#define lanes_correlate_picked NULL
#endif
#include "kernels/sample_lanes/sample_lanes_winograd.h"

/* --- element by element --- */

static void lanes_relu(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n * LANES; i += LANES) {
        const vec value = simd_load(x + i);

        /* keeps NaN */
        simd_store(y + i, (vec)((ivec)value & ~(value <= simd_splat(0))));
    }
}

static void lanes_relu_gradient(float *dx, const float *y, const float *dy, int64_t n)
{
    for (int64_t i = 0; i < n * LANES; i += LANES)
        simd_store(dx + i, (vec)((ivec)simd_load(dy + i) & ~(simd_load(y + i) <= simd_splat(0))));
}

static void lanes_add(float *y, const float *a, const float *b, int64_t n)
{
    for (int64_t i = 0; i < n * LANES; i += LANES)
        simd_store(y + i, simd_load(a + i) + simd_load(b + i));
}

static void lanes_drop(float *y, const float *x, const int32_t *drop, float scale, int64_t n,
                       int64_t span)
{
    for (int64_t i = 0; i < n * LANES; i += LANES) {
        const ivec keep = *(const ivec *)(drop + i) == (ivec){0};

        for (int64_t k = i * span; k < (i + LANES) * span; k += LANES)
            simd_store(y + k, (vec)((ivec)(simd_load(x + k) * scale) & keep));
    }
}

static void lanes_drop_each(float *y, const float *x, const int32_t *drop, float scale, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = drop[i] ? 0 : x[i] * scale;
}

static void lanes_sum_squares(float *sum, const float *x, float shift, int64_t n)
{
    vec part = simd_load(sum);

    for (int64_t i = 0; i < n * LANES; i += LANES) {
        const vec d = simd_load(x + i) - shift;

        part += d * d;
    }
    simd_store(sum, part);
}

static void lanes_sum_products(float *sum, const float *x, float shift, const float *z, int64_t n)
{
    vec part = simd_load(sum);

    for (int64_t i = 0; i < n * LANES; i += LANES)
        part += (simd_load(x + i) - shift) * simd_load(z + i);
    simd_store(sum, part);
}

static void lanes_combine(float *y, const float *x, float a, const float *z, float b, float c,
                          int64_t n)
{
    for (int64_t i = 0; i < n * LANES; i += LANES) {
        vec value = simd_load(x + i) * a + c;

        if (z)
            value += simd_load(z + i) * b;
        simd_store(y + i, value);
    }
}

const lanes_loops LANES_TABLE = {
    .name = LANES_NAME,
    .lanes = LANES,
    .spot_cost = LANES_SPOT_COST,
    .pack = lanes_pack,
    .unpack = lanes_unpack,
    .correlate = lanes_correlate,
    .correlate_weight = lanes_correlate_weight,
    .weight_channels = lanes_weight_channels,
    .correlate_picked = lanes_correlate_picked,
    .wino_weight = lanes_wino_weight,
    .wino_room = lanes_wino_room,
    .wino_part = lanes_wino_part,
    .wino = lanes_wino,
    .reduce = lanes_reduce,
    .maxpool = lanes_maxpool,
    .maxpool_gradient = lanes_maxpool_gradient,
    .relu = lanes_relu,
    .relu_gradient = lanes_relu_gradient,
    .add = lanes_add,
    .mark = lanes_mark,
    .mark_again = lanes_mark_again,
    .drop = lanes_drop,
    .drop_each = lanes_drop_each,
    .sum = lanes_sum,
    .sum_squares = lanes_sum_squares,
    .sum_products = lanes_sum_products,
    .combine = lanes_combine,
    .split = lanes_split,
    .join = lanes_join,
    .count = lanes_count,
    .list = lanes_list,
    .sparse_weight = lanes_sparse_weight,
    .sparse_data = lanes_sparse_data,
};
