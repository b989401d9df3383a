/*
 * mock_vector.c - vector operations of the mock device: arguments are stored, and a worker later
 * calls the host's with them.
 */
#include "device/mock_vector.h"

#include "tensor/vector.h"

/* mock_call has only one pointer type, without const. */
#define IN(pointer) ((void *)(pointer))

static size_t mock_top_k_room(size_t k)
{
    return co_vector_host()->top_k_room(k);
}

static void run_copy(const mock_call *c)
{
    co_vector_host()->copy(NULL, c->p[0], c->p[1], c->n);
}

static void mock_copy(co_queue *queue, float *out, const float *x, size_t n)
{
    mock_call_on(queue, &(mock_call){.run = run_copy, .p = {out, IN(x)}, .n = n});
}

static void run_zero(const mock_call *c)
{
    co_vector_host()->zero(NULL, c->p[0], c->n);
}

static void mock_zero(co_queue *queue, float *out, size_t n)
{
    mock_call_on(queue, &(mock_call){.run = run_zero, .p = {out}, .n = n});
}

static void run_swap(const mock_call *c)
{
    co_vector_host()->swap(NULL, c->p[0], c->p[1], c->n);
}

static void mock_swap(co_queue *queue, float *x, float *y, size_t n)
{
    mock_call_on(queue, &(mock_call){.run = run_swap, .p = {x, y}, .n = n});
}

static void run_copy_if(const mock_call *c)
{
    co_vector_host()->copy_if(NULL, c->p[2], c->p[0], c->p[1], c->n);
}

static void mock_copy_if(co_queue *queue, const int32_t *flag, float *out, const float *x, size_t n)
{
    mock_call_on(queue, &(mock_call){.run = run_copy_if, .p = {out, IN(x), IN(flag)}, .n = n});
}

static void run_copy_unless(const mock_call *c)
{
    co_vector_host()->copy_unless(NULL, c->p[2], c->p[0], c->p[1], c->n);
}

static void mock_copy_unless(co_queue *queue, const float *most, float *out, const float *x,
                             size_t n)
{
    mock_call_on(queue, &(mock_call){.run = run_copy_unless, .p = {out, IN(x), IN(most)}, .n = n});
}

static void run_add(const mock_call *c)
{
    co_vector_host()->add(NULL, c->p[0], c->p[1], c->n);
}

static void mock_add(co_queue *queue, float *y, const float *x, size_t n)
{
    mock_call_on(queue, &(mock_call){.run = run_add, .p = {y, IN(x)}, .n = n});
}

static void run_scale(const mock_call *c)
{
    co_vector_host()->scale(NULL, c->p[0], c->a, c->p[1], c->n);
}

static void mock_scale(co_queue *queue, float *out, double a, const float *x, size_t n)
{
    mock_call_on(queue, &(mock_call){.run = run_scale, .p = {out, IN(x)}, .a = a, .n = n});
}

static void run_divide(const mock_call *c)
{
    co_vector_host()->divide(NULL, c->p[0], (float)c->a, c->n);
}

static void mock_divide(co_queue *queue, float *x, float by, size_t n)
{
    mock_call_on(queue, &(mock_call){.run = run_divide, .p = {x}, .a = (double)by, .n = n});
}

static void run_axpby(const mock_call *c)
{
    co_vector_host()->axpby(NULL, c->p[0], (float)c->a, c->p[1], (float)c->b, c->p[2], c->n);
}

static void mock_axpby(co_queue *queue, float *out, float a, const float *x, float b,
                       const float *y, size_t n)
{
    mock_call_on(
        queue,
        &(mock_call){
            .run = run_axpby, .p = {out, IN(x), IN(y)}, .a = (double)a, .b = (double)b, .n = n});
}

static void run_add_difference(const mock_call *c)
{
    co_vector_host()->add_difference(NULL, c->p[0], (float)c->a, c->p[1], c->p[2], c->n);
}

static void mock_add_difference(co_queue *queue, float *y, float a, const float *x, const float *z,
                                size_t n)
{
    mock_call_on(
        queue,
        &(mock_call){.run = run_add_difference, .p = {y, IN(x), IN(z)}, .a = (double)a, .n = n});
}

static void run_average(const mock_call *c)
{
    co_vector_host()->average(NULL, c->p[0], c->p[1], c->p[2], c->n);
}

static void mock_average(co_queue *queue, float *y, const double *a, const float *x, size_t n)
{
    mock_call_on(queue, &(mock_call){.run = run_average, .p = {y, IN(a), IN(x)}, .n = n});
}

static void run_drop_nonfinite(const mock_call *c)
{
    co_vector_host()->drop_nonfinite(NULL, c->p[0], c->n);
}

