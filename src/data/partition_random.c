/*
 * partition_random.c - shuffle once, cut by ratio, as the DataPartitioner of PyTorch's tutorial
 * "Writing Distributed Applications".
 *
 * Part r is the tutorial's part r, to the sample and in its order; the samples that the tutorial
 * drops because int(ratio * count) rounds down are put behind the parts that lost most.
 */
#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "data/partition.h"
#include "data/python_random.h"

#define PARTITION_RANDOM_TOLERANCE 1e-4

typedef struct partition_random {
    co_reals ratios;
    int64_t seed;
} partition_random;

static const co_key partition_random_keys[] = {
    {"ratios", CO_KEY_REALS, offsetof(partition_random, ratios), "~", 0, 1, NULL,
     "share of each rank, adding up to 1; default: equal shares"},
    {"seed", CO_KEY_INT, offsetof(partition_random, seed), "-1", -1, 9e15, NULL,
     "of the shuffle; -1: the run's"},
    CO_KEYS_END,
};

static double partition_random_ratio(const partition_random *self, int ranks, int rank)
{
    return self->ratios.n ? self->ratios.v[rank] : 1.0 / ranks;
}

static co_status partition_random_check(const partition_random *self, int ranks)
{
    double sum = 0;

    if (self->ratios.n && self->ratios.n != (size_t)ranks)
        return co_fail(CO_E_USAGE, "partition random: %zu ratios for %d ranks; give one per rank",
                       self->ratios.n, ranks);
    for (int r = 0; r < ranks; r++)
        sum += partition_random_ratio(self, ranks, r);
    if (fabs(sum - 1) > PARTITION_RANDOM_TOLERANCE)
        return co_fail(CO_E_USAGE, "partition random: the ratios add up to %g, expected 1", sum);
    return CO_OK;
}

/* Python's int(ratio * count), at most what is left; returns the samples that no rank got. */
static uint64_t partition_random_sizes(uint64_t *size, const partition_random *self,
                                       const co_sampler_options *options)
{
    uint64_t left = options->count;

    for (int r = 0; r < options->ranks; r++) {
        double ratio = partition_random_ratio(self, options->ranks, r);

        size[r] = (uint64_t)(ratio * (double)options->count);
        if (size[r] > left)
            size[r] = left;
        left -= size[r];
    }
    return left;
}

/* The rank that is furthest behind its share. */
static int partition_random_neediest(const uint64_t *size, const partition_random *self,
                                     const co_sampler_options *options)
{
    double most = -INFINITY;
    int neediest = 0;

    for (int r = 0; r < options->ranks; r++) {
        double ratio = partition_random_ratio(self, options->ranks, r);
        double behind = ratio * (double)options->count - (double)size[r];

        if (ratio > 0 && behind > most) {
            most = behind;
            neediest = r;
        }
    }
    return neediest;
}

/* Give the last `left` samples away: size[r] of rank r's samples begin at the sum of the sizes
   before it, so parts move up, the last first. */
static co_status partition_random_spread(uint32_t *order, uint64_t *size, uint64_t left,
                                         const partition_random *self,
                                         const co_sampler_options *options)
{
    uint64_t from = options->count - left, to = options->count, spare = left;
    uint64_t *extra = co_calloc((size_t)options->ranks, sizeof(*extra));
    uint32_t *tail = co_calloc(left, sizeof(*tail));

    if (!extra || !tail) {
        co_free(tail);
        co_free(extra);
        return CO_E_NOMEM;
    }
    memcpy(tail, order + from, left * sizeof(*tail));
    for (uint64_t i = 0; i < left; i++) {
        int r = partition_random_neediest(size, self, options);

        size[r]++;
        extra[r]++;
    }
    for (int r = options->ranks - 1; r >= 0; r--) {
        uint64_t own = size[r] - extra[r];

        from -= own;
        to -= size[r];
        spare -= extra[r];
        memmove(order + to, order + from, own * sizeof(*order));
        memcpy(order + to + own, tail + spare, extra[r] * sizeof(*order));
    }
    co_free(tail);
    co_free(extra);
    return CO_OK;
}

static co_status partition_random_cut(const void *state, uint32_t *order, uint64_t *size,
                                      const co_sampler_options *options)
{
    const partition_random *self = state;
    uint64_t left;

    CO_TRY(partition_random_check(self, options->ranks));
    co_python_shuffle(order, (uint32_t)options->count,
                      self->seed < 0 ? options->seed : (uint64_t)self->seed);
    left = partition_random_sizes(size, self, options);
    return left ? partition_random_spread(order, size, left, self, options) : CO_OK;
}

const co_partition_ops co_partition_random = {
    .name = "random",
    .summary = "shuffled once, one part per rank by ratio",
    .keys = partition_random_keys,
    .self_size = sizeof(partition_random),
    .cut = partition_random_cut,
};
