/*
 * sample_lanes_sparse.h - gradients of a convolution whose output gradient is mostly zeros.
 * Included only by sample_lanes_impl.h, once per instruction set.
 *
 * After 2 x 2 max pooling three quarters of a gradient are zeros, and ReLU and dropout add more.
 * Here a sample is (h, w, c) with padding: an output element depends on `kh` rows of kw * c
 * adjacent elements, and each nonzero costs that many products. In a first layer with one channel,
 * `fold` image rows are stored as channels, pixel by pixel, because a row of 5 taps would leave
 * most of a vector empty.
 */

/* Rows and vectors of one channel's weight that are kept in registers. */
#define LANES_SPARSE_CASES(call)                                                                   \
    call(1, 1) call(1, 2) call(1, 3) call(2, 1) call(2, 2) call(2, 3) call(3, 1) call(3, 2)        \
        call(3, 3) LANES_SPARSE_MORE(call)
#if LANES_SPARSE_ROWS > 3
#define LANES_SPARSE_MORE(call)                                                                    \
    call(1, 4) call(1, 5) call(2, 4) call(2, 5) call(3, 4) call(3, 5) call(4, 1) call(4, 2)        \
        call(4, 3) call(4, 4) call(4, 5) call(5, 1) call(5, 2) call(5, 3) call(5, 4) call(5, 5)
#else
#define LANES_SPARSE_MORE(call)
#endif

/* Rows that are split or joined with the same offsets. */
#define LANES_SPLIT_ROWS 4

/* Offsets of LANES vectors of a row from element e on, in the order (w, c); the number of them that
   exist. */
SIMD_INLINE int lanes_row_offsets(int64_t *at, int64_t e, const lanes_sparse *s)
{
    const int64_t plane = s->plane * LANES, left = s->w * s->c - e;
    int64_t c = e % s->c, column = e / s->c * LANES;

    for (int l = 0; l < LANES; l++) {
        at[l] = c * plane + column;
        if (++c == s->c) {
            c = 0;
            column += LANES;
        }
    }
    return (int)(left < LANES ? left : LANES);
}

/* LANES elements of a row of all samples. Vectors from n on, and with `edge` those outside `size`
   floats, are zeros. */
SIMD_INLINE void lanes_split_square(float *to, const float *x, const int64_t *at, int64_t first,
                                    int64_t size, int64_t sample, const int n, const bool edge)
{
    vec v[LANES];

    SIMD_UNROLL(16) for (int l = 0; l < LANES; l++)
    {
        const int64_t from = first + at[l];

        v[l] = l < n && (!edge || (from >= 0 && from < size)) ? simd_load(x + from) : simd_splat(0);
    }
    simd_transpose(v);
    SIMD_UNROLL(16) for (int l = 0; l < LANES; l++) simd_store_any(to + l * sample, v[l]);
}

/* Some image rows, from right to left, as what is beyond the end of a row is written over. */
static void lanes_split_rows(float *to, const float *x, const lanes_sparse *s, int64_t begin,
                             int64_t end)
{
    const int64_t size = s->h * s->across * LANES, runs = (s->w * s->c + LANES - 1) / LANES;
    int64_t at[LANES];

    for (int64_t e = (runs - 1) * LANES; e >= 0; e -= LANES) {
        const int n = lanes_row_offsets(at, e, s);

        for (int64_t h = begin; h < end; h++) {
            float *row = to + (h + s->pad_h) * s->row + s->pad_w * s->c + e;
            const int64_t first = h * s->across * LANES;

            if (s->fold > 1 && (h < 0 || h + s->fold > s->h))
                lanes_split_square(row, x, at, first, size, s->sample, n, true);
            else if (n == LANES)
                lanes_split_square(row, x, at, first, size, s->sample, LANES, false);
            else
                lanes_split_square(row, x, at, first, size, s->sample, n, false);
        }
    }
}

/* (c, h, w, lanes) -> lanes x (h, w, c) with padding. Writes nothing but zeros into the padding. */
static void lanes_split(float *to, const float *x, const lanes_sparse *s)
{
    const int64_t above = s->fold - 1 < s->pad_h ? s->fold - 1 : s->pad_h;

    for (int64_t h = -above; h < s->h; h += LANES_SPLIT_ROWS)
        lanes_split_rows(to, x, s, h, h + LANES_SPLIT_ROWS < s->h ? h + LANES_SPLIT_ROWS : s->h);
}

/* The inverse, without padding. */
static void lanes_join(float *x, const float *from, const lanes_sparse *s)
{
    int64_t at[LANES];

    for (int64_t top = 0; top < s->h; top += LANES_SPLIT_ROWS)
        for (int64_t e = 0; e < s->w * s->c; e += LANES) {
            const int n = lanes_row_offsets(at, e, s);

            for (int64_t h = top; h < s->h && h < top + LANES_SPLIT_ROWS; h++) {
                const float *row = from + (h + s->pad_h) * s->row + s->pad_w * s->c + e;
                vec v[LANES];

                SIMD_UNROLL(16)
                for (int l = 0; l < LANES; l++)
                    v[l] = simd_load_any(row + l * s->sample);
                simd_transpose(v);
                SIMD_UNROLL(16)
                for (int l = 0; l < LANES; l++)
                    if (l < n)
                        simd_store(x + h * s->across * LANES + at[l], v[l]);
            }
        }
}