static void mock_drop_nonfinite(co_queue *queue, float *x, size_t n)
{
    mock_call_on(queue, &(mock_call){.run = run_drop_nonfinite, .p = {x}, .n = n});
}

static void run_sum_squares(const mock_call *c)
{
    co_vector_host()->sum_squares(NULL, c->p[0], c->p[3], c->p[1], c->n, c->p[2]);
}

static void mock_sum_squares(co_queue *queue, double *out, float *most, const float *x, size_t n,
                             const co_grad_rule *rule)
{
    mock_call_on(queue,
                 &(mock_call){.run = run_sum_squares, .p = {out, IN(x), IN(rule), most}, .n = n});
}

static void run_block_squares(const mock_call *c)
{
    co_vector_host()->block_squares(NULL, c->p[0], c->p[1], c->n, c->p[2]);
}

static void mock_block_squares(co_queue *queue, double *out, const float *x, size_t n,
                               const co_grad_rule *rule)
{
    mock_call_on(queue,
                 &(mock_call){.run = run_block_squares, .p = {out, IN(x), IN(rule)}, .n = n});
}

static void run_sum_blocks(const mock_call *c)
{
    co_vector_host()->sum_blocks(NULL, c->p[0], c->p[1], c->n);
}

static void mock_sum_blocks(co_queue *queue, double *out, const double *block, size_t n)
{
    mock_call_on(queue, &(mock_call){.run = run_sum_blocks, .p = {out, IN(block)}, .n = n});
}

static void mock_measure_squares(co_queue *queue, double *out, double *room, const float *x,
                                 size_t n, const co_grad_rule *rule)
{
    (void)room;
    mock_sum_squares(queue, out, NULL, x, n, rule);
}

static void run_max_abs(const mock_call *c)
{
    co_vector_host()->max_abs(NULL, c->p[0], c->p[1], c->n);
}

static void mock_max_abs(co_queue *queue, float *out, const float *x, size_t n)
{
    mock_call_on(queue, &(mock_call){.run = run_max_abs, .p = {out, IN(x)}, .n = n});
}

static void run_round_nearest(const mock_call *c)
{
    co_vector_host()->round_nearest(NULL, c->p[0], c->n, c->dtype);
}

static void mock_round_nearest(co_queue *queue, float *x, size_t n, co_dtype dtype)
{
    mock_call_on(queue, &(mock_call){.run = run_round_nearest, .p = {x}, .n = n, .dtype = dtype});
}

static void run_round_stochastic(const mock_call *c)
{
    co_vector_host()->round_stochastic(NULL, c->p[0], c->n, c->dtype, &c->rng, c->p[1], c->first);
}

static void mock_round_stochastic(co_queue *queue, float *x, size_t n, co_dtype dtype,
                                  const struct co_rng *rng, const uint64_t *step, uint64_t first)
{
    mock_call_on(queue, &(mock_call){.run = run_round_stochastic,
                                     .p = {x, IN(step)},
                                     .n = n,
                                     .dtype = dtype,
                                     .rng = *rng,
                                     .first = first});
}

static void run_narrow(const mock_call *c)
{
    co_vector_host()->narrow(NULL, c->p[0], c->p[1], c->p[2], c->more, c->n, c->dtype);
}

static void mock_narrow(co_queue *queue, uint16_t *out, const float *x, float *kept, bool more,
                        size_t n, co_dtype dtype)
{
    mock_call_on(
        queue,
        &(mock_call){
            .run = run_narrow, .p = {out, IN(x), kept}, .more = more, .n = n, .dtype = dtype});
}

static void run_widen_sum(const mock_call *c)
{
    co_vector_host()->widen_sum(NULL, c->p[0], c->p[1], c->k, c->terms, c->n, c->dtype);
}

static void mock_widen_sum(co_queue *queue, float *out, const uint16_t *x, size_t stride, int terms,
                           size_t n, co_dtype dtype)
{
    mock_call_on(queue, &(mock_call){.run = run_widen_sum,
                                     .p = {out, IN(x)},
                                     .k = stride,
                                     .terms = terms,
                                     .n = n,
                                     .dtype = dtype});
}

static void run_top_k(const mock_call *c)
{
    co_vector_host()->top_k(NULL, c->p[0], c->p[1], c->p[2], c->n, c->k);
}

static void mock_top_k(co_queue *queue, uint32_t *index, uint32_t *room, const float *x, size_t n,
                       size_t k)
{
    mock_call_on(queue, &(mock_call){.run = run_top_k, .p = {index, room, IN(x)}, .n = n, .k = k});
}

static void run_gather(const mock_call *c)
{
    co_vector_host()->gather(NULL, c->p[0], c->p[1], c->p[2], c->k);
}

