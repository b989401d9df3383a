/*
 * batchnorm_impl.h - the loops of batchnorm.h for LANES lanes. Included once for each instruction
 * set, by a file that defines LANES and NORM_TABLE, NORM_WIDE where blocks have several vectors,
 * and how a mask is made and used:
 *
 *   uint16_t norm_is_kept(vec v)           bit l: !(v[l] <= 0), so that a NaN stays one
 *   vec norm_keep(vec v, uint16_t bits)    v where the bit is set, else 0
 *
 * Tensors are of floats or BF16, as cell.h was included. Independent of calls, tensors and plans.
 */
#include <string.h>

/* Vectors that stay in a first-level cache while their mean is computed. Sums within it are floats,
   beyond it doubles. */
#define NORM_CHUNK 128
#ifndef NORM_WIDE
#define NORM_WIDE 1 /* vectors of a block */
#endif
#define NORM_BLOCK (LANES * NORM_WIDE)

/* Each vector of a block. */
#define NORM_EACH(h) SIMD_UNROLL(2) for (int h = 0; h < NORM_WIDE; h++)

typedef struct norm_sum {
    vec a[NORM_WIDE], b[NORM_WIDE];
} norm_sum;

/* The mean, or another number, of each lane. */
typedef struct norm_lanes {
    vec v[NORM_WIDE];
} norm_lanes;

SIMD_INLINE norm_lanes norm_load_lanes(const float *from)
{
    norm_lanes all;

    NORM_EACH(h) all.v[h] = simd_load(from + h * LANES);
    return all;
}

SIMD_INLINE void norm_store_lanes(cell *to, const norm_lanes *from)
{
    NORM_EACH(h) cell_store(to + h * LANES, from->v[h]);
}

/* Bits of the vector at element `at`. */
SIMD_INLINE void norm_put_bits(uint8_t *mask, int64_t at, uint16_t bits)
{
    memcpy(mask + norm_mask_bytes(at, LANES), &bits, (size_t)norm_mask_bytes(LANES, LANES));
}

SIMD_INLINE uint16_t norm_get_bits(const uint8_t *mask, int64_t at)
{
    uint16_t bits = 0;

    memcpy(&bits, mask + norm_mask_bytes(at, LANES), (size_t)norm_mask_bytes(LANES, LANES));
    return bits;
}

/* Where the vectors of some planes are: rows of them. */
typedef struct norm_rows {
    int64_t count, n;       /* rows, vectors of each */
    int64_t next_row, next; /* elements from one to the next */
    int64_t at;             /* first element */
} norm_rows;

/* Planes of one vector are one row. */
SIMD_INLINE norm_rows norm_lay_rows(int64_t at, int64_t count, int64_t n, const norm_planes *planes)
{
    const int64_t step = planes->step;

    if (n == 1)
        return (norm_rows){.count = 1, .n = count, .next = step, .at = at};
    return (norm_rows){.count = count, .n = n, .next_row = step, .next = NORM_BLOCK, .at = at};
}

SIMD_INLINE norm_rows norm_all_rows(const norm_planes *planes)
{
    return norm_lay_rows(0, planes->count, planes->n, planes);
}

/* The next chunk, whole planes or part of one, which begins at `plane` and `vector`. */
SIMD_INLINE bool norm_next_chunk(norm_rows *out, int64_t *plane, int64_t *vector,
                                 const norm_planes *planes)
{
    const int64_t most = planes->n < NORM_CHUNK ? NORM_CHUNK / planes->n : 1;
    const int64_t rest = planes->count - *plane, left = planes->n - *vector;

    if (rest <= 0)
        return false;
    *out = norm_lay_rows(*plane * planes->step + *vector * NORM_BLOCK, rest < most ? rest : most,
                         left < NORM_CHUNK ? left : NORM_CHUNK, planes);
    *vector += NORM_CHUNK;
    if (*vector >= planes->n) {
        *vector = 0;
        *plane += most;
    }
    return true;
}