/* A vector of gradients, zero where ReLU stopped them; place may be NULL. */
SIMD_INLINE vec lanes_live(const float *x, const uint8_t *place)
{
    const vec value = simd_load(x);

    if (!place)
        return value;
    return (vec)simd_pick(lanes_nowhere(place), (ivec){0}, (ivec)value);
}

static int64_t lanes_count(const float *x, const uint8_t *place, int64_t n)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n * LANES; i += LANES)
        count += __builtin_popcount(lanes_nonzero(lanes_live(x + i, place ? place + i : NULL)));
    return count;
}

/* LANES adjacent elements of one channel, and the offset of the first input of each; zero after the
   last. */
typedef struct lanes_run {
    vec value[LANES];
    ivec at[LANES];
} lanes_run;

/* Offset from the first place of a window to each lane's place; inverse: 1 / window width. */
SIMD_INLINE ivec lanes_place_offset(const uint8_t *place, vec inverse, const lanes_sparse *s)
{
    const ivec tap = lanes_widen(place);
    const vec middle = __builtin_convertvector(tap, vec) + 0.5f;
    const ivec i = __builtin_convertvector(middle * inverse, ivec);

    return i * (s->place_h - s->window_w * s->place_w) + tap * s->place_w;
}

/* Read `n` elements from `e` on; returns their sum. */
SIMD_INLINE vec lanes_read_run(lanes_run *run, const float *dy, const uint8_t *place, int64_t e,
                               const lanes_sparse *s, const int n)
{
    const int64_t next = s->stride_w * s->c;
    const vec inverse = simd_splat(1.0f / (float)s->window_w);
    int64_t v = e % s->ow, at = e / s->ow * s->stride_h * s->row + v * next;
    vec sum = {0};

    SIMD_UNROLL(16) for (int k = 0; k < LANES; k++)
    {
        run->value[k] = simd_splat(0);
        run->at[k] = (ivec){0};
        if (k >= n)
            continue;
        run->value[k] = lanes_live(dy + k * LANES, place ? place + k * LANES : NULL);
        run->at[k] += (int32_t)at;
        if (place)
            run->at[k] += lanes_place_offset(place + k * LANES, inverse, s);
        sum += run->value[k];
        at += ++v == s->ow ? s->stride_h * s->row - (s->ow - 1) * next : next;
        v = v == s->ow ? 0 : v;
    }
    return sum;
}

/* Append the nonzero elements of a run to each sample's list; n (lanes) are the current lengths. */
SIMD_INLINE void lanes_list_each(const lanes_spots *to, int32_t *n, const lanes_run *run,
                                 const lanes_sparse *s)
{
    for (int k = 0; k < LANES; k++)
        for (unsigned mask = lanes_nonzero(run->value[k]); mask; mask &= mask - 1) {
            const int l = __builtin_ctz(mask);
            const int64_t end = l * s->room + n[l]++;

            to->value[end] = run->value[k][l];
            to->at[end] = run->at[k][l];
        }
}

#ifdef LANES_SQUEEZES
SIMD_INLINE void lanes_list_squeezed(const lanes_spots *to, int32_t *n, lanes_run *run,
                                     const lanes_sparse *s)
{
    simd_transpose(run->value);
    simd_transpose((vec *)run->at);
    SIMD_UNROLL(16) for (int l = 0; l < LANES; l++)
    {
        const unsigned mask = lanes_nonzero(run->value[l]);
        const int64_t end = l * s->room + n[l];

        lanes_squeeze(to->value + end, mask, run->value[l]);
        lanes_squeeze((float *)(void *)(to->at + end), mask, (vec)run->at[l]);
        n[l] += __builtin_popcount(mask);
    }
}
#endif

SIMD_INLINE void lanes_list_run(const lanes_spots *to, int32_t *n, lanes_run *run,
                                const lanes_sparse *s)
{
#ifdef LANES_SQUEEZES
    int spots = 0;

    SIMD_UNROLL(16)
    for (int k = 0; LANES_SQUEEZES > 0 && k < LANES; k++)
        spots += __builtin_popcount(lanes_nonzero(run->value[k]));
    if (spots >= LANES_SQUEEZES) {
        lanes_list_squeezed(to, n, run, s);
        return;
    }
#endif
    lanes_list_each(to, n, run, s);
}

SIMD_INLINE vec lanes_list_some(const lanes_spots *to, int32_t *n, const float *dy,
                                const uint8_t *place, int64_t e, const lanes_sparse *s,
                                const int count)
{
    lanes_run run;
    const vec sum = lanes_read_run(&run, dy, place, e, s, count);

    lanes_list_run(to, n, &run, s);
    return sum;
}

