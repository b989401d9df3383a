/* data.h - data sets, the plan of an epoch, and the loader. */
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
/** Of what co_dataset_read writes: of images (C, H, W), after resizing. Borrowed. */
CO_API const co_shape *co_dataset_shape(const co_dataset *dataset);
/** Without labels: how many values a network is to give for a sample. */
CO_API int64_t co_dataset_classes(const co_dataset *dataset);
/** What a sample has: CO_FIELD_INPUT first, of images then CO_FIELD_LABEL, for each the type and
 * the shape that co_dataset_read_field writes; `data` is NULL. Ended by one without a name;
 * borrowed.
 */
CO_API const co_field *co_dataset_fields(const co_dataset *dataset);
/** Field k of sample i, into an array of its type and shape; thread-safe. Images as below. */
CO_API co_status co_dataset_read_field(const co_dataset *dataset, void *out, int k, uint64_t i);
/** Sample i, resized, divided by 255 and normalised, not augmented, as (C, H, W) floats;
 *  thread-safe. Samples with fields of their own: the first field, as it is. A large JPEG of the
 * training split is decoded at a smaller scale unless the config has `scaled_decode: false`; one of
 * the test split never is. */
CO_API co_status co_dataset_read(const co_dataset *dataset, float *out, uint64_t i);
/** As the format gives it; 0 where samples have none. `i` is trusted: less than co_dataset_count.
 */
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
    uint64_t count; /* samples of the data set, or fewer: the first of it */
    uint64_t batch; /* global */
    int ranks;
    uint64_t seed;
    const char *partition; /* config text, NULL: "global"; "{kind: random, ratios: [0.7, 0.3]}" */
    bool sequential;       /* evaluation: no permutation */
    const co_dataset *dataset; /* borrowed during co_sampler_create: has the labels that `labels`
                                  and `dirichlet` ask for; NULL for other partitions */
} co_sampler_options;

CO_API co_status co_sampler_create(co_sampler **out, const co_sampler_options *options);
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
/** Write co_sampler_local indices into the data set. Not thread-safe: it keeps the
 *  permutation of the last epoch asked for, and CO_E_NOMEM is possible where a rank asks for the
 *  first time. */
CO_API co_status co_sampler_indices(co_sampler *sampler, uint32_t *out, uint64_t epoch,
                                    uint64_t step, int rank);

/* ---- the loader: batches read ahead by threads, through a bounded queue ---- */

typedef struct co_loader co_loader;

/** One rank's part of one global batch. Everything is borrowed until the next co_loader_next. A
 *  program may fill one with arrays of its own:
 *      {.count = n, .local = n, .global = n, .sample = sample,
 *       .field = {{CO_FIELD_INPUT, CO_F32, {3, {1, 28, 28}}, pixels},
 *                 {CO_FIELD_LABEL, CO_I32, {0}, labels}}}
 *  What is said here of them is checked where they are used (CO_E_USAGE), but for their lengths and
 *  the values of floats, which nobody looks at. A NaN or an infinity there goes through the network
 *  as through any arithmetic: the sample's loss and logits are mostly NaN, which count as wrong,
 *  and in training so become the weights, unless a loss scale (co_model_options.precision) leaves
 *  the step out. A network takes those fields that it has inputs for: `input`, and what its loss
 *  compares with, `label` (from 0 to the network's logits - 1) or `target`. */
typedef struct co_batch {
    uint64_t epoch, step; /* step within the epoch */
    uint64_t count;       /* samples here; may be 0, and the arrays NULL */
    uint64_t global;      /* samples over all ranks, at least count: the gradient's divisor */
    uint64_t local;       /* samples of this rank in the step: count, or more of a micro-batch */
    co_field field[CO_MAX_FIELDS]; /* the first without a name ends them */
    const uint32_t *sample;  /* (count) indices into the data set, or any numbers: dropout draws by
                                them; training alone */
    uint64_t bad;            /* samples replaced by others (`on_bad_sample: skip`) */
    const char *bad_message; /* why, of the first of them; NULL: none */
} co_batch;

/** The field of that name; NULL: it has none. */
CO_API const co_field *co_batch_find(const co_batch *batch, const char *name);

typedef struct co_loader_options {
    const co_dataset *dataset; /* borrowed */
    co_sampler *sampler;       /* borrowed; the loader alone uses it. For no more samples than
                                  `dataset` has */
    int rank;                  /* of the sampler's */
    int parts;                 /* consecutive shards of the sampler that this rank reads, from
                                  `rank` on; 0: 1 */
    int threads;               /* 0: read in the calling thread */
    int depth;                 /* batches read ahead; 0: 4 */
    uint64_t first_epoch, first_step; /* where to start */
    uint64_t seed;                    /* of augmentation */
    struct co_queue *queue; /* borrowed: that of a device to which batches are copied. What it has
                               been given may read a batch beyond the next co_loader_next; NULL: all
                               is done by then */
} co_loader_options;

CO_API co_status co_loader_create(co_loader **out, const co_loader_options *options);
CO_API void co_loader_destroy(co_loader *loader);
/** The next batch, epoch after epoch without end. What is wrong with a sample comes back here:
 * bytes that cannot be read, or a label that the data set does not have (CO_E_DATA names the
 * sample). */
CO_API co_status co_loader_next(co_batch *out, co_loader *loader);
/** Seconds that co_loader_next has waited for data so far. */
CO_API double co_loader_wait_seconds(const co_loader *loader);
/** Samples replaced by others so far (`on_bad_sample: skip`), each time anew. */
CO_API uint64_t co_loader_bad_samples(const co_loader *loader);

#ifdef __cplusplus
}
#endif
#endif
