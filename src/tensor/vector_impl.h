/*
 * vector_impl.h - the table of ext/vector.h for the host. Included once for each level of
 * instructions, by a file that defines VECTOR_TABLE, VECTOR_NAME and VECTOR_HALF: that level's
 * loops of core/half.h.
 *
 * A queue of the host does its work at once, so that none is looked at here.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "core/half.h"
#include "tensor/matrix.h"
#include "tensor/select.h"
#include "tensor/vector.h"
#include "tensor/vector_inner_impl.h"

extern const co_vector_ops co_vector_base, co_vector_avx2, co_vector_avx512;

#define VECTOR_BLOCK    ((size_t)512) /* floats that are on the stack at a time */
#define VECTOR_SUMS     8             /* of sum_squares */
#define VECTOR_MAX_F16  65504.0F
#define VECTOR_MAX_BF16 3.38953139e38F

/* Each element by itself, though an output is an input: that need not be found out. */
#if defined(__GNUC__) && !defined(__clang__)
#define VECTOR_EACH(i, n) _Pragma("GCC ivdep") for (size_t i = 0; i < (n); i++)
#else
#define VECTOR_EACH(i, n) for (size_t i = 0; i < (n); i++)
#endif

static size_t vector_part(size_t begin, size_t n)
{
    return n - begin < VECTOR_BLOCK ? n - begin : VECTOR_BLOCK;
}

/* ---- whole arrays ---- */

static void vector_copy(co_queue *queue, float *out, const float *x, size_t n)
{
    (void)queue;
    if (n > 0)
        memcpy(out, x, n * sizeof(*out));
}

static void vector_zero(co_queue *queue, float *out, size_t n)
{
    (void)queue;
    if (n > 0)
        memset(out, 0, n * sizeof(*out));
}

static void vector_swap(co_queue *queue, float *x, float *y, size_t n)
{
    (void)queue;
    VECTOR_EACH (i, n) {
        const float kept = x[i];

        x[i] = y[i];
        y[i] = kept;
    }
}

static void vector_copy_if(co_queue *queue, const int32_t *flag, float *out, const float *x,
                           size_t n)
{
    if (*flag)
        vector_copy(queue, out, x, n);
}

static void vector_copy_unless(co_queue *queue, const float *most, float *out, const float *x,
                               size_t n)
{
    const bool finite = *most <= FLT_MAX;

    if (x && (!finite || *most == 0))
        vector_copy(queue, out, x, n);
    else if (!x && !finite)
        vector_zero(queue, out, n);
}

static void vector_add(co_queue *queue, float *y, const float *x, size_t n)
{
    (void)queue;
    VECTOR_EACH (i, n)
        y[i] += x[i];
}

static void vector_scale(co_queue *queue, float *out, double a, const float *x, size_t n)
{
    (void)queue;
    VECTOR_EACH (i, n)
        out[i] = (float)(a * (double)x[i]);
}

static void vector_divide(co_queue *queue, float *x, float by, size_t n)
{
    (void)queue;
    VECTOR_EACH (i, n)
        x[i] /= by;
}

static void vector_axpby(co_queue *queue, float *out, float a, const float *x, float b,
                         const float *y, size_t n)
{
    (void)queue;
    VECTOR_EACH (i, n)
        out[i] = a * x[i] + b * y[i];
}

static void vector_add_difference(co_queue *queue, float *y, float a, const float *x,
                                  const float *z, size_t n)
{
    (void)queue;
    VECTOR_EACH (i, n)
        y[i] += a * (x[i] - z[i]);
}

static void vector_average(co_queue *queue, float *y, const double *a, const float *x, size_t n)
{
    if (*a != 0)
        vector_add_difference(queue, y, (float)*a, x, y, n);
}

static void vector_drop_nonfinite(co_queue *queue, float *x, size_t n)
{
    (void)queue;
    VECTOR_EACH (i, n)
        x[i] = fabsf(x[i]) <= FLT_MAX ? x[i] : 0;
}

/* ---- one result ---- */

/* As co_grad_use: comparisons this way round leave a NaN in place. */
static void vector_use(float *out, const float *x, size_t n, float scale, float limit)
{
    for (size_t i = 0; i < n; i++) {
        const float scaled = x[i] * scale;
        const float above = scaled < -limit ? -limit : scaled;

        out[i] = above > limit ? limit : above;
    }
}

/* As wide as the level's, so that they stay in registers. */
#if defined(__AVX512F__)
#define VECTOR_DOUBLES 8
#elif defined(__AVX2__)
#define VECTOR_DOUBLES 4
#else
#define VECTOR_DOUBLES 2
#endif
#define VECTOR_PARTS (VECTOR_SUMS / VECTOR_DOUBLES)

typedef double vector_doubles __attribute__((vector_size(VECTOR_DOUBLES * sizeof(double))));

#if VECTOR_DOUBLES == 2 /* compilers make poor code of the conversion of a vector there */
#define VECTOR_WIDEN(x) ((vector_doubles){(double)(x)[0], (double)(x)[1]})
#else
typedef float vector_floats
    __attribute__((vector_size(VECTOR_DOUBLES * sizeof(float)), aligned(4), may_alias));
