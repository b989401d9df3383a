/*
 * norm_impl.h - the loops of norm.h for LANES lanes. Included once for each instruction set, by a
 * file that defines LANES and NORM_TABLE, and how a mask is made and used:
 *
 *   uint16_t norm_is_kept(vec v)           bit l: !(v[l] <= 0), so that a NaN stays one
 *   vec norm_keep(vec v, uint16_t bits)    v where the bit is set, else 0
 *
 * and how a vector lies in memory (norm_float.h for floats):
 *
 *   cell                                   float, or the bits of a BF16
 *   vec norm_load(const cell *from)
 *   void norm_store(cell *to, vec value)
 *
 * Must not know calls, tensors or plans.
 */
/* Vectors that stay in a first-level cache while their mean is found. Sums over so many are floats,
   beyond it doubles. */
#define NORM_CHUNK 128

#define NORM_INLINE static inline __attribute__((always_inline))

typedef struct norm_sum {
    vec a, b;
} norm_sum;

NORM_INLINE vec norm_number(const float *of)
{
    return *(const vec *)of;
}

NORM_INLINE void norm_put_bits(uint8_t *mask, int64_t i, uint16_t bits)
{
    mask[i * (LANES / 8)] = (uint8_t)bits;
    if (LANES == 16)
        mask[i * (LANES / 8) + LANES / 8 - 1] = (uint8_t)(bits >> 8);
}

NORM_INLINE uint16_t norm_get_bits(const uint8_t *mask, int64_t i)
{
    const uint8_t *of = mask + i * (LANES / 8);

    return LANES == 16 ? (uint16_t)(of[0] | (unsigned)of[LANES / 8 - 1] << 8) : of[0];
}

static vec norm_chunk_mean(const cell *x, int64_t n)
{
    vec sum[4] = {{0}};
    int64_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++)
            sum[k] += norm_load(x + (i + k) * LANES);
    for (; i < n; i++)
        sum[0] += norm_load(x + i * LANES);
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) * (1.0f / (float)n);
}

/* sum (x - mean), which is what rounding has left in the mean; and sum (x - mean)^2 */
static norm_sum norm_chunk_squares(const cell *x, vec mean, int64_t n)
{
    vec rest[4] = {{0}}, sum[4] = {{0}};
    int64_t i = 0;

    for (; i + 4 <= n; i += 4)
        for (int k = 0; k < 4; k++) {
            const vec d = norm_load(x + (i + k) * LANES) - mean;

            rest[k] += d;
            sum[k] += d * d;
        }
    for (; i < n; i++) {
        const vec d = norm_load(x + i * LANES) - mean;

        rest[0] += d;
        sum[0] += d * d;
    }
    return (norm_sum){(rest[0] + rest[1]) + (rest[2] + rest[3]),
                      (sum[0] + sum[1]) + (sum[2] + sum[3])};
}

/* Each chunk in two passes, corrected, and chunks joined, both after Chan, Golub & LeVeque
   ("Algorithms for computing the sample variance", 1983). */
static void norm_measure(norm_part *out, const void *data, int64_t n)
{
    const cell *x = data;
    double count = 0;

    for (int l = 0; l < LANES; l++)
        out->a[l] = out->b[l] = 0;
    for (int64_t i = 0; i < n; i += NORM_CHUNK) {
        const int64_t len = n - i < NORM_CHUNK ? n - i : NORM_CHUNK;
        const vec mean = norm_chunk_mean(x + i * LANES, len);
        const norm_sum s = norm_chunk_squares(x + i * LANES, mean, len);
        const double each = 1 / (double)len, share = (double)len / (count + (double)len);

        for (int l = 0; l < LANES; l++) {
            const double rest = (double)s.a[l] * each;
            const double d = (double)mean[l] + rest - out->a[l];

            out->a[l] += d * share;
            out->b[l] += (double)s.b[l] - rest * (double)s.a[l] + d * d * share * count;
        }
        count += (double)len;
    }
}

NORM_INLINE void norm_apply_tail(cell *y, uint8_t *mask, const cell *x, const cell *other,
                                 const norm_line *line, norm_tail tail, int64_t n)
{
    const vec mean = norm_number(line->mean), scale = norm_number(line->scale),
              shift = norm_number(line->shift);

    for (int64_t i = 0; i < n; i++) {
        vec v = (norm_load(x + i * LANES) - mean) * scale + shift;

        if (tail == NORM_ADD || tail == NORM_ADD_RELU)
            v += norm_load(other + i * LANES);
        if (tail == NORM_RELU || tail == NORM_ADD_RELU || tail == NORM_RELU_ADD) {
            const uint16_t bits = norm_is_kept(v);

            v = norm_keep(v, bits);
            if (mask)
                norm_put_bits(mask, i, bits);
        }
        if (tail == NORM_RELU_ADD)
            v += norm_load(other + i * LANES);
        norm_store(y + i * LANES, v);
    }
}

