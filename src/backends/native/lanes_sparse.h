/*
 * lanes_sparse.h - the gradients of a convolution whose output's gradient is mostly zeros: part of
 * lanes_impl.h, which alone includes it, once for each instruction set.
 *
 * Behind a max pooling of 2 x 2 three quarters of a gradient are zeros, and ReLU and dropout make
 * more. Here a sample is (h, w, c) with its padding: what one element of the output saw of it is
 * `kh` rows of kw * c neighbours, and an element that is not zero costs that many products.
 */

/* The rows of one channel's weight that stay in registers, and the vectors of each. */
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

/* From one vector of the planes to the next in the order (w, c). */
LANES_INLINE int64_t lanes_step_channel(int64_t at, int64_t *c, const native_sparse *s)
{
    const int64_t plane = s->h * s->w * LANES;

    if (++*c < s->c)
        return at + plane;
    *c = 0;
    return at + LANES - (s->c - 1) * plane;
}

/* (c, h, w, lanes) -> lanes times (h, w, c) with padding, which is left alone but for zeros. */
static void lanes_split(float *to, const float *x, const native_sparse *s)
{
    const int64_t n = s->w * s->c;

    for (int64_t h = 0; h < s->h; h++) {
        float *row = to + (h + s->pad_h) * s->row + s->pad_w * s->c;
        int64_t at = h * s->w * LANES, c = 0;

        for (int64_t e = 0; e < n; e += LANES) {
            vec v[LANES];

            LANES_UNROLL for (int l = 0; l < LANES; l++)
            {
                v[l] = e + l < n ? lanes_load(x + at) : lanes_splat(0);
                at = lanes_step_channel(at, &c, s);
            }
            lanes_transpose(v);
            LANES_UNROLL for (int l = 0; l < LANES; l++)
                lanes_store_any(row + l * s->sample + e, v[l]);
        }
    }
}

/* The same back, without the padding. */
static void lanes_join(float *x, const float *from, const native_sparse *s)
{
    const int64_t n = s->w * s->c;

    for (int64_t h = 0; h < s->h; h++) {
        const float *row = from + (h + s->pad_h) * s->row + s->pad_w * s->c;
        int64_t at = h * s->w * LANES, c = 0;

        for (int64_t e = 0; e < n; e += LANES) {
            vec v[LANES];

            LANES_UNROLL for (int l = 0; l < LANES; l++) v[l] =
                lanes_load_any(row + l * s->sample + e);
            lanes_transpose(v);
            LANES_UNROLL for (int l = 0; l < LANES; l++)
            {
                if (e + l < n)
                    lanes_store(x + at, v[l]);
                at = lanes_step_channel(at, &c, s);
            }
        }
    }
}

static int64_t lanes_count(const float *x, int64_t n)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n * LANES; i += LANES)
        count += __builtin_popcount(lanes_nonzero(lanes_load(x + i)));
    return count;
}

/* The lanes of d that are not zero as spots at `at`; n (lanes): how many each sample has. */
LANES_INLINE void lanes_list_vector(native_spot *spot, int32_t *n, const float *d, int64_t at,
                                    const native_sparse *s)
{
    for (unsigned mask = lanes_nonzero(lanes_load(d)); mask; mask &= mask - 1) {
        const int l = __builtin_ctz(mask);

        spot[l * s->spots + n[l]++] = (native_spot){d[l], (int32_t)at};
    }
}

static void lanes_list(native_spot *spot, int32_t *end, float *bias_sum, const float *dy,
                       const native_sparse *s)
{
    int32_t n[LANES] = {0};

    for (int64_t o = 0; o < s->o; o++) {
        vec sum = lanes_load(bias_sum + o * LANES);

        for (int64_t u = 0; u < s->oh; u++)
            for (int64_t v = 0; v < s->ow; v++, dy += LANES) {
                sum += lanes_load(dy);
                lanes_list_vector(spot, n, dy, u * s->stride_h * s->row + v * s->stride_w * s->c,
                                  s);
            }
        lanes_store(bias_sum + o * LANES, sum);
        for (int l = 0; l < LANES; l++)
            end[l * s->o + o] = n[l];
    }
}

static int64_t lanes_count_pooled(const float *x, const uint8_t *place, int64_t n)
{
    int64_t count = 0;

    for (int64_t i = 0; i < n * LANES; i += LANES) {
        const ivec at = __builtin_convertvector(*(const bvec *)(place + i), ivec);
        const ivec lives = at != (ivec){0} + NATIVE_NOWHERE;

        count += __builtin_popcount(lanes_nonzero((vec)((ivec)lanes_load(x + i) & lives)));
    }
    return count;
}

/* The same for a vector of pooled gradients, each of which stands at its place in a window. */
LANES_INLINE vec lanes_list_window(native_spot *spot, int32_t *n, const float *d,
                                   const uint8_t *place, int64_t at, const native_sparse *s)
{
    const ivec tap = __builtin_convertvector(*(const bvec *)place, ivec);
    const vec lives = (vec)((ivec)lanes_load(d) & (tap != (ivec){0} + NATIVE_NOWHERE));

    for (unsigned mask = lanes_nonzero(lives); mask; mask &= mask - 1) {
        const int l = __builtin_ctz(mask);

        spot[l * s->spots + n[l]++] = (native_spot){d[l], (int32_t)at + s->tap[place[l]]};
    }
    return lives;
}