static void mock_gather(co_queue *queue, float *out, const float *x, const uint32_t *index,
                        size_t k)
{
    mock_call_on(queue, &(mock_call){.run = run_gather, .p = {out, IN(x), IN(index)}, .k = k});
}

static void run_scatter(const mock_call *c)
{
    co_vector_host()->scatter(NULL, c->p[0], c->p[1], c->p[2], c->k);
}

static void mock_scatter(co_queue *queue, float *y, const uint32_t *index, const float *value,
                         size_t k)
{
    mock_call_on(queue, &(mock_call){.run = run_scatter, .p = {y, IN(index), IN(value)}, .k = k});
}

static void run_scatter_add(const mock_call *c)
{
    co_vector_host()->scatter_add(NULL, c->p[0], c->p[1], c->p[2], c->k);
}

static void mock_scatter_add(co_queue *queue, float *y, const uint32_t *index, const float *value,
                             size_t k)
{
    mock_call_on(queue,
                 &(mock_call){.run = run_scatter_add, .p = {y, IN(index), IN(value)}, .k = k});
}

static void run_matrix_times(const mock_call *c)
{
    co_vector_host()->matrix_times(NULL, c->p[0], c->p[1], c->p[2], &c->shape);
}

static void mock_matrix_times(co_queue *queue, float *p, const float *m, const float *q,
                              const co_vector_matrix *shape)
{
    mock_call_on(queue,
                 &(mock_call){.run = run_matrix_times, .p = {p, IN(m), IN(q)}, .shape = *shape});
}

static void run_matrix_transposed_times(const mock_call *c)
{
    co_vector_host()->matrix_transposed_times(NULL, c->p[0], c->p[1], c->p[2], &c->shape);
}

static void mock_matrix_transposed_times(co_queue *queue, float *q, const float *m, const float *p,
                                         const co_vector_matrix *shape)
{
    mock_call_on(
        queue,
        &(mock_call){.run = run_matrix_transposed_times, .p = {q, IN(m), IN(p)}, .shape = *shape});
}

static void run_matrix_add_outer(const mock_call *c)
{
    co_vector_host()->matrix_add_outer(NULL, c->p[0], (float)c->a, c->p[1], c->p[2], &c->shape);
}

static void mock_matrix_add_outer(co_queue *queue, float *m, float sign, const float *p,
                                  const float *q, const co_vector_matrix *shape)
{
    mock_call_on(queue, &(mock_call){.run = run_matrix_add_outer,
                                     .p = {m, IN(p), IN(q)},
                                     .a = (double)sign,
                                     .shape = *shape});
}

static void run_matrix_orthonormalize(const mock_call *c)
{
    co_vector_host()->matrix_orthonormalize(NULL, c->p[0], &c->shape);
}

static void mock_matrix_orthonormalize(co_queue *queue, float *p, const co_vector_matrix *shape)
{
    mock_call_on(queue, &(mock_call){.run = run_matrix_orthonormalize, .p = {p}, .shape = *shape});
}

static void run_step(const mock_call *c)
{
    co_step_do(c->p[0], c->stage, &c->rules);
}

static void mock_step(co_queue *queue, co_step_values *values, co_step_stage stage,
                      const co_loss_scale_rules *rules)
{
    mock_call call = {.run = run_step, .p = {values}, .stage = stage};

    if (rules)
        call.rules = *rules;
    mock_call_on(queue, &call);
}

const co_vector_ops mock_vector = {
    .name = "mock",
    .top_k_room = mock_top_k_room,
    .copy = mock_copy,
    .zero = mock_zero,
    .swap = mock_swap,
    .copy_if = mock_copy_if,
    .copy_unless = mock_copy_unless,
    .add = mock_add,
    .scale = mock_scale,
    .divide = mock_divide,
    .axpby = mock_axpby,
    .add_difference = mock_add_difference,
    .average = mock_average,
    .drop_nonfinite = mock_drop_nonfinite,
    .sum_squares = mock_sum_squares,
    .measure_squares = mock_measure_squares,
    .block_squares = mock_block_squares,
    .sum_blocks = mock_sum_blocks,
    .max_abs = mock_max_abs,
    .round_nearest = mock_round_nearest,
    .round_stochastic = mock_round_stochastic,
    .narrow = mock_narrow,
    .widen_sum = mock_widen_sum,
    .top_k = mock_top_k,
    .gather = mock_gather,
    .scatter = mock_scatter,
    .scatter_add = mock_scatter_add,
    .matrix_times = mock_matrix_times,
    .matrix_transposed_times = mock_matrix_transposed_times,
    .matrix_add_outer = mock_matrix_add_outer,
    .matrix_orthonormalize = mock_matrix_orthonormalize,
    .step = mock_step,
};
