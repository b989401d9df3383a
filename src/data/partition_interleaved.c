/*
 * partition_interleaved.c - sample i to rank i mod N, as PyTorch's DistributedSampler.
 *
 * With `pad` the set is extended to a multiple of N by repeating it from the start, so that all
 * parts are equal and some samples are taken twice. What an epoch shuffles:
 *
 *   part   each part, which keeps its samples
 *   set    the whole set, before it is dealt: parts get other samples in every epoch
 *   torch  the same by torch.randperm, seeded with seed + epoch: exactly as DistributedSampler
 *
 * With `set_epoch: false` every epoch has the order of the first, as in scripts that never call
 * DistributedSampler's set_epoch.
 */
#include "data/partition.h"

typedef enum interleaved_shuffle {
    INTERLEAVED_PART,
    INTERLEAVED_SET,
    INTERLEAVED_TORCH
} interleaved_shuffle;

typedef struct partition_interleaved {
    bool pad, set_epoch;
    int shuffle;
    int64_t seed;
} partition_interleaved;

static const char *const partition_interleaved_shuffles[] = {"part", "set", "torch", NULL};

static const co_key partition_interleaved_keys[] = {
    {"pad", CO_KEY_BOOL, offsetof(partition_interleaved, pad), "false", 0, 0, NULL,
     "repeat samples from the start, so that all parts are equally large"},
    {"shuffle", CO_KEY_CHOICE, offsetof(partition_interleaved, shuffle), "part", 0, 0,
     partition_interleaved_shuffles,
     "what an epoch shuffles: each part; the whole set before it is dealt; that by torch.randperm"},
    {"set_epoch", CO_KEY_BOOL, offsetof(partition_interleaved, set_epoch), "true", 0, 0, NULL,
     "false: every epoch has the order of the first"},
    {"seed", CO_KEY_INT, offsetof(partition_interleaved, seed), "-1", -1, 9e15, NULL,
     "of the shuffle; -1: the run's"},
    CO_KEYS_END,
};

static co_status partition_interleaved_cut(co_parts *out, const void *state,
                                           const co_sampler_options *options)
{
    const partition_interleaved *self = state;
    const uint64_t ranks = (uint64_t)options->ranks, over = options->count % ranks;
    const uint64_t total = options->count + (self->pad && over ? ranks - over : 0);
    uint32_t *order = out->order;

    if (!self->pad && !options->sequential && ranks > options->count)
        return co_partition_too_many_ranks(options);
    for (uint64_t r = 0; r < ranks; r++) {
        out->size[r] = total / ranks + (r < total % ranks);
        for (uint64_t i = r; i < total; i += ranks)
            *order++ = (uint32_t)(i % options->count);
    }
    out->dealt = self->shuffle != INTERLEAVED_PART;
    out->torch = self->shuffle == INTERLEAVED_TORCH;
    out->frozen = !self->set_epoch;
    if (self->seed >= 0)
        out->seed = (uint64_t)self->seed;
    return CO_OK;
}

const co_partition_ops co_partition_interleaved = {
    .name = "interleaved",
    .summary = "sample i to rank i mod N, as PyTorch's DistributedSampler",
    .keys = partition_interleaved_keys,
    .self_size = sizeof(partition_interleaved),
    .cut = partition_interleaved_cut,
    .any_ranks = true,
    .repeats = "the set is padded from its start to a multiple of the ranks",
};
