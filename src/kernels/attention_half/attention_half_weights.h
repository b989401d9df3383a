/*
 * attention_half_weights.h - what the loops of attention_half_impl.h have in memory, and the
 * weights that queries give to positions: P, the softmax of S, and backward dS.
 */
#include <math.h>
#include <string.h>

#include "kernels/attention_half/attention_half.h"

#define LANES 16

#include "kernels/half16_exp.h"

#define ATTENTION_HALF_PANEL   GEMM_HALF_PANEL
#define ATTENTION_HALF_CELLS   GEMM_HALF_CELLS
#define ATTENTION_HALF_GROUP   4 /* panels of queries that dk and dv take at once */
#define ATTENTION_HALF_AT_ONCE 4 /* panels of positions whose weights are made at once */

/* Panels of positions, and of numbers of a head, and where what is in room: packed factors as
   gemm_half.h has them, by what their lines are and what follows each other in a line. */
typedef struct attention_half_room {
    int64_t panels, sizes;
    uint16_t *keys, *values;            /* b: positions, of numbers */
    uint16_t *key_lines, *value_lines;  /* b: numbers, of positions */
    uint16_t *queries, *grads;          /* a: positions of one panel, of numbers */
    uint16_t *query_lines, *grad_lines; /* a: numbers, of positions */
    uint16_t *weights;                  /* a: one panel of P or dS, of positions */
    uint16_t *p, *ds;                   /* b: positions, of a group's queries */
    float *s, *dp;                      /* sums (positions' panels, 32 queries, 32) */
    float *dk, *dv;                     /* sums (numbers' panels, positions' panels, 32, 32) */
} attention_half_room;

static int64_t attention_half_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t attention_half_panels(int64_t n)
{
    return (n + ATTENTION_HALF_PANEL - 1) / ATTENTION_HALF_PANEL;
}

static uint16_t *attention_half_take(char *room, size_t *used, int64_t cells)
{
    const size_t at = *used;

    *used += (size_t)cells * ATTENTION_HALF_CELLS * sizeof(uint16_t);
    return room ? (uint16_t *)(void *)(room + at) : NULL;
}

static float *attention_half_take_floats(char *room, size_t *used, int64_t cells)
{
    return (float *)(void *)attention_half_take(room, used, 2 * cells);
}

static size_t attention_half_divide_room(attention_half_room *r, char *room,
                                         const attention_shape *shape)
{
    const int64_t n = attention_half_panels(shape->length), d = attention_half_panels(shape->size);
    size_t used = 0;

    r->panels = n;
    r->sizes = d;
    r->keys = attention_half_take(room, &used, n * d);
    r->values = attention_half_take(room, &used, n * d);
    r->key_lines = attention_half_take(room, &used, n * d);
    r->value_lines = r->key_lines; /* the other pass's */
    r->queries = attention_half_take(room, &used, d);
    r->grads = attention_half_take(room, &used, d);
    r->query_lines = attention_half_take(room, &used, n * d);
    r->grad_lines = attention_half_take(room, &used, n * d);
    r->weights = attention_half_take(room, &used, n);
    r->p = attention_half_take(room, &used, n * ATTENTION_HALF_GROUP);
    r->ds = attention_half_take(room, &used, n * ATTENTION_HALF_GROUP);
    r->s = attention_half_take_floats(room, &used, n);
    r->dp = attention_half_take_floats(room, &used, n);
    r->dk = attention_half_take_floats(room, &used, n * d);
    r->dv = attention_half_take_floats(room, &used, n * d);
    return used;
}

static size_t attention_half_room_bytes(const attention_shape *shape)
{
    attention_half_room room;

    return attention_half_divide_room(&room, NULL, shape);
}

/* --- softmax --- */

/* Queries t to t + n, which look at some panels of positions. */
typedef struct attention_half_rows {
    int64_t t, n, seen;
} attention_half_rows;

