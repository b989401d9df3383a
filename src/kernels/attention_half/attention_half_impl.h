/*
 * attention_half_impl.h - the loops of attention_half.h. Included by a file that defines
 * ATTENTION_HALF_TABLE.
 *
 * With 32 rows of queries at a time: S = q k', of which the softmax is P, y = P v. Backward for
 * some such panels: dP = dy v', dS = P (dP - the mean of dP), dq = dS k; then with all of these
 * panels as one factor dk' += q' dS and dv' += dy' P, for which rows of P and dS are stored in
 * pairs, so that neither is turned.
 */
#include <math.h>
#include <string.h>

#include "kernels/attention_half/attention_half.h"

#define LANES 16

#include "kernels/half16_exp.h"

#define ATTENTION_HALF_PANEL GEMM_HALF_PANEL
#define ATTENTION_HALF_CELLS GEMM_HALF_CELLS
#define ATTENTION_HALF_GROUP 4 /* panels of queries that dk and dv take at once */

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

/* --- packing --- */

typedef void (*attention_half_pack)(void *to, const gemm_half_from *from);

/* Panels whose lines are positions, of which there are `lines`. */
static void attention_half_pack_rows(uint16_t *to, const uint16_t *from, int64_t step,
                                     int64_t lines, int64_t size, attention_half_pack pack)
{
    const int64_t each = attention_half_panels(size) * ATTENTION_HALF_CELLS;

    for (int64_t t = 0; t < lines; t += ATTENTION_HALF_PANEL, to += each)
        pack(to, &(gemm_half_from){from + t * step, step,
                                   attention_half_least(lines - t, ATTENTION_HALF_PANEL), size});
}

/* Panels of b whose lines are numbers. */
static void attention_half_pack_lines(uint16_t *to, const uint16_t *from,
                                      const attention_half_task *task)
{
    const attention_shape *shape = task->shape;
    const int64_t each = attention_half_panels(shape->length) * ATTENTION_HALF_CELLS;

    for (int64_t d = 0; d < shape->size; d += ATTENTION_HALF_PANEL, to += each)
        task->products->half_columns(
            to, &(gemm_half_from){from + d, shape->in,
                                  attention_half_least(shape->size - d, ATTENTION_HALF_PANEL),
                                  shape->length});
}

