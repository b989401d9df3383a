/* vector.c - the table of ext/vector.h for GPUs: each entry is a launch of src/kernels/cuda. */
#include "kernels/cuda/vector.h"
#include "core/half.h"
#include "device/cuda/internal.h"

/* Copies and fills that nobody takes the status of. */
static void vector_keep(co_queue *queue, co_status st)
{
    if (st != CO_OK)
        cuda_keep_failure((cuda_queue *)queue);
}

/* ---- whole arrays ---- */

static void vector_copy(co_queue *queue, float *out, const float *x, size_t n)
{
    vector_keep(queue, cuda_copy(queue, out, x, n * sizeof(*out)));
}

static void vector_zero(co_queue *queue, float *out, size_t n)
{
    vector_keep(queue, cuda_fill(queue, out, 0, n * sizeof(*out)));
}

static void vector_swap(co_queue *queue, float *x, float *y, size_t n)
{
    cuda_launch(queue, CUDA_vector_swap, n, &(cuda_arrays){.out = x, .other = y, .n = n});
}

static void vector_copy_if(co_queue *queue, const int32_t *flag, float *out, const float *x,
                           size_t n)
{
    cuda_launch(queue, CUDA_vector_copy_if, n,
                &(cuda_arrays){.out = out, .x = x, .flag = flag, .n = n});
}

static void vector_copy_unless(co_queue *queue, const float *most, float *out, const float *x,
                               size_t n)
{
    cuda_launch(queue, CUDA_vector_copy_unless, n,
                &(cuda_arrays){.out = out, .x = x, .y = most, .n = n});
}

static void vector_add(co_queue *queue, float *y, const float *x, size_t n)
{
    cuda_launch(queue, CUDA_vector_add, n, &(cuda_arrays){.out = y, .x = x, .n = n});
}

static void vector_scale(co_queue *queue, float *out, double a, const float *x, size_t n)
{
    cuda_launch(queue, CUDA_vector_scale, n,
                &(cuda_arrays){.out = out, .x = x, .scale = a, .n = n});
}

static void vector_divide(co_queue *queue, float *x, float by, size_t n)
{
    cuda_launch(queue, CUDA_vector_divide, n, &(cuda_arrays){.out = x, .a = by, .n = n});
}

static void vector_axpby(co_queue *queue, float *out, float a, const float *x, float b,
                         const float *y, size_t n)
{
    cuda_launch(queue, CUDA_vector_axpby, n,
                &(cuda_arrays){.out = out, .x = x, .y = y, .a = a, .b = b, .n = n});
}

static void vector_add_difference(co_queue *queue, float *y, float a, const float *x,
                                  const float *z, size_t n)
{
    cuda_launch(queue, CUDA_vector_add_difference, n,
                &(cuda_arrays){.out = y, .x = x, .y = z, .a = a, .n = n});
}

static void vector_average(co_queue *queue, float *y, const double *a, const float *x, size_t n)
{
    cuda_launch(queue, CUDA_vector_average, n, &(cuda_arrays){.out = y, .x = x, .part = a, .n = n});
}

static void vector_drop_nonfinite(co_queue *queue, float *x, size_t n)
{
    cuda_launch(queue, CUDA_vector_drop_nonfinite, n, &(cuda_arrays){.out = x, .n = n});
}

/* ---- one result ---- */

static void vector_max_abs(co_queue *queue, float *out, const float *x, size_t n)
{
    vector_zero(queue, out, 1);
    cuda_launch(queue, CUDA_vector_max_abs, n, &(cuda_arrays){.out = out, .x = x, .n = n});
}

static void vector_block_squares(co_queue *queue, double *out, const float *x, size_t n,
                                 const co_grad_rule *rule)
{
    cuda_launch(queue, CUDA_squares_blocks,
                (n + CUDA_SQUARES - 1) / CUDA_SQUARES * CUDA_SQUARES_SUMS,
                &(cuda_squares){.out = out, .x = x, .rule = rule, .n = n});
}

