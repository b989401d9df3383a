/*
 * embedding.c - embedding and positions. Threads share columns of the gradient, so that each of its
 * elements is a sum in the order of the tokens, on any number of threads.
 */
#include "kernels/embedding/embedding.h"

#include <string.h>

#include "backends/cpu/cpu.h"
#include "core/parallel.h"

#define EMBEDDING_COLUMNS 16 /* a cache line: threads write to lines of their own */

static co_status embedding_forward(co_call *call, const co_run *run)
{
    const int64_t tokens = co_shape_count(&call->in[0]->shape);
    const int64_t size = call->param[0].shape.dim[1];
    const int threads = cpu_threads(call);

    (void)run;
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range mine = co_parallel_part(tokens, t, threads);

        embedding_take((float *)call->out[0]->data + mine.begin * size, call->param[0].data,
                       (const int32_t *)call->in[0]->data + mine.begin,
                       (size_t)(mine.end - mine.begin), (size_t)size);
    }
    return CO_OK;
}

static co_status embedding_backward(co_call *call, const co_run *run)
{
    const int64_t tokens = co_shape_count(&call->in[0]->shape);
    const int64_t size = call->param[0].shape.dim[1];
    const int64_t blocks = (size + EMBEDDING_COLUMNS - 1) / EMBEDDING_COLUMNS;
    const int threads = cpu_threads(call);

    if (!run->accumulate)
        memset(call->grad_param[0].data, 0, call->grad_param[0].bytes);
    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range mine = co_parallel_part(blocks, t, threads);
        const int64_t end = mine.end * EMBEDDING_COLUMNS;

        embedding_add(call->grad_param[0].data, call->grad_out[0]->data, call->in[0]->data,
                      (size_t)tokens, (size_t)size, (size_t)(mine.begin * EMBEDDING_COLUMNS),
                      (size_t)(end < size ? end : size));
    }
    return CO_OK;
}

/* Its input are whole numbers. */
static bool embedding_supports(const co_call *call, const char **why)
{
    *why = "it computes in floats";
    return call->out[0]->dtype == CO_F32;
}

const co_kernel co_cpu_embedding = {
    .op = "embedding",
    .name = "rows",
    .supports = embedding_supports,
    .forward = embedding_forward,
    .backward = embedding_backward,
};

static co_status positions_forward(co_call *call, const co_run *run)
{
    const int64_t n = call->in[0]->shape.dim[0], size = co_shape_count(&call->in[0]->shape) / n;
    const float *x = call->in[0]->data;
    float *y = call->out[0]->data;
    const int threads = cpu_threads(call);

    (void)run;
    CO_PARALLEL_FOR(threads)
    for (int64_t i = 0; i < n; i++)
        embedding_shift(y + i * size, x + i * size, call->param[0].data, (size_t)size);
    return CO_OK;
}

static co_status positions_backward(co_call *call, const co_run *run)
{
    const int64_t n = call->in[0]->shape.dim[0], size = co_shape_count(&call->in[0]->shape) / n;
    const int64_t row = call->param[0].shape.dim[1];
    const size_t rest = (size_t)(call->param[0].shape.dim[0] * row - size);
    const float *dy = call->grad_out[0]->data;
    float *dw = call->grad_param[0].data;
    const int threads = cpu_threads(call);

    CO_PARALLEL_FOR(threads)
    for (int t = 0; t < threads; t++) {
        const co_range mine = co_parallel_part(size / row, t, threads);
        const int64_t begin = mine.begin * row;

        embedding_sum(dw + begin, dy + begin, (size_t)n, (size_t)size,
                      (size_t)(mine.end * row - begin), run->accumulate);
    }
    if (!run->accumulate)
        memset(dw + size, 0, rest * sizeof(float));
    if (call->grad_in[0] && call->grad_in[0]->data != dy)
        memcpy(call->grad_in[0]->data, dy, (size_t)(n * size) * sizeof(float));
    return CO_OK;
}

const co_kernel co_cpu_positions = {
    .op = "positions",
    .name = "rows",
    .supports = cpu_takes_floats,
    .forward = positions_forward,
    .backward = positions_backward,
    .in_place = true,
};
