/*
 * sample_lanes_pool.h - the pooling loops of sample_lanes_impl.h, which includes it once per
 * instruction set.
 */

/* Taps [begin, end) of a window at `first` that fall into [0, extent). */
SIMD_INLINE void lanes_clip(int64_t *begin, int64_t *end, int64_t first, int64_t n, int64_t extent)
{
    *begin = first < 0 ? -first : 0;
    *end = first + n > extent ? extent - first : n;
}

SIMD_INLINE ivec lanes_differ(vec a, vec b)
{
    return a != b;
}

/* Replace *best and *at where `value` is larger, or NaN (the only value that differs from
   itself). */
SIMD_INLINE void lanes_take_larger(vec *best, ivec *at, vec value, int32_t tap)
{
    const ivec wins = (value > *best) | lanes_differ(value, value);

    *best = simd_select(wins, value, *best);
    *at = (ivec)simd_select(wins, (vec)((ivec){0} + tap), (vec)*at);
}

/* Maximum of a window, and its place in *at. The first of equal values wins, and NaN beats any
   number. */
SIMD_INLINE vec lanes_find_max(ivec *at, const float *x, const lanes_pool *p, int64_t top,
                               int64_t left)
{
    int64_t i0, i1, j0, j1;
    vec best;

    lanes_clip(&i0, &i1, top, p->kh, p->h);
    lanes_clip(&j0, &j1, left, p->kw, p->w);
    best = simd_load(x + ((top + i0) * p->w + left + j0) * LANES);
    *at = (ivec){0} + (int32_t)(i0 * p->kw + j0);
    for (int64_t i = i0; i < i1; i++)
        for (int64_t j = j0; j < j1; j++)
            lanes_take_larger(&best, at, simd_load(x + ((top + i) * p->w + left + j) * LANES),
                              (int32_t)(i * p->kw + j));
    return best;
}

/* 2 x 2 windows that are inside the plane. */
static void lanes_maxpool_2x2(float *y, uint8_t *place, const float *x, const lanes_pool *p)
{
    for (int64_t u = 0; u < p->oh; u++)
        for (int64_t v = 0; v < p->ow; v++, y += LANES) {
            const float *from = x + (u * p->sh * p->w + v * p->sw) * LANES;
            vec best = simd_load(from);
            ivec at = {0};

            lanes_take_larger(&best, &at, simd_load(from + LANES), 1);
            lanes_take_larger(&best, &at, simd_load(from + p->w * LANES), 2);
            lanes_take_larger(&best, &at, simd_load(from + (p->w + 1) * LANES), 3);
            simd_store(y, best);
            if (place) {
                lanes_narrow(place, at);
                place += LANES;
            }
        }
}

static void lanes_maxpool(float *y, uint8_t *place, const float *x, const lanes_pool *p)
{
    if (p->kh == 2 && p->kw == 2 && p->ph == 0 && p->pw == 0 && (p->oh - 1) * p->sh + 2 <= p->h &&
        (p->ow - 1) * p->sw + 2 <= p->w) {
        lanes_maxpool_2x2(y, place, x, p);
        return;
    }
    for (int64_t u = 0; u < p->oh; u++)
        for (int64_t v = 0; v < p->ow; v++, y += LANES) {
            ivec at;

            simd_store(y, lanes_find_max(&at, x, p, u * p->sh - p->ph, v * p->sw - p->pw));
            if (place) {
                lanes_narrow(place, at);
                place += LANES;
            }
        }
}

static void lanes_relu_place(float *y, uint8_t *place, int64_t n)
{
    for (int64_t i = 0; i < n * LANES; i += LANES) {
        const vec value = simd_load(y + i);
        const ivec dead = value <= simd_splat(0);

        simd_store(y + i, (vec)((ivec)value & ~dead));
        if (place)
            lanes_narrow(place + i, lanes_widen(place + i) | (dead & LANES_NOWHERE));
    }
}

/* Add the gradient `d` of a window at the place of its maximum. `disjoint`: windows do not overlap,
   so store instead of add. */
SIMD_INLINE void lanes_put_max(float *dx, ivec at, ivec d, const lanes_pool *p, int64_t top,
                               int64_t left, const bool disjoint)
{
    int64_t i0, i1, j0, j1;

    lanes_clip(&i0, &i1, top, p->kh, p->h);
    lanes_clip(&j0, &j1, left, p->kw, p->w);
    for (int64_t i = i0; i < i1; i++)
        for (int64_t j = j0; j < j1; j++) {
            float *to = dx + ((top + i) * p->w + left + j) * LANES;
            const ivec won = at == (ivec){0} + (int32_t)(i * p->kw + j);
            const vec part = (vec)(won & d);

            simd_store(to, disjoint ? part : (vec)(simd_load(to) + part));
        }
}

SIMD_INLINE void lanes_maxpool_scatter(float *dx, const uint8_t *place, const float *dy,
                                       const lanes_pool *p, const bool disjoint)
{
    for (int64_t u = 0; u < p->oh; u++)
        for (int64_t v = 0; v < p->ow; v++, dy += LANES, place += LANES) {
            const ivec at = lanes_widen(place);

            lanes_put_max(dx, at, (ivec)simd_load(dy), p, u * p->sh - p->ph, v * p->sw - p->pw,
                          disjoint);
        }
}

static void lanes_maxpool_gradient(float *dx, const uint8_t *place, const float *dy,
                                   const lanes_pool *p)
{
    const bool disjoint = p->kh <= p->sh && p->kw <= p->sw;
    const bool covered = disjoint && p->oh * p->kh == p->h && p->ow * p->kw == p->w;

    if (!covered)
        memset(dx, 0, (size_t)(p->h * p->w * LANES) * sizeof(float));
    if (disjoint)
        lanes_maxpool_scatter(dx, place, dy, p, true);
    else
        lanes_maxpool_scatter(dx, place, dy, p, false);
}