#define VECTOR_WIDEN(x)                                                                            \
    __builtin_convertvector(*(const vector_floats *)(const void *)(x), vector_doubles)
#endif

/* sum[i % 8] += x[i]^2; n is a multiple of 8. */
static void vector_add_squares(double sum[VECTOR_SUMS], const float *x, size_t n)
{
    vector_doubles lane[VECTOR_PARTS];

    memcpy(lane, sum, sizeof(lane));
    for (size_t i = 0; i < n; i += VECTOR_SUMS)
        for (size_t k = 0; k < VECTOR_PARTS; k++) {
            const vector_doubles v = VECTOR_WIDEN(x + i + k * VECTOR_DOUBLES);

            lane[k] += v * v;
        }
    memcpy(sum, lane, sizeof(lane));
}

/* Bits without the sign are ordered as numbers are. */
static uint32_t vector_most(uint32_t most, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint32_t key = inner_key(x + i);

        most = key > most ? key : most;
    }
    return most;
}

static void vector_max_abs(co_queue *queue, float *out, const float *x, size_t n)
{
    const uint32_t most = vector_most(0, x, n);

    (void)queue;
    memcpy(out, &most, sizeof(*out));
}

/* The sum of a block, whose sums begin again. */
static double vector_join(double sum[VECTOR_SUMS])
{
    double all = 0;

    for (size_t k = 0; k < VECTOR_SUMS; k++) {
        all += sum[k];
        sum[k] = 0;
    }
    return all;
}

/* Whatever is looked for in a block after the first time is found in a cache. */
static void vector_sum_squares(co_queue *queue, double *out, float *most, const float *x, size_t n,
                               const co_grad_rule *rule)
{
    const bool plain = !rule || (rule->scale == 1 && rule->limit == INFINITY);
    float used[VECTOR_BLOCK];
    double sum[VECTOR_SUMS] = {0}, all = 0;
    uint32_t key = 0;

    (void)queue;
    for (size_t i = 0; i < n; i += VECTOR_BLOCK) {
        const size_t part = vector_part(i, n), whole = part / VECTOR_SUMS * VECTOR_SUMS;
        const float *v = plain ? x + i : used;

        if (most)
            key = vector_most(key, x + i, part);
        if (!plain)
            vector_use(used, x + i, part, rule->scale, rule->limit);
        vector_add_squares(sum, v, whole);
        for (size_t e = whole; e < part; e++)
            sum[0] += (double)v[e] * (double)v[e];
        if ((i + part) % CO_VECTOR_SQUARES == 0 || i + part == n)
            all += vector_join(sum);
    }
    *out = all;
    if (most)
        memcpy(most, &key, sizeof(*most));
}

static void vector_block_squares(co_queue *queue, double *out, const float *x, size_t n,
                                 const co_grad_rule *rule)
{
    for (size_t i = 0; i < n; i += CO_VECTOR_SQUARES, out++)
        vector_sum_squares(queue, out, NULL, x + i,
                           n - i < CO_VECTOR_SQUARES ? n - i : CO_VECTOR_SQUARES, rule);
}

static void vector_sum_blocks(co_queue *queue, double *out, const double *block, size_t n)
{
    double all = 0;

    (void)queue;
    for (size_t i = 0; i < n; i++)
        all += block[i];
    *out = all;
}

static void vector_measure_squares(co_queue *queue, double *out, double *room, const float *x,
                                   size_t n, const co_grad_rule *rule)
{
    (void)room;
    vector_sum_squares(queue, out, NULL, x, n, rule);
}

/* ---- 16 bits ---- */

static void vector_round_nearest(co_queue *queue, float *x, size_t n, co_dtype dtype)
{
    uint16_t block[VECTOR_BLOCK];

    (void)queue;
    for (size_t i = 0; i < n; i += VECTOR_BLOCK) {
        VECTOR_HALF.round[dtype == CO_F16](block, x + i, vector_part(i, n));
        VECTOR_HALF.widen[dtype == CO_F16](x + i, block, vector_part(i, n));
    }
}

static void vector_round_stochastic(co_queue *queue, float *x, size_t n, co_dtype dtype,
                                    const struct co_rng *rng, const uint64_t *step, uint64_t first)
{
    co_rng now = *rng;

    (void)queue;
    if (step)
        now.step = *step;
    VECTOR_HALF.stochastic[dtype == CO_F16](x, n, &now, first);
}

/* x with what is finite kept within what `dtype` has. */
static void vector_saturate(float *out, const float *x, size_t n, co_dtype dtype)
{
    const float most = dtype == CO_F16 ? VECTOR_MAX_F16 : VECTOR_MAX_BF16;

    for (size_t i = 0; i < n; i++) {
        const float v = x[i];

        out[i] = v > most && v < INFINITY ? most : v < -most && v > -INFINITY ? -most : v;
    }
}