static attention_half_rows attention_half_find(const attention_shape *shape, int64_t t)
{
    const int64_t all = attention_half_panels(shape->length);

    return (attention_half_rows){t, attention_half_least(shape->length - t, ATTENTION_HALF_PANEL),
                                 shape->causal ? t / ATTENTION_HALF_PANEL + 1 : all};
}

/* Positions that query t looks at. */
static int64_t attention_half_seen(const attention_shape *shape, int64_t t)
{
    return shape->causal ? t + 1 : shape->length;
}

/* The first n lanes of x, then `other`. */
SIMD_INLINE vec attention_half_first(vec x, int64_t n, float other)
{
#ifdef __AVX512F__
    const __mmask16 mask = n >= LANES ? 0xffff : n <= 0 ? 0 : simd_first(n);

    return (vec)_mm512_mask_blend_ps(mask, _mm512_set1_ps(other), (__m512)x);
#else
    for (int64_t l = n < 0 ? 0 : n; l < LANES; l++)
        x[l] = other;
    return x;
#endif
}

SIMD_INLINE void attention_half_store(uint16_t *to, vec first, vec second)
{
    half16_store_two(to, first, second);
}

/* Two vectors of S in a cell, to exponentials that are not more than 1; `rest` positions of the row
   are left. */
SIMD_INLINE void attention_half_raise(vec sums[2], float *s, float scale, float most, int64_t rest,
                                      const bool whole)
{
    SIMD_UNROLL(2) for (int h = 0; h < 2; h++)
    {
        vec x = half16_exp2(simd_load(s + h * LANES) * scale - most);

        if (!whole)
            x = attention_half_first(x, rest - h * LANES, 0);
        simd_store(s + h * LANES, x);
        sums[h] += x;
    }
}

/* The maximum of a row of S. */
static float attention_half_most(const float *s, int64_t own, int64_t panels)
{
    vec high[2] = {simd_splat(-INFINITY), simd_splat(-INFINITY)};

    for (int64_t i = 0; i < panels; i++)
        SIMD_UNROLL(2) for (int h = 0; h < 2; h++)
        {
            vec x = simd_load(s + i * ATTENTION_HALF_CELLS + h * LANES);

            if (i == panels - 1)
                x = attention_half_first(x, own - i * ATTENTION_HALF_PANEL - h * LANES, -INFINITY);
            high[h] = simd_max(x, high[h]);
        }
    return simd_most(simd_max(high[0], high[1]));
}

/* A row of S, the first at s, to one of P: `own` positions, zeros up to whole panels, of which only
   the last is not full. Returns the logarithm of the sum of exponentials. */
static float attention_half_softmax(uint16_t *p, float *s, int64_t own, int64_t panels, float scale)
{
    const float most = attention_half_most(s, own, panels), by = scale * HALF16_LOG2_E;
    const int64_t last = panels - 1;
    vec sums[2] = {{0}};
    float sum, inverse;

    for (int64_t i = 0; i < last; i++)
        attention_half_raise(sums, s + i * ATTENTION_HALF_CELLS, by, most * by, 0, true);
    attention_half_raise(sums, s + last * ATTENTION_HALF_CELLS, by, most * by,
                         own - last * ATTENTION_HALF_PANEL, false);
    sum = simd_add_up(sums[0] + sums[1]);
    inverse = 1 / sum;
    for (int64_t i = 0; i < panels; i++, p += ATTENTION_HALF_CELLS, s += ATTENTION_HALF_CELLS)
        attention_half_store(p, simd_load(s) * inverse, simd_load(s + LANES) * inverse);
    return (float)((double)most * (double)scale + log((double)sum));
}

/* --- backward --- */