static void lanes_list_pooled(native_spot *spot, int32_t *end, float *bias_sum, const float *dy,
                              const uint8_t *place, const native_sparse *s)
{
    int32_t n[LANES] = {0};

    for (int64_t o = 0; o < s->o; o++) {
        vec sum = lanes_load(bias_sum + o * LANES);

        for (int64_t u = 0; u < s->oh; u++)
            for (int64_t v = 0; v < s->ow; v++, dy += LANES, place += LANES)
                sum += lanes_list_window(spot, n, dy, place,
                                         u * s->stride_h * s->row + v * s->stride_w * s->c, s);
        lanes_store(bias_sum + o * LANES, sum);
        for (int l = 0; l < LANES; l++)
            end[l * s->o + o] = n[l];
    }
}

/* `rows` x `vecs` vectors of one channel's sum, over the spots of `samples` samples. */
LANES_INLINE void lanes_sparse_weight_tile(float *sum, const float *x, const native_spot *spot,
                                           const int32_t *end, int64_t o, int64_t samples,
                                           const native_sparse *s, const int rows, const int vecs)
{
    vec part[LANES_SPARSE_ROWS][LANES_SPARSE_VECS];

    LANES_UNROLL for (int r = 0; r < rows; r++) LANES_UNROLL for (int v = 0; v < vecs; v++)
        part[r][v] = lanes_load(sum + r * s->part + v * LANES);
    for (int64_t l = 0; l < samples; l++) {
        const native_spot *p = spot + l * s->spots + (o ? end[l * s->o + o - 1] : 0);
        const native_spot *last = spot + l * s->spots + end[l * s->o + o];

        for (; p < last; p++) {
            const float *in = x + l * s->sample + p->at;
            const vec d = lanes_splat(p->value);

            LANES_UNROLL for (int r = 0; r < rows; r++) LANES_UNROLL for (int v = 0; v < vecs; v++)
                part[r][v] += lanes_load_any(in + r * s->row + v * LANES) * d;
        }
    }
    LANES_UNROLL for (int r = 0; r < rows; r++) LANES_UNROLL for (int v = 0; v < vecs; v++)
        lanes_store(sum + r * s->part + v * LANES, part[r][v]);
}

/* The same rows of the input's gradient += each spot * the channel's weight. */
LANES_INLINE void lanes_sparse_data_tile(float *dx, const float *weight, const native_spot *p,
                                         const native_spot *last, const native_sparse *s,
                                         const int rows, const int vecs)
{
    vec part[LANES_SPARSE_ROWS][LANES_SPARSE_VECS];

    LANES_UNROLL for (int r = 0; r < rows; r++) LANES_UNROLL for (int v = 0; v < vecs; v++)
        part[r][v] = lanes_load(weight + r * s->part + v * LANES);
    for (; p < last; p++) {
        float *out = dx + p->at;
        const vec d = lanes_splat(p->value);

        LANES_UNROLL for (int r = 0; r < rows; r++) LANES_UNROLL for (int v = 0; v < vecs; v++)
        {
            float *to = out + r * s->row + v * LANES;

            lanes_store_any(to, lanes_load_any(to) + part[r][v] * d);
        }
    }
}

#define LANES_SPARSE_WEIGHT(r, v)                                                                  \
    case (r)*8 + (v):                                                                              \
        lanes_sparse_weight_tile(sum, x, spot, end, o, samples, s, r, v);                          \
        break;
#define LANES_SPARSE_DATA(r, v)                                                                    \
    case (r)*8 + (v):                                                                              \
        lanes_sparse_data_tile(dx, weight, p, last, s, r, v);                                      \
        break;

static void lanes_sparse_weight_any(float *sum, const float *x, const native_spot *spot,
                                    const int32_t *end, int64_t o, int64_t samples,
                                    const native_sparse *s, int rows, int vecs)
{
    switch (rows * 8 + vecs) {
        LANES_SPARSE_CASES(LANES_SPARSE_WEIGHT)
    default:
        break;
    }
}

static void lanes_sparse_data_any(float *dx, const float *weight, const native_spot *p,
                                  const native_spot *last, const native_sparse *s, int rows,
                                  int vecs)
{
    switch (rows * 8 + vecs) {
        LANES_SPARSE_CASES(LANES_SPARSE_DATA)
    default:
        break;
    }
}

static int lanes_least(int64_t a, int64_t b)
{
    return (int)(a < b ? a : b);
}

static void lanes_sparse_weight(float *sum, const float *x, const native_spot *spot,
                                const int32_t *end, int64_t samples, const native_sparse *s)
{
    const int64_t vecs = s->part / LANES;

    for (int64_t o = 0; o < s->o; o++, sum += s->kh * s->part)
        for (int64_t r = 0; r < s->kh; r += LANES_SPARSE_ROWS)
            for (int64_t v = 0; v < vecs; v += LANES_SPARSE_VECS)
                lanes_sparse_weight_any(sum + r * s->part + v * LANES, x + r * s->row + v * LANES,
                                        spot, end, o, samples, s,
                                        lanes_least(s->kh - r, LANES_SPARSE_ROWS),
                                        lanes_least(vecs - v, LANES_SPARSE_VECS));
}

static void lanes_sparse_data(float *dx, const float *weight, const native_spot *spot,
                              const int32_t *end, const native_sparse *s)
{
    const int64_t vecs = s->part / LANES;
    const native_spot *p = spot;

    for (int64_t o = 0; o < s->o; o++, weight += s->kh * s->part) {
        const native_spot *last = spot + end[o];

        for (int64_t r = 0; r < s->kh; r += LANES_SPARSE_ROWS)
            for (int64_t v = 0; v < vecs; v += LANES_SPARSE_VECS)
                lanes_sparse_data_any(dx + r * s->row + v * LANES, weight + r * s->part + v * LANES,
                                      p, last, s, lanes_least(s->kh - r, LANES_SPARSE_ROWS),
                                      lanes_least(vecs - v, LANES_SPARSE_VECS));
        p = last;
    }
}