static void vector_add_blocks(co_queue *queue, double *out, const double *block, size_t n,
                              bool more)
{
    cuda_launch_blocks(queue, CUDA_squares_add, 1,
                       &(cuda_squares){.out = out, .part = block, .n = n, .more = more});
}

static void vector_sum_blocks(co_queue *queue, double *out, const double *block, size_t n)
{
    vector_add_blocks(queue, out, block, n, false);
}

/* As many blocks at once as there is room for. */
static void vector_sum_squares(co_queue *queue, double *out, float *most, const float *x, size_t n,
                               const co_grad_rule *rule)
{
    const size_t step = (size_t)CUDA_SQUARES_ROOM * CUDA_SQUARES;
    double *room = ((cuda_queue *)queue)->blocks;

    if (most)
        vector_max_abs(queue, most, x, n);
    for (size_t at = 0; at == 0 || at < n; at += step) {
        const size_t part = n - at < step ? n - at : step;

        vector_block_squares(queue, room, x + at, part, rule);
        vector_add_blocks(queue, out, room, (part + CUDA_SQUARES - 1) / CUDA_SQUARES, at > 0);
    }
}

static void vector_measure_squares(co_queue *queue, double *out, double *room, const float *x,
                                   size_t n, const co_grad_rule *rule)
{
    cuda_squares args = {.out = room, .x = x, .rule = rule, .n = n};

    cuda_launch_blocks(queue, CUDA_squares_parts, CO_VECTOR_PARTS, &args);
    args.out = out;
    args.part = room;
    cuda_launch_blocks(queue, CUDA_squares_join, 1, &args);
}

/* ---- 16 bits ---- */

static void vector_round_nearest(co_queue *queue, float *x, size_t n, co_dtype dtype)
{
    cuda_launch(queue, CUDA_vector_round_nearest, n,
                &(cuda_halves){.out = x, .n = n, .f16 = dtype == CO_F16});
}

static void vector_round_stochastic(co_queue *queue, float *x, size_t n, co_dtype dtype,
                                    const struct co_rng *rng, const uint64_t *step, uint64_t first)
{
    cuda_launch(
        queue, CUDA_vector_round_stochastic, n,
        &(cuda_halves){
            .out = x, .n = n, .f16 = dtype == CO_F16, .rng = *rng, .step = step, .first = first});
}

static void vector_narrow(co_queue *queue, uint16_t *out, const float *x, float *kept, bool more,
                          size_t n, co_dtype dtype)
{
    cuda_launch(
        queue, CUDA_vector_narrow, n,
        &(cuda_halves){
            .narrow = out, .x = x, .kept = kept, .more = more, .n = n, .f16 = dtype == CO_F16});
}

static void vector_widen_sum(co_queue *queue, float *out, const uint16_t *x, size_t stride,
                             int terms, size_t n, co_dtype dtype)
{
    cuda_launch(queue, CUDA_vector_widen_sum, n,
                &(cuda_halves){.out = out,
                               .half = x,
                               .stride = stride,
                               .terms = terms,
                               .n = n,
                               .f16 = dtype == CO_F16});
}

/* ---- few of many ---- */

/* Fewer elements than this are selected by one block, in one launch. */
#define VECTOR_SELECT_MANY ((size_t)1 << 15)

static size_t vector_top_k_room(size_t k)
{
    (void)k;
    return sizeof(cuda_select_room) / sizeof(uint32_t);
}

