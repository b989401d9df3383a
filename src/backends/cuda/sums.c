/* sums.c - sums over channels and columns, cut into parts by the shape alone. */
#include "kernels/cuda/sums.h"
#include "backends/cuda/cuda.h"

/* Blocks that keep a large GPU busy, and what a block has at least. */
#define SUMS_BLOCKS   512
#define SUMS_ELEMENTS 2048
#define SUMS_ROWS     64

typedef struct sums_cut {
    uint32_t parts, each;
    uint32_t tiles;    /* blocks beside each other: a channel, or columns */
    uint32_t together; /* columns of a thread */
} sums_cut;

static uint32_t sums_divide(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

static sums_cut sums_cut_of(uint32_t n, uint32_t channels, uint32_t plane)
{
    const bool columns = plane == 1, wide = columns && channels % CUDA_TOGETHER == 0;
    const uint32_t width = !columns ? 1 : wide ? CUDA_WIDE_COLUMNS : CUDA_COLUMNS;
    const uint32_t count = n * plane;
    const uint32_t tiles = sums_divide(channels, width);
    const uint32_t most = sums_divide(count, columns ? SUMS_ROWS : SUMS_ELEMENTS);
    const uint32_t wanted = sums_divide(SUMS_BLOCKS, tiles);
    const uint32_t each = sums_divide(count, wanted < most ? wanted : most);

    return (sums_cut){sums_divide(count, each), each, tiles, wide ? CUDA_TOGETHER : 1};
}

size_t cuda_sums_room(uint32_t n, uint32_t channels, uint32_t plane)
{
    return 2 * (size_t)channels * sums_cut_of(n, channels, plane).parts;
}

void cuda_sum_parts(const co_call *call, cuda_sums *sums, cuda_settle *settle, double *part)
{
    const bool columns = sums->plane == 1;
    const sums_cut cut = sums_cut_of(sums->n, sums->channels, sums->plane);

    sums->part = part;
    sums->parts = cut.parts;
    sums->each = cut.each;
    sums->together = cut.together;
    settle->part = part;
    settle->parts = cut.parts;
    settle->channels = sums->channels;
    settle->plane = sums->plane;
    settle->count = (double)sums->n * sums->plane;
    cuda_launch_blocks(call->queue, columns ? CUDA_sums_of_columns : CUDA_sums_of_channels,
                       (size_t)cut.tiles * cut.parts, sums);
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
    cuda_settle settle = {.db = call->grad_param[1].data, .accumulate = run->accumulate};
    cuda_sums sums = {.in = {.dy = dy},
                      .n = size.n,
                      .channels = size.channels,
                      .plane = size.plane,
                      .kind = CUDA_VALUES,
                      .type = cuda_number_of(call->grad_out[0]->dtype)};

    if (call->n_param > 1)
        cuda_sum_channels(call, &sums, CUDA_sums_settle_gradients, &settle, part);
}