static float attention_half_dot(const uint16_t *a, const uint16_t *b, int64_t n)
{
    vec all = {0};

    for (; n >= LANES; n -= LANES, a += LANES, b += LANES)
        all += half16_load(a) * half16_load(b);
    if (n > 0) {
        uint16_t some[2][LANES] = {{0}};

        memcpy(some[0], a, (size_t)n * sizeof(*a));
        memcpy(some[1], b, (size_t)n * sizeof(*b));
        all += half16_load(some[0]) * half16_load(some[1]);
    }
    return simd_add_up(all);
}

/* What weights of a row are made from: exp(S scale - norm), P (dP scale - mean). */
typedef struct attention_half_row {
    int64_t own;      /* 0: there is no such row */
    float norm, mean; /* of a logarithm to base 2; times scale */
} attention_half_row;

/* LANES numbers of P and dS; `rest` positions of the row are left. */
SIMD_INLINE void attention_half_weigh(vec *p, vec *ds, const float *s, const float *dp,
                                      const attention_half_row *row, float scale, int64_t rest,
                                      const bool whole)
{
    const vec weight = half16_exp2(simd_load(s) * (scale * HALF16_LOG2_E) - row->norm);

    *p = whole ? weight : attention_half_first(weight, rest, 0);
    *ds = *p * (simd_load(dp) * scale - row->mean);
}

/* Cell k of rows 2i and 2i + 1, the `place`th whose sums are in memory. */
SIMD_INLINE void attention_half_weigh_cell(const attention_half_room *r, int64_t i, int64_t j,
                                           const attention_half_row row[2], int64_t k,
                                           int64_t place, float scale, const bool whole)
{
    const int64_t at = 2 * i * ATTENTION_HALF_PANEL, other = at + ATTENTION_HALF_PANEL;
    const int64_t cell = k * ATTENTION_HALF_CELLS;
    const int64_t to = ATTENTION_HALF_GROUP * cell + j * ATTENTION_HALF_CELLS + 2 * i * LANES;
    vec p[2][2], ds[2][2];

    SIMD_UNROLL(2) for (int h = 0; h < 2; h++)
    {
        const int64_t from = place * ATTENTION_HALF_CELLS + h * LANES;
        const int64_t done = k * ATTENTION_HALF_PANEL + h * LANES;
        float *pairs = (float *)(void *)(r->p + to + h * ATTENTION_HALF_CELLS / 2);
        float *ds_pairs = (float *)(void *)(r->ds + to + h * ATTENTION_HALF_CELLS / 2);

        attention_half_weigh(&p[0][h], &ds[0][h], r->s + from + at, r->dp + from + at, &row[0],
                             scale, row[0].own - done, whole);
        attention_half_weigh(&p[1][h], &ds[1][h], r->s + from + other, r->dp + from + other,
                             &row[1], scale, row[1].own - done, whole);
        simd_store(pairs, half16_join(half16_round(p[0][h]), half16_round(p[1][h])));
        simd_store(ds_pairs, half16_join(half16_round(ds[0][h]), half16_round(ds[1][h])));
    }
    attention_half_store(r->weights + cell + at, ds[0][0], ds[0][1]);
    attention_half_store(r->weights + cell + other, ds[1][0], ds[1][1]);
}

/* Cells [begin, end) of panel j of a group: dS to r->weights, P and dS in pairs to r->p, r->ds. */
static void attention_half_weigh_cells(const attention_half_room *r, int64_t j,
                                       const attention_half_row *rows, int64_t begin, int64_t end,
                                       float scale)
{
    for (int64_t i = 0; i < ATTENTION_HALF_PANEL / 2; i++, rows += 2) {
        const int64_t own = attention_half_least(rows[0].own, rows[1].own);
        int64_t k = begin;

        for (; k < attention_half_least(own / ATTENTION_HALF_PANEL, end); k++)
            attention_half_weigh_cell(r, i, j, rows, k, k - begin, scale, true);
        for (; k < end; k++)
            attention_half_weigh_cell(r, i, j, rows, k, k - begin, scale, false);
    }
}