/* The tail is a constant in each branch. */
static void norm_apply(void *y, uint8_t *mask, const void *x, const void *other,
                       const norm_line *line, norm_tail tail, int64_t n)
{
    switch (tail) {
    case NORM_RELU:
        norm_apply_tail(y, mask, x, other, line, NORM_RELU, n);
        break;
    case NORM_ADD:
        norm_apply_tail(y, mask, x, other, line, NORM_ADD, n);
        break;
    case NORM_ADD_RELU:
        norm_apply_tail(y, mask, x, other, line, NORM_ADD_RELU, n);
        break;
    case NORM_RELU_ADD:
        norm_apply_tail(y, mask, x, other, line, NORM_RELU_ADD, n);
        break;
    default:
        norm_apply_tail(y, mask, x, other, line, NORM_PLAIN, n);
    }
}

/* d of vector i, and on the way the gradient of the sum. */
NORM_INLINE vec norm_take(const norm_back *back, bool sum, bool mask, bool mask_sum, int64_t i)
{
    vec d = norm_load((const cell *)back->dy + i * LANES);

    if (back->more)
        d += norm_load((const cell *)back->more + i * LANES);
    if (mask && mask_sum)
        d = norm_keep(d, norm_get_bits(back->mask, i));
    if (sum)
        norm_store((cell *)back->sum + i * LANES, d);
    if (mask && !mask_sum)
        d = norm_keep(d, norm_get_bits(back->mask, i));
    return d;
}

NORM_INLINE norm_sum norm_reduce_chunk(const norm_back *back, const norm_line *line, bool sum,
                                       bool mask, bool mask_sum, int64_t from, int64_t to)
{
    const vec mean = norm_number(line->mean);
    vec a[4] = {{0}}, b[4] = {{0}};
    int64_t i = from;

    for (; i + 4 <= to; i += 4)
        for (int k = 0; k < 4; k++) {
            const vec d = norm_take(back, sum, mask, mask_sum, i + k);

            a[k] += d;
            b[k] += d * (norm_load((const cell *)back->x + (i + k) * LANES) - mean);
        }
    for (; i < to; i++) {
        const vec d = norm_take(back, sum, mask, mask_sum, i);

        a[0] += d;
        b[0] += d * (norm_load((const cell *)back->x + i * LANES) - mean);
    }
    return (norm_sum){(a[0] + a[1]) + (a[2] + a[3]), (b[0] + b[1]) + (b[2] + b[3])};
}

static void norm_reduce(norm_part *out, const norm_back *back, const norm_line *line, int64_t n)
{
    for (int l = 0; l < LANES; l++)
        out->a[l] = out->b[l] = 0;
    for (int64_t i = 0; i < n; i += NORM_CHUNK) {
        const int64_t to = n - i < NORM_CHUNK ? n : i + NORM_CHUNK;
        norm_sum s;

        if (!back->mask)
            s = back->sum ? norm_reduce_chunk(back, line, true, false, false, i, to)
                          : norm_reduce_chunk(back, line, false, false, false, i, to);
        else if (!back->sum)
            s = norm_reduce_chunk(back, line, false, true, false, i, to);
        else if (back->mask_sum)
            s = norm_reduce_chunk(back, line, true, true, true, i, to);
        else
            s = norm_reduce_chunk(back, line, true, true, false, i, to);
        for (int l = 0; l < LANES; l++) {
            out->a[l] += (double)s.a[l];
            out->b[l] += (double)s.b[l];
        }
    }
}

NORM_INLINE void norm_gradient_masked(cell *dx, const norm_back *back, const norm_line *line,
                                      bool mask, int64_t n)
{
    const vec mean = norm_number(line->mean), scale = norm_number(line->scale),
              slope = norm_number(line->slope), shift = norm_number(line->shift);

    for (int64_t i = 0; i < n; i++) {
        const vec d = norm_take(back, false, mask, false, i);

        norm_store(dx + i * LANES,
                   d * scale +
                       ((norm_load((const cell *)back->x + i * LANES) - mean) * slope + shift));
    }
}

static void norm_gradient(void *dx, const norm_back *back, const norm_line *line, int64_t n)
{
    if (back->mask)
        norm_gradient_masked(dx, back, line, true, n);
    else
        norm_gradient_masked(dx, back, line, false, n);
}

const norm_loops NORM_TABLE = {
    .lanes = LANES,
    .cell = sizeof(cell),
    .measure = norm_measure,
    .apply = norm_apply,
    .reduce = norm_reduce,
    .gradient = norm_gradient,
};
