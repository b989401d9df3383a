/*
 * data.h - data sets, the plan of an epoch, and the loader.
 *
 * Threads: an open data set may be read by any number of threads. A sampler and a loader belong to
 * one thread at a time; several of them may share a data set. Functions ..._sized: see version.h.
 */
#ifndef COHORT_DATA_H
#define COHORT_DATA_H

#include <cohort/ext/dataset.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- data sets ---- */

typedef struct co_dataset co_dataset;

/** Open from a config text: "{name: fashion-mnist, path: DIR, normalize: {mean: 0.286, std:
 * 0.353}}" or a bare name. Caller destroys. */
CO_API co_status co_dataset_open(co_dataset **out, const char *config, co_split split);
CO_API void co_dataset_destroy(co_dataset *dataset);
CO_API uint64_t co_dataset_count(const co_dataset *dataset);
/** Shape of what co_dataset_read writes: of images (C, H, W), after resizing. Borrowed. */
CO_API const co_shape *co_dataset_shape(const co_dataset *dataset);
/** Without labels: the number of outputs of a network for a sample. */
CO_API int64_t co_dataset_classes(const co_dataset *dataset);
/** Fields of a sample: CO_FIELD_INPUT first, of images then CO_FIELD_LABEL, each with the type and
 *  shape that co_dataset_read_field writes; `data` is NULL. Ended by a field without a name;
 *  borrowed. */
CO_API const co_field *co_dataset_fields(const co_dataset *dataset);
/** Field k of sample i, into an array of its type and shape; thread-safe. Images as by
 *  co_dataset_read. */
CO_API co_status co_dataset_read_field(const co_dataset *dataset, void *out, int k, uint64_t i);
/** Sample i, resized, divided by 255 and normalised, not augmented, as (C, H, W) floats;
 *  thread-safe. Samples with fields of their own: the first field, which must be f32, as
 *  it is. A large JPEG of the
 * training split is decoded at a smaller scale unless the config has `scaled_decode: false`; one of
 * the test split never is. */
CO_API co_status co_dataset_read(const co_dataset *dataset, float *out, uint64_t i);
/** As stored in the data set; 0 where samples have no label. `i` is not checked: less than
 *  co_dataset_count. */
CO_API int32_t co_dataset_label(const co_dataset *dataset, uint64_t i);

/* ---- the plan of an epoch: which rank takes which samples at which step ---- */

/**
 * A pure function of its options and the epoch: every rank knows every rank's samples at every
 * step without talking. Each sample is taken exactly once per epoch, unless the partition says
 * otherwise: `interleaved` with `pad` takes some twice, `file` those alone that the file names.
 *
 * `global` (default): a permutation of the whole set by (seed, epoch), cut into global batches of
 *   `batch` samples, the last one the rest; each rank takes a contiguous part of every batch, so
 *   the batches do not depend on the number of ranks.
 * All others cut the set into one part per rank, which may be empty, and each rank's
 *   part is permuted by (seed, epoch). `random` is shuffled by Python's random.Random(seed), so
 *   that the parts equal those of PyTorch's tutorial; `cohort list partitions` names the others.
 *   With `batching: proportional` a rank's share of every global batch follows its share of the
 *   data, so all finish the epoch together. With `equal` each rank takes batch / ranks samples
 *   until its part is used up and none from then on, so the global batch shrinks.
 */
typedef struct co_sampler co_sampler;

typedef struct co_sampler_options {
    uint64_t count; /* samples of the data set, or fewer: then its first ones */
    uint64_t batch; /* global */
    int ranks;
    uint64_t seed;
    const char *partition; /* config text, NULL: "global"; "{kind: random, ratios: [0.7, 0.3]}" */
    bool sequential;       /* evaluation: no permutation */
    const co_dataset *dataset; /* borrowed during co_sampler_create: the labels for the partitions
                                  `labels` and `dirichlet`; NULL for other partitions */
} co_sampler_options;

CO_API co_status co_sampler_create_sized(co_sampler **out, const co_sampler_options *options,
                                         size_t size);