/* Fetch so many vectors some time before they are read or, with `write`, written. */
SIMD_INLINE void norm_fetch(const cell *x, const int vectors, const int write)
{
    const int line = SIMD_LINE / (int)sizeof(cell);

    SIMD_UNROLL(8)
    for (int i = 0; i < vectors * NORM_BLOCK; i += line)
        if (write)
            simd_fetch_to_write(x + i);
        else
            simd_fetch(x + i);
}

SIMD_INLINE void norm_sum_vectors(norm_lanes *sum, const cell *x)
{
    NORM_EACH(h) sum->v[h] += cell_load(x + h * LANES);
}

static norm_lanes norm_chunk_mean(const cell *x, const norm_rows *rows)
{
    norm_lanes sum[4] = {{{{0}}}};

    for (int64_t r = 0; r < rows->count; r++) {
        const cell *row = x + rows->at + r * rows->next_row;
        int64_t i = 0;

        for (; i + 4 <= rows->n; i += 4) {
            norm_fetch(row + i * rows->next, 4, 0);
            for (int k = 0; k < 4; k++)
                norm_sum_vectors(&sum[k], row + (i + k) * rows->next);
        }
        for (; i < rows->n; i++)
            norm_sum_vectors(&sum[0], row + i * rows->next);
    }
    NORM_EACH(h)
    sum[0].v[h] = ((sum[0].v[h] + sum[1].v[h]) + (sum[2].v[h] + sum[3].v[h])) *
                  (1.0f / (float)(rows->count * rows->n));
    return sum[0];
}

SIMD_INLINE norm_sum norm_join_sums(const norm_sum *part)
{
    norm_sum all;

    NORM_EACH(h)
    {
        all.a[h] = (part[0].a[h] + part[1].a[h]) + (part[2].a[h] + part[3].a[h]);
        all.b[h] = (part[0].b[h] + part[1].b[h]) + (part[2].b[h] + part[3].b[h]);
    }
    return all;
}

SIMD_INLINE void norm_add_squares(norm_sum *sum, const cell *x, const norm_lanes *mean)
{
    NORM_EACH(h)
    {
        const vec d = cell_load(x + h * LANES) - mean->v[h];

        sum->a[h] += d;
        sum->b[h] += d * d;
    }
}

/* a: sum (x - mean), the rounding error left in the mean; b: sum (x - mean)^2 */
static norm_sum norm_chunk_squares(const cell *x, const norm_lanes *mean, const norm_rows *rows)
{
    norm_sum sum[4] = {{{{0}}, {{0}}}};

    for (int64_t r = 0; r < rows->count; r++) {
        const cell *row = x + rows->at + r * rows->next_row;
        int64_t i = 0;

        for (; i + 4 <= rows->n; i += 4)
            for (int k = 0; k < 4; k++)
                norm_add_squares(&sum[k], row + (i + k) * rows->next, mean);
        for (; i < rows->n; i++)
            norm_add_squares(&sum[0], row + i * rows->next, mean);
    }
    return norm_join_sums(sum);
}

/* Two passes over each chunk, with a correction, and chunks joined, both after Chan, Golub &
   LeVeque ("Algorithms for computing the sample variance", 1983). */
static void norm_measure(norm_part *out, const void *data, const norm_planes *planes)
{
    int64_t plane = 0, vector = 0;
    double count = 0;
    norm_rows rows;

    for (int l = 0; l < NORM_BLOCK; l++)
        out->a[l] = out->b[l] = 0;
    while (norm_next_chunk(&rows, &plane, &vector, planes)) {
        const norm_lanes mean = norm_chunk_mean(data, &rows);
        const norm_sum s = norm_chunk_squares(data, &mean, &rows);
        const double len = (double)(rows.count * rows.n);
        const double each = 1 / len, share = len / (count + len);

        for (int l = 0; l < NORM_BLOCK; l++) {
            const double off = (double)s.a[l / LANES][l % LANES], rest = off * each;
            const double d = (double)mean.v[l / LANES][l % LANES] + rest - out->a[l];

            out->a[l] += d * share;
            out->b[l] += (double)s.b[l / LANES][l % LANES] - rest * off + d * d * share * count;
        }
        count += len;
    }
}

