/*
 * partition_contiguous.c - the set in its own order, cut by ratio.
 *
 * If the set is sorted, by label or by source, ranks get different data.
 */
#include "data/partition.h"

typedef struct partition_contiguous {
    co_reals ratios;
} partition_contiguous;

static const co_key partition_contiguous_keys[] = {
    {"ratios", CO_KEY_REALS, offsetof(partition_contiguous, ratios), "~", 0, 1, NULL,
     "share of each rank, adding up to 1; default: equal shares"},
    CO_KEYS_END,
};

static co_status partition_contiguous_check(const void *state, int ranks)
{
    const partition_contiguous *self = state;

    return co_ratios_check(&self->ratios, ranks, "contiguous");
}

static co_status partition_contiguous_cut(co_parts *out, const void *state,
                                          const co_sampler_options *options)
{
    const partition_contiguous *self = state;
    uint64_t left;

    for (uint64_t i = 0; i < options->count; i++)
        out->order[i] = (uint32_t)i;
    left = co_ratios_floor(out->size, &self->ratios, options);
    co_ratios_add(out->size, left, &self->ratios, options);
    return CO_OK;
}

const co_partition_ops co_partition_contiguous = {
    .name = "contiguous",
    .summary = "in the order of the set, one part per rank by ratio",
    .keys = partition_contiguous_keys,
    .self_size = sizeof(partition_contiguous),
    .check = partition_contiguous_check,
    .cut = partition_contiguous_cut,
};
