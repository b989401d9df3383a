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

/* A value and its place in the window. */
typedef struct lanes_found {
    vec value;
    ivec at;
} lanes_found;

/* The larger of two; the first of equal ones, and NaN before any number. */
SIMD_INLINE lanes_found lanes_larger(lanes_found a, lanes_found b)
{
    const simd_mask wins = simd_greater_or_nan(b.value, a.value);

    return (lanes_found){(vec)simd_pick(wins, (ivec)b.value, (ivec)a.value),
                         simd_pick(wins, b.at, a.at)};
}

/* Store a maximum and its place, if wanted, after ReLU. */
SIMD_INLINE void lanes_put_found(float *y, uint8_t *place, lanes_found found, const bool relu)
{
    if (relu) {
        const simd_mask dead = simd_at_most(found.value, simd_splat(0));

        found.value = (vec)simd_pick(dead, (ivec){0}, (ivec)found.value);
        found.at = simd_pick(dead, (ivec){0} + LANES_NOWHERE, found.at);
    }
    simd_store(y, found.value);
    if (place)
        lanes_narrow(place, found.at);
}

/* 2 x 2 windows that are inside the plane. */
SIMD_INLINE void lanes_maxpool_2x2(float *y, uint8_t *place, const float *x, const lanes_pool *p,
                                   const bool relu)
{
    const ivec none = {0};

    for (int64_t u = 0; u < p->oh; u++)
        for (int64_t v = 0; v < p->ow; v++) {
            const int64_t at = (u * p->step + v) * LANES;
            const float *from = x + (u * p->sh * p->w + v * p->sw) * LANES;
            const float *below = from + p->w * LANES;
            const lanes_found top = lanes_larger((lanes_found){simd_load(from), none},
                                                 (lanes_found){simd_load(from + LANES), none + 1});
            const lanes_found low = lanes_larger((lanes_found){simd_load(below), none + 2},
                                                 (lanes_found){simd_load(below + LANES), none + 3});

            lanes_put_found(y + at, place ? place + at : NULL, lanes_larger(top, low), relu);
        }
}

static void lanes_maxpool(float *y, uint8_t *place, const float *x, const lanes_pool *p)
{
    if (p->kh == 2 && p->kw == 2 && p->ph == 0 && p->pw == 0 && (p->oh - 1) * p->sh + 2 <= p->h &&
        (p->ow - 1) * p->sw + 2 <= p->w) {
        if (p->relu)
            lanes_maxpool_2x2(y, place, x, p, true);
        else
            lanes_maxpool_2x2(y, place, x, p, false);
        return;
    }
    for (int64_t u = 0; u < p->oh; u++)
        for (int64_t v = 0; v < p->ow; v++) {
            const int64_t at = (u * p->step + v) * LANES;
            lanes_found found;

            found.value = lanes_find_max(&found.at, x, p, u * p->sh - p->ph, v * p->sw - p->pw);
            lanes_put_found(y + at, place ? place + at : NULL, found, p->relu);
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
    const bool whole = p->ph == 0 && p->pw == 0 && p->oh * p->kh == p->h && p->ow * p->kw == p->w;

    if (!disjoint || !whole) /* some pixel may be in no window */
        memset(dx, 0, (size_t)(p->h * p->w * LANES) * sizeof(float));
    if (disjoint)
        lanes_maxpool_scatter(dx, place, dy, p, true);
    else
        lanes_maxpool_scatter(dx, place, dy, p, false);
}