/* For any count up to LANES; specialised for whole runs. */
static vec lanes_list_any(const lanes_spots *to, int32_t *n, const float *dy, const uint8_t *place,
                          int64_t e, const lanes_sparse *s, int count)
{
    if (!place)
        return lanes_list_some(to, n, dy, NULL, e, s, count);
    if (count >= LANES)
        return lanes_list_some(to, n, dy, place, e, s, LANES);
    return lanes_list_some(to, n, dy, place, e, s, count);
}

static void lanes_list(const lanes_spots *to, float *bias_sum, const float *dy,
                       const uint8_t *place, const lanes_sparse *s)
{
    const int64_t plane = s->oh * s->ow;
    int32_t n[LANES] = {0};

    for (int64_t o = 0; o < s->o; o++) {
        vec sum = simd_load(bias_sum + o * LANES);

        for (int64_t e = 0; e < plane; e += LANES) {
            const int64_t at = (o * plane + e) * LANES;

            sum += lanes_list_any(to, n, dy + at, place ? place + at : NULL, e, s,
                                  (int)(plane - e < LANES ? plane - e : LANES));
        }
        simd_store(bias_sum + o * LANES, sum);
        for (int l = 0; l < LANES; l++)
            to->end[l * s->o + o] = n[l];
    }
}

/* part[r][v] += a spot's value * the row it depends on */
SIMD_INLINE void lanes_add_spot(vec (*part)[LANES_SPARSE_VECS], const float *x, const float *value,
                                const int32_t *at, const lanes_sparse *s, const int rows,
                                const int vecs)
{
    const float *row = x + *at;
    const vec d = simd_splat(*value);

    SIMD_UNROLL(8)
    for (int r = 0; r < rows; r++, row += s->step) {
        SIMD_UNROLL(8)
        for (int v = 0; v < vecs; v++)
            part[r][v] += simd_load_any(row + v * LANES) * d;
    }
}

/* `rows` x `vecs` vectors of one channel's sum, over the spots of `samples` samples. If these are
   few, two accumulators hide the latency of additions. */
SIMD_INLINE void lanes_sparse_weight_tile(float *sum, const float *x, const lanes_spots *spots,
                                          int64_t o, int64_t samples, const lanes_sparse *s,
                                          const int rows, const int vecs)
{
    const bool two = rows * vecs <= 4;
    vec part[2][LANES_SPARSE_ROWS][LANES_SPARSE_VECS];

    SIMD_UNROLL(8) for (int r = 0; r < rows; r++) SIMD_UNROLL(8) for (int v = 0; v < vecs; v++)
    {
        part[0][r][v] = simd_load(sum + r * s->part + v * LANES);
        part[1][r][v] = simd_splat(0);
    }
    for (int64_t l = 0; l < samples; l++) {
        const int32_t *end = spots->end + l * s->o + o, *at = spots->at + l * s->room;
        const float *in = x + l * s->sample, *value = spots->value + l * s->room;
        int32_t p = o ? end[-1] : 0;

        for (; two && p + 1 < *end; p += 2) {
            lanes_add_spot(part[0], in, value + p, at + p, s, rows, vecs);
            lanes_add_spot(part[1], in, value + p + 1, at + p + 1, s, rows, vecs);
        }
        for (; p < *end; p++)
            lanes_add_spot(part[0], in, value + p, at + p, s, rows, vecs);
    }
    SIMD_UNROLL(8)
    for (int r = 0; r < rows; r++) {
        SIMD_UNROLL(8)
        for (int v = 0; v < vecs; v++)
            simd_store(sum + r * s->part + v * LANES, (vec)(part[0][r][v] + part[1][r][v]));
    }
}

#define LANES_SPARSE_WEIGHT(r, v)                                                                  \
    case (r)*8 + (v):                                                                              \
        lanes_sparse_weight_tile(sum, x, spots, o, samples, s, r, v);                              \
        break;

static void lanes_sparse_weight_any(float *sum, const float *x, const lanes_spots *spots, int64_t o,
                                    int64_t samples, const lanes_sparse *s, int rows, int vecs)
{
    switch (rows * 8 + vecs) {
        LANES_SPARSE_CASES(LANES_SPARSE_WEIGHT)
    default:
        break;
    }
}

static int lanes_least(int64_t a, int64_t b)
{
    return (int)(a < b ? a : b);
}

static void lanes_sparse_weight(float *sum, const float *x, const lanes_spots *spots,
                                int64_t samples, const lanes_sparse *s)
{
    const int64_t vecs = s->part / LANES;

    for (int64_t o = 0; o < s->o; o++, sum += s->kh * s->part)
        for (int64_t r = 0; r < s->kh; r += LANES_SPARSE_ROWS)
            for (int64_t v = 0; v < vecs; v += LANES_SPARSE_VECS)
                lanes_sparse_weight_any(sum + r * s->part + v * LANES, x + r * s->step + v * LANES,
                                        spots, o, samples, s,
                                        lanes_least(s->kh - r, LANES_SPARSE_ROWS),
                                        lanes_least(vecs - v, LANES_SPARSE_VECS));
}
