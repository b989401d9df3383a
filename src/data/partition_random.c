/*
 * partition_random.c - shuffle once, cut by ratio, as the DataPartitioner of PyTorch's tutorial
 * "Writing Distributed Applications".
 *
 * Part r has the samples of the tutorial's part r in the same order; the samples that the tutorial
 * drops, because int(ratio * count) rounds down, are appended to the parts that lost most.
 */
#include <string.h>

#include "core/mem.h"
#include "data/partition.h"
#include "data/python_random.h"

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

/* Append the last `left` samples of the order to the parts, which have own[r] samples so far and
   get out->size[r]: parts move up, the last one first. */
static co_status partition_random_spread(co_parts *out, const uint64_t *own, uint64_t left,
                                         const co_sampler_options *options)
{
    uint64_t from = options->count - left, to = options->count, spare = left;
    uint32_t *order = out->order, *tail = co_calloc(left, sizeof(*tail));

    if (!tail)
        return CO_E_NOMEM;
    memcpy(tail, order + from, left * sizeof(*tail));
    for (int r = options->ranks - 1; r >= 0; r--) {
        const uint64_t extra = out->size[r] - own[r];

        from -= own[r];
        to -= out->size[r];
        spare -= extra;
        memmove(order + to, order + from, own[r] * sizeof(*order));
        memcpy(order + to + own[r], tail + spare, extra * sizeof(*order));
    }
    co_free(tail);
    return CO_OK;
}

static co_status partition_random_check(const void *state, int ranks)
{
    const partition_random *self = state;

    return co_ratios_check(&self->ratios, ranks, "random");
}

static co_status partition_random_cut(co_parts *out, const void *state,
                                      const co_sampler_options *options)
{
    const partition_random *self = state;
    const size_t ranks = (size_t)options->ranks;
    uint64_t left, *own;
    co_status st = CO_OK;

    own = co_calloc(ranks, sizeof(*own));
    if (!own)
        return CO_E_NOMEM;
    co_python_shuffle(out->order, (uint32_t)options->count,
                      self->seed < 0 ? options->seed : (uint64_t)self->seed);
    left = co_ratios_floor(own, &self->ratios, options);
    memcpy(out->size, own, ranks * sizeof(*own));
    co_ratios_add(out->size, left, &self->ratios, options);
    if (left)
        st = partition_random_spread(out, own, left, options);
    co_free(own);
    return st;
}

const co_partition_ops co_partition_random = {
    .name = "random",
    .summary = "shuffled once, one part per rank by ratio",
    .keys = partition_random_keys,
    .self_size = sizeof(partition_random),
    .check = partition_random_check,
    .cut = partition_random_cut,
};