static inline co_status co_sampler_create(co_sampler **out, const co_sampler_options *options)
{
    return co_sampler_create_sized(out, options, sizeof(*options));
}
CO_API void co_sampler_destroy(co_sampler *sampler);
/** Steps in an epoch. */
CO_API uint64_t co_sampler_steps(const co_sampler *sampler);
/** Samples of the whole global batch at a step. */
CO_API uint64_t co_sampler_global(const co_sampler *sampler, uint64_t step);
/** This rank's number of samples at a step; may be 0. */
CO_API uint64_t co_sampler_local(const co_sampler *sampler, uint64_t step, int rank);
/** Largest co_sampler_local over all steps. */
CO_API uint64_t co_sampler_local_max(const co_sampler *sampler, int rank);
/** Samples of this rank's part in an epoch. */
CO_API uint64_t co_sampler_part(const co_sampler *sampler, int rank);
/** Write co_sampler_local indices into the data set. Not thread-safe: it keeps the permutation of
 *  the last epoch, and CO_E_NOMEM is possible the first time that a rank is passed. */
CO_API co_status co_sampler_indices(co_sampler *sampler, uint32_t *out, uint64_t epoch,
                                    uint64_t step, int rank);

/* ---- the loader: batches read ahead by threads, through a bounded queue ---- */

typedef struct co_loader co_loader;

/** One rank's part of one global batch. Everything is borrowed until the next co_loader_next. A
 *  program may fill one with arrays of its own:
 *    {.count = n, .local = n, .global = n, .sample = sample,
 *     .field = {{CO_FIELD_INPUT, CO_F32, {3, {1, 28, 28}}, pixels},
 *               {CO_FIELD_LABEL, CO_I32, {0}, labels}}}
 *  Its contents are checked where they are used (CO_E_USAGE), except the lengths of arrays and the
 *  values of floats. A NaN or an infinity passes through the network as through any arithmetic: the
 *  sample's loss and logits are mostly NaN, which count as wrong, and in training the weights
 * become NaN, too, unless a loss scale (co_model_options.precision) skips the step. A network takes
 * those fields that it has inputs for: `input`, and what its loss compares with, `label` (from 0 to
 * the network's logits - 1) or `target`. */
typedef struct co_batch {
    uint64_t epoch, step; /* step within the epoch */
    uint64_t count;       /* samples here; may be 0, with arrays NULL */
    uint64_t global;      /* samples over all ranks, at least count: the divisor of the gradient */
    uint64_t local; /* samples of this rank in the step: count, or more if this is a micro-batch */
    co_field field[CO_MAX_FIELDS]; /* ended by a field without a name */
    const uint32_t *sample;  /* (count) indices into the data set, or any numbers: dropout uses them
                                for its random stream; needed in training only */
    uint64_t bad;            /* samples replaced by others (`on_bad_sample: skip`) */
    const char *bad_message; /* the reason for the first of them; NULL: none */
} co_batch;

/** The field of that name, or NULL. */
CO_API const co_field *co_batch_find(const co_batch *batch, const char *name);

typedef struct co_loader_options {
    const co_dataset *dataset; /* borrowed */
    co_sampler *sampler;       /* borrowed; used by the loader alone. For at most as many samples as
                                  `dataset` has */
    int rank;                  /* rank of the sampler */
    int shards;                /* consecutive shards of the sampler that this rank reads, from
                                  `rank` on; 0: 1 */
    int threads;               /* 0: read in the calling thread */
    int depth;                 /* batches read ahead; 0: 4 */
    uint64_t first_epoch, first_step; /* position to start at */
    uint64_t seed;                    /* of augmentation */
    /* Borrowed: the queue of a device to which batches are copied, whose copies may still read a
       batch after the next co_loader_next. NULL: all are done by then. */
    struct co_queue *queue;
} co_loader_options;

CO_API co_status co_loader_create_sized(co_loader **out, const co_loader_options *options,
                                        size_t size);
static inline co_status co_loader_create(co_loader **out, const co_loader_options *options)
{
    return co_loader_create_sized(out, options, sizeof(*options));
}
CO_API void co_loader_destroy(co_loader *loader);
CO_API co_status co_loader_next_sized(co_batch *out, size_t size, co_loader *loader);
/** The next batch, epoch after epoch without end; of several `shards` the samples of all, one shard
 *  after the other. Errors of samples are returned here: bytes that cannot be read, or a label that
 *  the data set does not have (CO_E_DATA names the sample). */
static inline co_status co_loader_next(co_batch *out, co_loader *loader)
{
    return co_loader_next_sized(out, sizeof(*out), loader);
}
/** Seconds that co_loader_next has waited for data so far. */
CO_API double co_loader_wait_seconds(const co_loader *loader);
/** Samples replaced by others so far (`on_bad_sample: skip`), counted each time. */
CO_API uint64_t co_loader_bad_samples(const co_loader *loader);

#ifdef __cplusplus
}
#endif
#endif