/* Panels of a whose lines are numbers. */
static void attention_half_turn(uint16_t *to, const uint16_t *from, int64_t step,
                                const attention_half_task *task)
{
    const attention_shape *shape = task->shape;
    const int64_t each = attention_half_panels(shape->length) * ATTENTION_HALF_CELLS;

    for (int64_t d = 0; d < shape->size; d += ATTENTION_HALF_PANEL, to += each)
        task->products->columns(
            to,
            &(gemm_half_from){from + d, step,
                              attention_half_least(shape->size - d, ATTENTION_HALF_PANEL),
                              shape->length},
            NULL);
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

/* A row of S, the first at s, to one of P: `own` positions, zeros up to whole panels. Returns the
   logarithm of the sum of exponentials. */
static float attention_half_softmax(uint16_t *p, float *s, int64_t own, int64_t panels, float scale)
{
    vec high = simd_splat(-INFINITY), all = {0}, other = {0};
    float most, sum, inverse;

    for (int64_t i = 0; i < panels; i++)
        for (int64_t h = 0; h < ATTENTION_HALF_PANEL; h += LANES) {
            const vec x = attention_half_first(simd_load(s + i * ATTENTION_HALF_CELLS + h),
                                               own - i * ATTENTION_HALF_PANEL - h, -INFINITY);

#ifdef __AVX512F__
            high = (vec)_mm512_max_ps((__m512)x, (__m512)high);
#else
            high = simd_select((ivec)(x > high), x, high);
#endif
        }
    most = simd_most(high) * scale;
    for (int64_t i = 0; i < panels; i++) {
        float *row = s + i * ATTENTION_HALF_CELLS;
        const int64_t rest = own - i * ATTENTION_HALF_PANEL;
        const vec a = half16_exp(simd_load(row) * scale - most);
        const vec b = half16_exp(simd_load(row + LANES) * scale - most);
        const vec first = attention_half_first(a, rest, 0);
        const vec second = attention_half_first(b, rest - LANES, 0);

        simd_store(row, first);
        simd_store(row + LANES, second);
        all += first;
        other += second;
    }
    sum = simd_add_up(all + other);
    inverse = 1 / sum;
    for (int64_t i = 0; i < panels; i++, p += ATTENTION_HALF_CELLS, s += ATTENTION_HALF_CELLS)
        attention_half_store(p, simd_load(s) * inverse, simd_load(s + LANES) * inverse);
    return (float)((double)most + log((double)sum));
}

static void attention_half_forward(uint16_t *y, float *norm, const attention_half_head *x,
                                   const attention_half_task *task)
{
    const attention_shape *shape = task->shape;
    const gemm_half_loops *products = task->products;
    attention_half_room r;

    (void)attention_half_divide_room(&r, task->room, shape);
    attention_half_pack_rows(r.keys, x->k, shape->in, shape->length, shape->size,
                             products->half_rows);
    attention_half_pack_lines(r.value_lines, x->v, task);
    for (int64_t t = 0; t < shape->length; t += ATTENTION_HALF_PANEL) {
        const attention_half_rows rows = attention_half_find(shape, t);

        attention_half_pack_rows(r.queries, x->q + t * shape->in, shape->in, rows.n, shape->size,
                                 products->rows);
        products->multiply(&(gemm_half_job){.a = r.queries,
                                            .b = r.keys,
                                            .b_panel = r.sizes * ATTENTION_HALF_CELLS,
                                            .steps = r.sizes,
                                            .rows = ATTENTION_HALF_PANEL,
                                            .columns = rows.seen * ATTENTION_HALF_PANEL,
                                            .first = true,
                                            .sums = r.s});
        for (int64_t i = 0; i < rows.n; i++)
            norm[t + i] = attention_half_softmax(
                r.weights + i * ATTENTION_HALF_PANEL, r.s + i * ATTENTION_HALF_PANEL,
                attention_half_seen(shape, t + i), rows.seen, shape->scale);
        products->multiply(&(gemm_half_job){.a = r.weights,
                                            .b = r.value_lines,
                                            .b_panel = r.panels * ATTENTION_HALF_CELLS,
                                            .steps = rows.seen,
                                            .rows = rows.n,
                                            .columns = shape->size,
                                            .first = true,
                                            .last = true,
                                            .sums = r.dp,
                                            .y = y + t * shape->out,
                                            .step = shape->out,
                                            .half = true});
    }
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

/* What weights of a row are made from: exp(S scale - norm) and P (dP - mean) scale. */
typedef struct attention_half_row {
    int64_t own; /* 0: there is no such row */
    float norm, mean;
} attention_half_row;

/* LANES numbers of P and dS; `rest` positions of the row are left. */
SIMD_INLINE void attention_half_weigh(vec *p, vec *ds, const float *s, const float *dp,
                                      const attention_half_row *row, int64_t rest, float scale)
{
    const vec weight = half16_exp(simd_load(s) * scale - row->norm);

    *p = attention_half_first(weight, rest, 0);
    *ds = attention_half_first(weight * ((simd_load(dp) - row->mean) * scale), rest, 0);
}

/* Rows 2i and 2i + 1 of panel j of a group: dS to r->weights, P and dS in pairs to r->p, r->ds. */
static void attention_half_weigh_pair(const attention_half_room *r, int64_t i, int64_t j,
                                      const attention_half_row row[2], int64_t seen, float scale)
{
    const int64_t at = 2 * i * ATTENTION_HALF_PANEL, other = at + ATTENTION_HALF_PANEL;
    const int64_t pair = j * ATTENTION_HALF_CELLS + 2 * i * LANES;

    for (int64_t k = 0; k < seen; k++) {
        const int64_t cell = k * ATTENTION_HALF_CELLS, to = ATTENTION_HALF_GROUP * cell + pair;
        vec p[2][2], ds[2][2];

        SIMD_UNROLL(2) for (int h = 0; h < 2; h++)
        {
            const int64_t from = cell + h * LANES, done = k * ATTENTION_HALF_PANEL + h * LANES;
            float *pairs = (float *)(void *)(r->p + to + h * ATTENTION_HALF_CELLS / 2);
            float *ds_pairs = (float *)(void *)(r->ds + to + h * ATTENTION_HALF_CELLS / 2);

            attention_half_weigh(&p[0][h], &ds[0][h], r->s + from + at, r->dp + from + at, &row[0],
                                 row[0].own - done, scale);
            attention_half_weigh(&p[1][h], &ds[1][h], r->s + from + other, r->dp + from + other,
                                 &row[1], row[1].own - done, scale);
            simd_store(pairs, half16_join(half16_round(p[0][h]), half16_round(p[1][h])));
            simd_store(ds_pairs, half16_join(half16_round(ds[0][h]), half16_round(ds[1][h])));
        }
        attention_half_store(r->weights + cell + at, ds[0][0], ds[0][1]);
        attention_half_store(r->weights + cell + other, ds[1][0], ds[1][1]);
    }
}

/* S and dP of a panel of queries. */
static void attention_half_multiply(const attention_half_room *r, const attention_half_rows *rows,
                                    const uint16_t *q, const uint16_t *dy,
                                    const attention_half_task *task)
{
    const attention_shape *shape = task->shape;
    gemm_half_job job = {.a = r->queries,
                         .b = r->keys,
                         .b_panel = r->sizes * ATTENTION_HALF_CELLS,
                         .steps = r->sizes,
                         .rows = ATTENTION_HALF_PANEL,
                         .columns = rows->seen * ATTENTION_HALF_PANEL,
                         .first = true,
                         .sums = r->s};

    attention_half_pack_rows(r->queries, q + rows->t * shape->in, shape->in, rows->n, shape->size,
                             task->products->rows);
    attention_half_pack_rows(r->grads, dy + rows->t * shape->out, shape->out, rows->n, shape->size,
                             task->products->rows);
    task->products->multiply(&job);
    job.a = r->grads;
    job.b = r->values;
    job.sums = r->dp;
    task->products->multiply(&job);
}

/* Panel j of a group, of whose positions `all` panels are seen by any: all weights, and dq. */
static void attention_half_panel(const attention_half_room *r, int64_t j,
                                 const attention_half_rows *rows, int64_t all,
                                 const attention_half_gradient *to, const float *norm,
                                 const attention_half_task *task)
{
    const attention_shape *shape = task->shape;

    for (int64_t i = 0; i < ATTENTION_HALF_PANEL; i += 2) {
        attention_half_row row[2] = {{0}};

        for (int64_t l = 0; l < 2 && i + l < rows->n; l++) {
            const int64_t t = rows->t + i + l;

            row[l] = (attention_half_row){
                attention_half_seen(shape, t), norm[t],
                attention_half_dot(to->y + t * shape->out, to->dy + t * shape->out, shape->size)};
        }
        attention_half_weigh_pair(r, i / 2, j, row, rows->seen, shape->scale);
    }
    for (int64_t k = rows->seen; k < all; k++) {
        const int64_t at = (k * ATTENTION_HALF_GROUP + j) * ATTENTION_HALF_CELLS;

        memset(r->p + at, 0, ATTENTION_HALF_CELLS * sizeof(*r->p));
        memset(r->ds + at, 0, ATTENTION_HALF_CELLS * sizeof(*r->ds));
    }
    task->products->multiply(&(gemm_half_job){.a = r->weights,
                                              .b = r->key_lines,
                                              .b_panel = r->panels * ATTENTION_HALF_CELLS,
                                              .steps = rows->seen,
                                              .rows = rows->n,
                                              .columns = shape->size,
                                              .first = true,
                                              .last = true,
                                              .sums = r->s,
                                              .y = to->dx.q + rows->t * shape->in,
                                              .step = shape->in,
                                              .half = true});
}

/* sums += lines times b, of `n` panels of queries from `first`. */
static void attention_half_spread(float *sums, const uint16_t *lines, const uint16_t *b,
                                  int64_t first, int64_t n, int64_t seen,
                                  const attention_half_room *r, const attention_half_task *task)
{
    for (int64_t d = 0; d < r->sizes; d++)
        task->products->multiply(
            &(gemm_half_job){.a = lines + (d * r->panels + first) * ATTENTION_HALF_CELLS,
                             .b = b,
                             .b_panel = ATTENTION_HALF_GROUP * ATTENTION_HALF_CELLS,
                             .steps = n,
                             .rows = ATTENTION_HALF_PANEL,
                             .columns = seen * ATTENTION_HALF_PANEL,
                             .sums = sums + d * r->panels * ATTENTION_HALF_CELLS});
}

/* Sums of lines of numbers, to rows of positions. */
static void attention_half_put(uint16_t *to, const float *sums, const attention_half_room *r,
                               const attention_shape *shape)
{
    for (int64_t d = 0; d < shape->size; d += LANES)
        for (int64_t t = 0; t < shape->length; t += LANES) {
            const int64_t cell = d / ATTENTION_HALF_PANEL * r->panels + t / ATTENTION_HALF_PANEL;
            const float *from = sums + cell * ATTENTION_HALF_CELLS +
                                d % ATTENTION_HALF_PANEL * ATTENTION_HALF_PANEL +
                                t % ATTENTION_HALF_PANEL;
            const int64_t n = attention_half_least(shape->size - d, LANES);
            vec v[LANES];

            for (int l = 0; l < LANES; l++)
                v[l] = simd_load(from + l * ATTENTION_HALF_PANEL);
            simd_transpose(v);
            for (int64_t l = 0; l < attention_half_least(shape->length - t, LANES); l++) {
                const half16 row = half16_round(v[l]);
                uint16_t *place = to + (t + l) * shape->in + d;

                if (n == LANES)
                    *(loose_half16 *)(void *)place = row;
                else
                    memcpy(place, &row, (size_t)n * sizeof(*to));
            }
        }
}

static void attention_half_pack_all(const attention_half_room *r, const attention_half_head *x,
                                    const uint16_t *dy, const attention_half_task *task)
{
    const attention_shape *shape = task->shape;

    attention_half_pack_rows(r->keys, x->k, shape->in, shape->length, shape->size,
                             task->products->half_rows);
    attention_half_pack_rows(r->values, x->v, shape->in, shape->length, shape->size,
                             task->products->half_rows);
    attention_half_pack_lines(r->key_lines, x->k, task);
    attention_half_turn(r->query_lines, x->q, shape->in, task);
    attention_half_turn(r->grad_lines, dy, shape->out, task);
}

static void attention_half_backward(const attention_half_gradient *to, const attention_half_head *x,
                                    const float *norm, const attention_half_task *task)
{
    const attention_shape *shape = task->shape;
    attention_half_room r;

    (void)attention_half_divide_room(&r, task->room, shape);
    attention_half_pack_all(&r, x, to->dy, task);
    if (to->first) {
        const size_t bytes = (size_t)(r.panels * r.sizes * ATTENTION_HALF_CELLS) * sizeof(float);

        memset(r.dk, 0, bytes);
        memset(r.dv, 0, bytes);
    }
    for (int64_t g = 0; g < r.panels; g += ATTENTION_HALF_GROUP) {
        const int64_t n = attention_half_least(r.panels - g, ATTENTION_HALF_GROUP);
        const int64_t seen = shape->causal ? g + n : r.panels;

        for (int64_t j = 0; j < n; j++) {
            const attention_half_rows rows =
                attention_half_find(shape, (g + j) * ATTENTION_HALF_PANEL);

            attention_half_multiply(&r, &rows, x->q, to->dy, task);
            attention_half_panel(&r, j, &rows, seen, to, norm, task);
        }
        attention_half_spread(r.dv, r.grad_lines, r.p, g, n, seen, &r, task);
        attention_half_spread(r.dk, r.query_lines, r.ds, g, n, seen, &r, task);
    }
    if (to->last) {
        attention_half_put(to->dx.k, r.dk, &r, shape);
        attention_half_put(to->dx.v, r.dv, &r, shape);
    }
}

const attention_half_loops ATTENTION_HALF_TABLE = {
    .room = attention_half_room_bytes,
    .forward = attention_half_forward,
    .backward = attention_half_backward,
};