static void vector_top_k(co_queue *queue, uint32_t *index, uint32_t *room, const float *x, size_t n,
                         size_t k)
{
    cuda_selection args = {
        .room = (cuda_select_room *)(void *)room, .found = index, .x = x, .n = n, .k = k};

    if (n < VECTOR_SELECT_MANY) {
        cuda_launch_blocks(queue, CUDA_vector_top_k, 1, &args);
        return;
    }
    vector_keep(queue, cuda_fill(queue, room, 0, sizeof(*args.room)));
    for (args.round = 0; args.round < CUDA_SELECT_ROUNDS; args.round++) {
        cuda_launch_blocks(queue, CUDA_vector_select_count, CUDA_SELECT_PARTS, &args);
        cuda_launch_blocks(queue, CUDA_vector_select_digit, 1, &args);
    }
    cuda_launch_blocks(queue, CUDA_vector_select_parts, CUDA_SELECT_PARTS, &args);
    cuda_launch_blocks(queue, CUDA_vector_select_picks, CUDA_SELECT_PARTS, &args);
}

static void vector_gather(co_queue *queue, float *out, const float *x, const uint32_t *index,
                          size_t k)
{
    cuda_launch(queue, CUDA_vector_gather, k,
                &(cuda_selection){.out = out, .x = x, .index = index, .k = k});
}

static void vector_scatter(co_queue *queue, float *y, const uint32_t *index, const float *value,
                           size_t k)
{
    cuda_launch(queue, CUDA_vector_scatter, k,
                &(cuda_selection){.out = y, .x = value, .index = index, .k = k});
}

static void vector_scatter_add(co_queue *queue, float *y, const uint32_t *index, const float *value,
                               size_t k)
{
    cuda_launch(queue, CUDA_vector_scatter_add, k,
                &(cuda_selection){.out = y, .x = value, .index = index, .k = k});
}

/* ---- a large matrix and a few vectors ---- */

static void vector_matrix_times(co_queue *queue, float *p, const float *m, const float *q,
                                const co_vector_matrix *shape)
{
    cuda_launch(queue, CUDA_matrix_times, shape->rows * shape->rank * CUDA_LANES,
                &(cuda_matrix){.out = p,
                               .m = m,
                               .q = q,
                               .rows = shape->rows,
                               .cols = shape->cols,
                               .rank = shape->rank});
}

static void vector_matrix_transposed_times(co_queue *queue, float *q, const float *m,
                                           const float *p, const co_vector_matrix *shape)
{
    cuda_launch(queue, CUDA_matrix_transposed_times, shape->rank * shape->cols,
                &(cuda_matrix){.out = q,
                               .m = m,
                               .p = p,
                               .rows = shape->rows,
                               .cols = shape->cols,
                               .rank = shape->rank});
}

static void vector_matrix_add_outer(co_queue *queue, float *m, float sign, const float *p,
                                    const float *q, const co_vector_matrix *shape)
{
    cuda_launch(queue, CUDA_matrix_add_outer, shape->rows * shape->cols,
                &(cuda_matrix){.out = m,
                               .p = p,
                               .q = q,
                               .sign = sign,
                               .rows = shape->rows,
                               .cols = shape->cols,
                               .rank = shape->rank});
}

static void vector_matrix_orthonormalize(co_queue *queue, float *p, const co_vector_matrix *shape)
{
    cuda_launch_blocks(queue, CUDA_matrix_orthonormalize, 1,
                       &(cuda_matrix){.out = p, .rows = shape->rows, .rank = shape->rank});
}

/* ---- the values of a step ---- */

static void vector_step(co_queue *queue, co_step_values *values, co_step_stage stage,
                        const co_loss_scale_rules *rules)
{
    cuda_stage args = {.values = values, .stage = stage};

    if (rules)
        args.rules = *rules;
    cuda_launch_blocks(queue, CUDA_vector_step, 1, &args);
}

const co_vector_ops cuda_vector = {
    .name = "cuda",
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
    .measure_squares = vector_measure_squares,
    .block_squares = vector_block_squares,
    .sum_blocks = vector_sum_blocks,
    .max_abs = vector_max_abs,
    .round_nearest = vector_round_nearest,
    .round_stochastic = vector_round_stochastic,
    .narrow = vector_narrow,
    .widen_sum = vector_widen_sum,
    .top_k_room = vector_top_k_room,
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