/* What `sent` in place of x has lost. */
static void vector_keep(float *kept, const float *x, const float *sent, size_t n, bool more)
{
    VECTOR_EACH (i, n) {
        const float lost = x[i] - sent[i];
        const float before = more ? kept[i] : 0;

        kept[i] = fabsf(lost) <= FLT_MAX ? before + lost : 0;
    }
}

static void vector_narrow(co_queue *queue, uint16_t *out, const float *x, float *kept, bool more,
                          size_t n, co_dtype dtype)
{
    float sent[VECTOR_BLOCK];

    (void)queue;
    for (size_t i = 0; i < n; i += VECTOR_BLOCK) {
        const size_t part = vector_part(i, n);

        vector_saturate(sent, x + i, part, dtype);
        VECTOR_HALF.round[dtype == CO_F16](out + i, sent, part);
        if (!kept)
            continue;
        VECTOR_HALF.widen[dtype == CO_F16](sent, out + i, part);
        vector_keep(kept + i, x + i, sent, part, more);
    }
}

static void vector_widen_sum(co_queue *queue, float *out, const uint16_t *x, size_t stride,
                             int terms, size_t n, co_dtype dtype)
{
    const co_half_widen_fn widen = VECTOR_HALF.widen[dtype == CO_F16];
    float term[VECTOR_BLOCK];

    for (size_t i = 0; i < n; i += VECTOR_BLOCK) {
        const size_t part = vector_part(i, n);

        widen(out + i, x + i, part);
        for (int t = 1; t < terms; t++) {
            widen(term, x + (size_t)t * stride + i, part);
            vector_add(queue, out + i, term, part);
        }
    }
}

/* ---- few of many ---- */

static void vector_top_k(co_queue *queue, uint32_t *index, uint32_t *room, const float *x, size_t n,
                         size_t k)
{
    (void)queue;
    co_select_largest(&vector_inner, index, room, x, n, k);
}

static void vector_gather(co_queue *queue, float *out, const float *x, const uint32_t *index,
                          size_t k)
{
    (void)queue;
    for (size_t i = 0; i < k; i++)
        out[i] = x[index[i]];
}

static void vector_scatter(co_queue *queue, float *y, const uint32_t *index, const float *value,
                           size_t k)
{
    (void)queue;
    for (size_t i = 0; i < k; i++)
        y[index[i]] = value ? value[i] : 0;
}

static void vector_scatter_add(co_queue *queue, float *y, const uint32_t *index, const float *value,
                               size_t k)
{
    (void)queue;
    for (size_t i = 0; i < k; i++)
        y[index[i]] += value[i];
}

/* ---- a large matrix and a few vectors ---- */

static void vector_matrix_times(co_queue *queue, float *p, const float *m, const float *q,
                                const co_vector_matrix *shape)
{
    (void)queue;
    co_matrix_times(&vector_inner, p, m, q, shape);
}

static void vector_matrix_transposed_times(co_queue *queue, float *q, const float *m,
                                           const float *p, const co_vector_matrix *shape)
{
    (void)queue;
    co_matrix_transposed_times(&vector_inner, q, m, p, shape);
}

static void vector_matrix_add_outer(co_queue *queue, float *m, float sign, const float *p,
                                    const float *q, const co_vector_matrix *shape)
{
    (void)queue;
    co_matrix_add_outer(&vector_inner, m, sign, p, q, shape);
}

static void vector_matrix_orthonormalize(co_queue *queue, float *p, const co_vector_matrix *shape)
{
    (void)queue;
    co_matrix_orthonormalize(&vector_inner, p, shape);
}

/* ---- the values of a step ---- */

static void vector_step(co_queue *queue, co_step_values *values, co_step_stage stage,
                        const co_loss_scale_rules *rules)
{
    (void)queue;
    co_step_do(values, stage, rules);
}

const co_vector_ops VECTOR_TABLE = {
    .name = VECTOR_NAME,
    .copy = vector_copy,
    .zero = vector_zero,
    .swap = vector_swap,
    .copy_if = vector_copy_if,
    .copy_unless = vector_copy_unless,
    .add = vector_add,
    .scale = vector_scale,
    .divide = vector_divide,
    .axpby = vector_axpby,
    .add_difference = vector_add_difference,
    .average = vector_average,
    .drop_nonfinite = vector_drop_nonfinite,
    .sum_squares = vector_sum_squares,
    .block_squares = vector_block_squares,
    .sum_blocks = vector_sum_blocks,
    .measure_squares = vector_measure_squares,
    .max_abs = vector_max_abs,
    .round_nearest = vector_round_nearest,
    .round_stochastic = vector_round_stochastic,
    .narrow = vector_narrow,
    .widen_sum = vector_widen_sum,
    .top_k_room = co_select_room,
    .top_k = vector_top_k,
    .gather = vector_gather,
    .scatter = vector_scatter,
    .scatter_add = vector_scatter_add,
    .matrix_times = vector_matrix_times,
    .matrix_transposed_times = vector_matrix_transposed_times,
    .matrix_add_outer = vector_matrix_add_outer,
    .matrix_orthonormalize = vector_matrix_orthonormalize,
    .step = vector_step,
};