/* The epilogue of the vector v at element `at`. */
SIMD_INLINE vec norm_end(vec v, uint8_t *mask, const cell *other, norm_tail tail, int64_t at)
{
    if (tail == NORM_ADD || tail == NORM_ADD_RELU)
        v += cell_load(other + at);
    if (tail == NORM_RELU || tail == NORM_ADD_RELU || tail == NORM_RELU_ADD) {
        const uint16_t bits = norm_is_kept(v);

        v = norm_keep(v, bits);
        if (mask)
            norm_put_bits(mask, at, bits);
    }
    if (tail == NORM_RELU_ADD)
        v += cell_load(other + at);
    return v;
}

SIMD_INLINE void norm_apply_tail(cell *y, uint8_t *mask, const cell *x, const cell *other,
                                 const norm_line *line, norm_tail tail, const norm_rows *rows)
{
    const norm_lanes mean = norm_load_lanes(line->mean), scale = norm_load_lanes(line->scale),
                     shift = norm_load_lanes(line->shift);

    for (int64_t r = 0; r < rows->count; r++)
        for (int64_t i = 0; i < rows->n; i++) {
            const int64_t first = r * rows->next_row + i * rows->next;
            norm_lanes all;

            if (i % 2 == 0) {
                norm_fetch(x + first, 2, 0);
                if (other)
                    norm_fetch(other + first, 2, 0);
                norm_fetch(y + first, 2, 1);
            }
            NORM_EACH(h)
            {
                const int64_t at = first + h * LANES;
                const vec v = (cell_load(x + at) - mean.v[h]) * scale.v[h] + shift.v[h];

                all.v[h] = norm_end(v, mask, other, tail, at);
            }
            norm_store_lanes(y + first, &all);
        }
}

/* The epilogue is a constant in each branch. */
static void norm_apply(void *y, uint8_t *mask, const void *x, const void *other,
                       const norm_line *line, norm_tail tail, const norm_planes *planes)
{
    const norm_rows rows = norm_all_rows(planes);

    switch (tail) {
    case NORM_RELU:
        norm_apply_tail(y, mask, x, other, line, NORM_RELU, &rows);
        break;
    case NORM_ADD:
        norm_apply_tail(y, mask, x, other, line, NORM_ADD, &rows);
        break;
    case NORM_ADD_RELU:
        norm_apply_tail(y, mask, x, other, line, NORM_ADD_RELU, &rows);
        break;
    case NORM_RELU_ADD:
        norm_apply_tail(y, mask, x, other, line, NORM_RELU_ADD, &rows);
        break;
    default:
        norm_apply_tail(y, mask, x, other, line, NORM_PLAIN, &rows);
    }
}

/* d of the vector at element `at`; also stores the gradient of the sum. */
SIMD_INLINE vec norm_take(const norm_back *back, bool sum, bool mask, bool mask_sum, int64_t at)
{
    vec d = cell_load((const cell *)back->dy + at);

    if (back->more)
        d += cell_load((const cell *)back->more + at);
    if (mask && mask_sum)
        d = norm_keep(d, norm_get_bits(back->mask, at));
    if (sum)
        cell_store((cell *)back->sum + at, d);
    if (mask && !mask_sum)
        d = norm_keep(d, norm_get_bits(back->mask, at));
    return d;
}

SIMD_INLINE void norm_fetch_back(const norm_back *back, int64_t at, const int vectors)
{
    norm_fetch((const cell *)back->x + at, vectors, 0);
    norm_fetch((const cell *)back->dy + at, vectors, 0);
    if (back->more)
        norm_fetch((const cell *)back->more + at, vectors, 0);
}

