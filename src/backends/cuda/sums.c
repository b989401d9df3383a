/* sums.c - sums over channels and columns, cut into parts by the shape alone. */
#include "backends/cuda/cuda.h"
#include "core/half.h"
#include "kernels/cuda/norm.h"

/* Blocks that keep a large GPU busy, and what a block has at least. */
#define SUMS_BLOCKS   512
#define SUMS_ELEMENTS 2048
#define SUMS_ROWS     64

typedef struct sums_cut {
    uint32_t parts, each;
} sums_cut;

static uint32_t sums_divide(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

static sums_cut sums_cut_of(uint32_t n, uint32_t channels, uint32_t plane)
{
    const bool columns = plane == 1;
    const uint32_t count = n * plane;
    const uint32_t lines = columns ? sums_divide(channels, CUDA_COLUMNS) : channels;
    const uint32_t most = sums_divide(count, columns ? SUMS_ROWS : SUMS_ELEMENTS);
    const uint32_t wanted = sums_divide(SUMS_BLOCKS, lines);
    const uint32_t each = sums_divide(count, wanted < most ? wanted : most);

    return (sums_cut){sums_divide(count, each), each};
}

size_t cuda_sums_room(uint32_t n, uint32_t channels, uint32_t plane)
{
    return 2 * (size_t)channels * sums_cut_of(n, channels, plane).parts;
}

void cuda_sum_parts(const co_call *call, cuda_sums *sums, cuda_settle *settle, double *part)
{
    const bool columns = sums->plane == 1;
    const sums_cut cut = sums_cut_of(sums->n, sums->channels, sums->plane);
    const uint32_t lines = columns ? sums_divide(sums->channels, CUDA_COLUMNS) : sums->channels;

    sums->part = part;
    sums->parts = cut.parts;
    sums->each = cut.each;
    settle->part = part;
    settle->parts = cut.parts;
    settle->channels = sums->channels;
    settle->plane = sums->plane;
    settle->count = (double)sums->n * sums->plane;
    cuda_launch_blocks(call->queue, columns ? CUDA_norm_column_sums : CUDA_norm_channel_sums,
                       (size_t)lines * cut.parts, sums);
}

void cuda_sum_channels(const co_call *call, cuda_sums *sums, cuda_kernel kernel,
                       cuda_settle *settle, double *part)
{
    cuda_sum_parts(call, sums, settle, part);
    cuda_launch(call->queue, kernel, sums->channels, settle);
}

void cuda_sum_bias(const co_call *call, const co_run *run, cuda_extent size, const void *dy,
                   void *part)
{
    const co_dtype dtype = call->grad_out[0]->dtype;
    cuda_settle settle = {.db = call->grad_param[1].data, .accumulate = run->accumulate};
    cuda_sums sums = {
        .n = size.n, .channels = size.channels, .plane = size.plane, .kind = CUDA_VALUES};

    if (call->n_param < 2)
        return;
    if (co_dtype_is_half(dtype))
        sums.half = dy;
    else
        sums.dy = dy;
    sums.f16 = dtype == CO_F16;
    cuda_sum_channels(call, &sums, CUDA_norm_settle_gradients, &settle, part);
}
