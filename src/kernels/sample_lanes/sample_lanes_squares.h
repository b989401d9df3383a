/*
 * sample_lanes_squares.h - the input's gradient from the spots of the output's. Included only by
 * sample_lanes_impl.h, once per instruction set.
 *
 * The rows of a kernel that one spot adds to overlap with those of its neighbours, so a load waits
 * for the stores of the spot before. Here a sample's spots are first sorted by squares of outputs:
 * all of a square add to the same rows of inputs, which stay in registers meanwhile. Where in its
 * square a spot is decides which weight it multiplies: a channel's is stored for each column of a
 * square, with zeros beside it, or once where columns are whole vectors apart; rows of zeros
 * between channels are shared by all rows.
 */

/* Rows and vectors of a square's inputs that are kept in registers. */
#define LANES_SQUARE_COLUMNS(call, r) call(r, 1) call(r, 2) LANES_SQUARE_MORE(call, r)
#if LANES_SQUARE_VECS > 2
#define LANES_SQUARE_MORE(call, r) call(r, 3) call(r, 4)
#else
#define LANES_SQUARE_MORE(call, r)
#endif
#define LANES_SQUARE_ROWS 6
#define LANES_SQUARE_CASES(call)                                                                   \
    LANES_SQUARE_COLUMNS(call, 1)                                                                  \
    LANES_SQUARE_COLUMNS(call, 2)                                                                  \
    LANES_SQUARE_COLUMNS(call, 3)                                                                  \
    LANES_SQUARE_COLUMNS(call, 4)                                                                  \
    LANES_SQUARE_COLUMNS(call, 5)                                                                  \
    LANES_SQUARE_COLUMNS(call, 6)

static void lanes_sort_spots(const lanes_sorting *by, const lanes_spots *spots,
                             const lanes_sparse *s, const lanes_squares *q)
{
    const int32_t *at = spots->at;
    const float *value = spots->value;
    const uint32_t room = (uint32_t)q->room;
    int32_t *count = by->count;
    lanes_sorted *sorted = by->sorted;
    int32_t p = 0;

    memset(count, 0, (size_t)q->n * sizeof(*count));
    for (int64_t o = 0, weight = q->ahead; o < s->o; o++, weight += q->channel)
        for (const int32_t end = spots->end[o]; p < end; p++) {
            const lanes_place to = by->place[at[p]];

            sorted[to.square * room + (uint32_t)count[to.square]++] =
                (lanes_sorted){value[p], (int32_t)weight + to.weight};
        }
}

/* dx += the sum over `n` spots of value * weight; `rows` and `vecs` are constants. */
SIMD_INLINE void lanes_square_add(float *dx, const float *weight, const lanes_sorted *spot,
                                  int64_t n, int64_t row, int64_t step, const int rows,
                                  const int vecs)
{
    vec part[LANES_SQUARE_ROWS][LANES_SQUARE_VECS];

    SIMD_UNROLL(8)
    for (int r = 0; r < rows; r++)
        SIMD_UNROLL(8) for (int v = 0; v < vecs; v++) part[r][v] = simd_splat(0);
    for (int64_t p = 0; p < n; p++) {
        const float *from = weight + spot[p].weight;
        const vec d = simd_splat(spot[p].value);

        SIMD_UNROLL(8)
        for (int r = 0; r < rows; r++, from += step)
            SIMD_UNROLL(8)
        for (int v = 0; v < vecs; v++)
            part[r][v] += simd_load(from + v * LANES) * d;
    }
    SIMD_UNROLL(8) for (int r = 0; r < rows; r++) SIMD_UNROLL(8) for (int v = 0; v < vecs; v++)
    {
        float *to = dx + r * row + v * LANES;

        simd_store_any(to, simd_load_any(to) + part[r][v]);
    }
}

#define LANES_SQUARE_ADD(r, v)                                                                     \
    case (r)*8 + (v):                                                                              \
        lanes_square_add(dx, weight, spot, n, row, step, r, v);                                    \
        break;

static void lanes_square_any(float *dx, const float *weight, const lanes_sorted *spot, int64_t n,
                             int64_t row, int64_t step, int rows, int vecs)
{
    switch (rows * 8 + vecs) {
        LANES_SQUARE_CASES(LANES_SQUARE_ADD)
    default:
        break;
    }
}

static void lanes_sparse_data(float *dx, const lanes_spots *spots, const lanes_sorting *by,
                              const lanes_sparse *s, const lanes_squares *q)
{
    const int64_t vecs = q->span / LANES, part = lanes_part(vecs, LANES_SQUARE_VECS);

    lanes_sort_spots(by, spots, s, q);
    for (int64_t r = 0; r < q->rows; r += LANES_SQUARE_ROWS)
        for (int64_t v = 0; v < vecs; v += part)
            for (int64_t i = 0; i < q->n; i++) {
                const int64_t top = i / q->across * LANES_SQUARE + r;
                const int64_t left = i % q->across * LANES_SQUARE * s->c + v * LANES;

                if (by->count[i])
                    lanes_square_any(dx + top * s->row + left, by->weight + r * q->wide + v * LANES,
                                     by->sorted + i * q->room, by->count[i], s->row, q->wide,
                                     lanes_least(q->rows - r, LANES_SQUARE_ROWS),
                                     lanes_least(vecs - v, part));
            }
}
