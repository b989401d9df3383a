/*
 * attention_half_impl.h - the loops of attention_half.h. Included by a file that defines
 * ATTENTION_HALF_TABLE.
 *
 * With 32 rows of queries at a time: S = q k', of which the softmax is P, y = P v. Backward for
 * some such panels: dP = dy v', dS = P (dP - the mean of dP), dq = dS k; then with all of these
 * panels as one factor dk' += q' dS and dv' += dy' P, for which rows of P and dS are stored in
 * pairs, so that neither is turned.
 */
#include "kernels/attention_half/attention_half_weights.h"

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

/* S and dP of a panel of queries, for cells [begin, end). */
static void attention_half_multiply(const attention_half_room *r, int64_t begin, int64_t end,
                                    const attention_half_task *task)
{
    const int64_t at = begin * r->sizes * ATTENTION_HALF_CELLS;
    gemm_half_job job = {.a = r->queries,
                         .b = r->keys + at,
                         .b_panel = r->sizes * ATTENTION_HALF_CELLS,
                         .steps = r->sizes,
                         .rows = ATTENTION_HALF_PANEL,
                         .columns = (end - begin) * ATTENTION_HALF_PANEL,
                         .first = true,
                         .sums = r->s};

    task->products->multiply(&job);
    job.a = r->grads;
    job.b = r->values + at;
    job.sums = r->dp;
    task->products->multiply(&job);
}

/* What panel j of a group needs of its queries. */
static void attention_half_begin(attention_half_row *row, const attention_half_room *r,
                                 const attention_half_rows *rows, const attention_half_gradient *to,
                                 const uint16_t *q, const float *norm,
                                 const attention_half_task *task)
{
    const attention_shape *shape = task->shape;
    const uint16_t *y = to->y + rows->t * shape->out, *dy = to->dy + rows->t * shape->out;

    attention_half_pack_rows(r->queries, q + rows->t * shape->in, shape->in, rows->n, shape->size,
                             task->products->rows);
    attention_half_pack_rows(r->grads, dy, shape->out, rows->n, shape->size, task->products->rows);
    for (int64_t i = 0; i < rows->n; i++, y += shape->out, dy += shape->out)
        row[i] = (attention_half_row){attention_half_seen(shape, rows->t + i),
                                      norm[rows->t + i] * HALF16_LOG2_E,
                                      shape->scale * attention_half_dot(y, dy, shape->size)};
}

/* Panel j of a group, of whose positions `all` panels are seen by any: all weights, and dq. */
static void attention_half_panel(const attention_half_room *r, int64_t j,
                                 const attention_half_rows *rows, int64_t all,
                                 const attention_half_gradient *to, const uint16_t *q,
                                 const float *norm, const attention_half_task *task)
{
    const attention_shape *shape = task->shape;
    attention_half_row row[ATTENTION_HALF_PANEL] = {{0}};

    attention_half_begin(row, r, rows, to, q, norm, task);
    for (int64_t k = 0; k < rows->seen; k += ATTENTION_HALF_AT_ONCE) {
        const int64_t end = attention_half_least(k + ATTENTION_HALF_AT_ONCE, rows->seen);

        attention_half_multiply(r, k, end, task);
        attention_half_weigh_cells(r, j, row, k, end, shape->scale);
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

/* Sums of 16 lines of numbers and of 16 positions, turned and rounded. */
SIMD_INLINE void attention_half_turn_sums(half16 rows[LANES], const float *from)
{
    vec v[LANES];

    SIMD_UNROLL(16)
    for (int l = 0; l < LANES; l++)
        v[l] = simd_load(from + l * ATTENTION_HALF_PANEL);
    simd_transpose(v);
    SIMD_UNROLL(16) for (int l = 0; l < LANES; l++) rows[l] = half16_round(v[l]);
}

/* Up to 16 rows of `n` numbers, at most a panel's, from sums of lines of numbers. */
static void attention_half_put_rows(uint16_t *to, int64_t step, const float *from, int64_t rows,
                                    int64_t n)
{
    half16 row[2][LANES];

    attention_half_turn_sums(row[0], from);
    attention_half_turn_sums(row[1], from + LANES * ATTENTION_HALF_PANEL);
    for (int64_t l = 0; l < rows; l++, to += step) {
        const half16 both[2] = {row[0][l], row[1][l]};

        if (n < ATTENTION_HALF_PANEL) {
            memcpy(to, both, (size_t)n * sizeof(*to));
            continue;
        }
        *(loose_half16 *)(void *)to = both[0];
        *(loose_half16 *)(void *)(to + LANES) = both[1];
    }
}

/* Sums of lines of numbers, to rows of positions. */
static void attention_half_put(uint16_t *to, const float *sums, const attention_half_room *r,
                               const attention_shape *shape)
{
    for (int64_t t = 0; t < shape->length; t += LANES)
        for (int64_t d = 0; d < shape->size; d += ATTENTION_HALF_PANEL) {
            const int64_t cell = d / ATTENTION_HALF_PANEL * r->panels + t / ATTENTION_HALF_PANEL;

            attention_half_put_rows(to + t * shape->in + d, shape->in,
                                    sums + cell * ATTENTION_HALF_CELLS + t % ATTENTION_HALF_PANEL,
                                    attention_half_least(shape->length - t, LANES),
                                    attention_half_least(shape->size - d, ATTENTION_HALF_PANEL));
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

            attention_half_panel(&r, j, &rows, seen, to, x->q, norm, task);
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
