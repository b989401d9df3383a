/*
 * sample_lanes_picked.h - gradient of the weight of one input channel under 2 x 2 max pooling.
 * Included only by sample_lanes_impl.h, once per instruction set that picks lanes by masks.
 *
 * A window's gradient is of one of its four places, another one in each lane. What each tap
 * multiplies is picked: of two neighbours in each row, then of two rows. That takes (kh + 1) kw and
 * kh kw choices and kh kw products, where all four places would take 4 kh kw products. Unlike lists
 * of nonzeros it costs the same however many gradients are zero.
 */

/* Rows of taps, and taps of a row, whose sums stay in registers. */
#define LANES_PICKED_ROWS 5
#define LANES_PICKED_TAPS 3
#define LANES_PICKED_CASES(call)                                                                   \
    call(1, 1) call(1, 2) call(1, 3) call(2, 1) call(2, 2) call(2, 3) call(3, 1) call(3, 2)        \
        call(3, 3) call(4, 1) call(4, 2) call(4, 3) call(5, 1) call(5, 2) call(5, 3)

/* A row of windows of one output channel. */
typedef struct lanes_picked {
    const float *dy;
    const uint8_t *place;
    int64_t windows;
    const float *row[LANES_PICKED_ROWS + 1]; /* of x, from the first window's first tap on */
    int64_t step;                            /* floats of `sum` from one row of taps to the next */
} lanes_picked;

/* `rows` x `taps` sums; both are constants. */
SIMD_INLINE void lanes_picked_tile(float *sum, const lanes_picked *p, int64_t from, const int rows,
                                   const int taps)
{
    vec part[LANES_PICKED_ROWS][LANES_PICKED_TAPS];

    SIMD_UNROLL(8)
    for (int i = 0; i < rows; i++)
        SIMD_UNROLL(8)
    for (int j = 0; j < taps; j++)
        part[i][j] = simd_load(sum + i * p->step + j * LANES);
    for (int64_t v = 0; v < p->windows; v++) {
        const int64_t at = from + 2 * v * LANES;
        const simd_mask right = lanes_bits(p->place + v * LANES, 1);
        const simd_mask low = lanes_bits(p->place + v * LANES, 2);
        const vec d = lanes_live(p->dy + v * LANES, p->place + v * LANES);
        vec above[LANES_PICKED_TAPS] = {{0}};

        SIMD_UNROLL(8) for (int i = 0; i <= rows; i++)
        {
            SIMD_UNROLL(8) for (int j = 0; j < taps; j++)
            {
                const float *x = p->row[i] + at + j * LANES;
                const ivec here = simd_pick(right, (ivec)simd_load(x + LANES), (ivec)simd_load(x));

                if (i > 0)
                    part[i - 1][j] += (vec)simd_pick(low, here, (ivec)above[j]) * d;
                above[j] = (vec)here;
            }
        }
    }
    SIMD_UNROLL(8)
    for (int i = 0; i < rows; i++)
        SIMD_UNROLL(8)
    for (int j = 0; j < taps; j++)
        simd_store(sum + i * p->step + j * LANES, part[i][j]);
}

#define LANES_PICKED_CASE(i, j)                                                                    \
    case (i)*8 + (j):                                                                              \
        lanes_picked_tile(sum, p, from, i, j);                                                     \
        break;

static void lanes_picked_any(float *sum, const lanes_picked *p, int64_t from, int rows, int taps)
{
    switch (rows * 8 + taps) {
        LANES_PICKED_CASES(LANES_PICKED_CASE)
    default:
        break;
    }
}

/* The sum of a row's gradients that ReLU has not stopped; two at a time hide what an addition
   takes. */
static void lanes_picked_bias(float *sum, const float *dy, const uint8_t *place, int64_t windows)
{
    vec a = simd_load(sum), b = {0};
    int64_t v = 0;

    for (; v + LANES < windows * LANES; v += 2 * LANES) {
        a += lanes_live(dy + v, place + v);
        b += lanes_live(dy + v + LANES, place + v + LANES);
    }
    if (v < windows * LANES)
        a += lanes_live(dy + v, place + v);
    simd_store(sum, a + b);
}

static void lanes_correlate_picked(float *sum, float *bias_sum, const lanes_pooled *dy,
                                   const float *x, const lanes_window *s, int64_t begin,
                                   int64_t end)
{
    const int64_t width = (s->w + 2 * s->pad_w) * LANES, row = dy->ow * LANES;
    const int64_t part = lanes_part(s->kw, LANES_PICKED_TAPS);
    lanes_picked p = {.windows = dy->columns, .step = s->kw * LANES};

    for (int64_t u = 0; u < dy->rows; u++)
        for (int64_t i = 0; i < s->kh; i += LANES_PICKED_ROWS) {
            const int rows = lanes_least(s->kh - i, LANES_PICKED_ROWS);

            for (int r = 0; r <= rows; r++) {
                const int64_t from = 2 * u - s->pad_h + i + r;

                p.row[r] = from >= 0 && from < s->h ? x + from * width : dy->zeros;
            }
            for (int64_t o = begin; o < end; o++) {
                p.dy = dy->value + (o * dy->oh + u) * row;
                p.place = dy->place + (o * dy->oh + u) * row;
                if (i == 0)
                    lanes_picked_bias(bias_sum + o * LANES, p.dy, p.place, p.windows);
                for (int64_t j = 0; j < s->kw; j += part)
                    lanes_picked_any(sum + ((o * s->kh + i) * s->kw + j) * LANES, &p, j * LANES,
                                     rows, lanes_least(s->kw - j, part));
            }
        }
}