SIMD_INLINE void norm_add_products(norm_sum *to, const norm_back *back, const norm_lanes *mean,
                                   bool sum, bool mask, bool mask_sum, int64_t at)
{
    NORM_EACH(h)
    {
        const vec d = norm_take(back, sum, mask, mask_sum, at + h * LANES);

        to->a[h] += d;
        to->b[h] += d * (cell_load((const cell *)back->x + at + h * LANES) - mean->v[h]);
    }
}

SIMD_INLINE norm_sum norm_reduce_chunk(const norm_back *back, const norm_line *line, bool sum,
                                       bool mask, bool mask_sum, const norm_rows *rows)
{
    const norm_lanes mean = norm_load_lanes(line->mean);
    norm_sum part[4] = {{{{0}}, {{0}}}};

    for (int64_t r = 0; r < rows->count; r++) {
        const int64_t row = rows->at + r * rows->next_row;
        int64_t i = 0;

        for (; i + 4 <= rows->n; i += 4) {
            norm_fetch_back(back, row + i * rows->next, 4);
            for (int k = 0; k < 4; k++)
                norm_add_products(&part[k], back, &mean, sum, mask, mask_sum,
                                  row + (i + k) * rows->next);
        }
        for (; i < rows->n; i++)
            norm_add_products(&part[0], back, &mean, sum, mask, mask_sum, row + i * rows->next);
    }
    return norm_join_sums(part);
}

static void norm_reduce(norm_part *out, const norm_back *back, const norm_line *line,
                        const norm_planes *planes)
{
    int64_t plane = 0, vector = 0;
    norm_rows rows;

    for (int l = 0; l < NORM_BLOCK; l++)
        out->a[l] = out->b[l] = 0;
    while (norm_next_chunk(&rows, &plane, &vector, planes)) {
        norm_sum s;

        if (!back->mask)
            s = back->sum ? norm_reduce_chunk(back, line, true, false, false, &rows)
                          : norm_reduce_chunk(back, line, false, false, false, &rows);
        else if (!back->sum)
            s = norm_reduce_chunk(back, line, false, true, false, &rows);
        else if (back->mask_sum)
            s = norm_reduce_chunk(back, line, true, true, true, &rows);
        else
            s = norm_reduce_chunk(back, line, true, true, false, &rows);
        for (int l = 0; l < NORM_BLOCK; l++) {
            out->a[l] += (double)s.a[l / LANES][l % LANES];
            out->b[l] += (double)s.b[l / LANES][l % LANES];
        }
    }
}

SIMD_INLINE void norm_gradient_masked(cell *dx, const norm_back *back, const norm_line *line,
                                      bool mask, const norm_rows *rows)
{
    const norm_lanes mean = norm_load_lanes(line->mean), scale = norm_load_lanes(line->scale),
                     slope = norm_load_lanes(line->slope), shift = norm_load_lanes(line->shift);

    for (int64_t r = 0; r < rows->count; r++)
        for (int64_t i = 0; i < rows->n; i++) {
            const int64_t first = r * rows->next_row + i * rows->next;
            norm_lanes all;

            if (i % 2 == 0) {
                norm_fetch_back(back, first, 2);
                norm_fetch(dx + first, 2, 1);
            }
            NORM_EACH(h)
            {
                const int64_t at = first + h * LANES;
                const vec d = norm_take(back, false, mask, false, at);
                const vec z = cell_load((const cell *)back->x + at) - mean.v[h];

                all.v[h] = d * scale.v[h] + (z * slope.v[h] + shift.v[h]);
            }
            norm_store_lanes(dx + first, &all);
        }
}

static void norm_gradient(void *dx, const norm_back *back, const norm_line *line,
                          const norm_planes *planes)
{
    const norm_rows rows = norm_all_rows(planes);

    if (back->mask)
        norm_gradient_masked(dx, back, line, true, &rows);
    else
        norm_gradient_masked(dx, back, line, false, &rows);
}

const norm_loops NORM_TABLE = {
    .lanes = NORM_BLOCK,
    .cell = sizeof(cell),
    .measure = norm_measure,
    .apply = norm_apply,
    .reduce = norm_reduce,
    .gradient = norm_gradient,
};
