/* data.h - interface of src/data to the rest of Cohort, besides <cohort/data.h>. */
#ifndef CO_DATA_DATA_H
#define CO_DATA_DATA_H

#include <cohort/data.h>

#include "core/plugin.h"
#include "data/partition.h"
#include "image/augment.h"
#include "image/image.h"

/* NULL-terminated, in the order that `cohort list datasets` prints. */
extern const co_dataset_ops *const co_dataset_formats[];
extern const co_plugins co_dataset_plugins;
/* Keys common to all data sets: path, normalize, resize, ... */
extern const co_key co_dataset_common_keys[];

/* Open from a config value. `config` owns the value and must outlive the data set. */
co_status co_dataset_open_value(co_dataset **out, const co_value *value, co_config *config,
                                co_split split);
const char *co_dataset_name(const co_dataset *dataset);
/* Whether samples are images with a label, which can also be read as stored; else they have fields
   of the format's own. */
bool co_dataset_has_images(const co_dataset *dataset);
bool co_dataset_has_labels(const co_dataset *dataset);
/* CO_E_DATA: no network is trained on one and evaluated on the other, since shapes differ, or the
   test split has more classes. */
co_status co_dataset_check_splits(const co_dataset *train, const co_dataset *test);
/* What the format reported: samples as stored, before resizing. Borrowed. */
const co_dataset_info *co_dataset_stored(const co_dataset *dataset);
/* The label of sample i, checked: CO_E_DATA if the format returns an invalid one, naming the
   sample, the label and the valid range. */
co_status co_dataset_take_label(int32_t *out, const co_dataset *dataset, uint64_t i);
/* The check alone, of a label that was read as a field. */
co_status co_dataset_check_label(const co_dataset *dataset, int32_t label, uint64_t i);
/* The stored bytes of sample i, as by co_dataset_ops.read. */
co_status co_dataset_stored_sample(co_bytes *out, const co_dataset *dataset, co_buffer *buffer,
                                   uint64_t i);
/* Whether it wants to know which samples are read next. */
bool co_dataset_expects(const co_dataset *dataset);
/* As co_dataset_ops.expect; false where the format needs no such notice. */
bool co_dataset_expect(const co_dataset *dataset, const uint32_t *sample, uint64_t n);
/* The name of a sample in messages: its file, or its number and the data set's path. */
void co_dataset_sample_name(const co_dataset *dataset, char *out, size_t size, uint64_t i);
/* Borrowed; NULL if the label has no name. */
const char *co_dataset_class_name(const co_dataset *dataset, int32_t label);

/* CO_E_USAGE unless the data set has all samples of the sampler, and the sampler has the `parts`
   ranks from `rank` on. */
co_status co_sampler_fits(const co_sampler *sampler, const co_dataset *dataset, int rank,
                          int parts);

/* As co_loader_create, for who has the images elsewhere: of each sample its index and label are
   there, and `input` has no data. Takes options without threads. */
co_status co_loader_create_labels(co_loader **out, const co_loader_options *options);

/* Called on a reader thread after it has read some samples: when it began, and how many. */
typedef struct co_loader_observer {
    void (*read)(void *arg, int reader, uint64_t begin_ns, uint64_t samples);
    void *arg;
} co_loader_observer;

/* `observer` is borrowed until the loader is destroyed. */
void co_loader_observe(co_loader *loader, const co_loader_observer *observer);

/* Totals read so far, including batches that were not handed out yet. */
typedef struct co_loader_reads {
    uint64_t samples, bytes; /* as stored */
} co_loader_reads;
co_loader_reads co_loader_read_so_far(const co_loader *loader);

/* Seconds that readers have spent on samples; of these on a core, and waiting for one. Readers that
   wait for a free slot are not busy. */
typedef struct co_loader_times {
    double busy, core, delayed;
} co_loader_times;
co_loader_times co_loader_times_so_far(const co_loader *loader);

/* Whether its JPEGs may be decoded at a smaller scale (`scaled_decode`). */
bool co_dataset_scales(const co_dataset *dataset);
/* Whether images that cannot be decoded are replaced by others (`on_bad_sample: skip`). */
bool co_dataset_skips_bad(const co_dataset *dataset);
/* Whether a sample that was not read, by this status, is one of those. */
bool co_dataset_skips(const co_dataset *dataset, co_status st);
/* Whether a set has others for that; images that `cohort predict` is given have none. */
bool co_dataset_may_skip_bad(const co_dataset *dataset);

/* Samples [begin, begin + count) of a batch, whose arrays are borrowed. */
co_batch co_batch_slice(const co_batch *batch, uint64_t begin, uint64_t count);

/* Bytes of text per token, the mean over the split; 0: not known. */
double co_dataset_bytes_per_token(const co_dataset *dataset);
/* Make the folder, and write the tokenizer's files (text/tokenizer.h); nothing where it is not
 * known.
 */
co_status co_dataset_save_tokenizer(const co_dataset *dataset, const char *folder);
#define CO_DATA_TOKENIZER "tokenizer" /* that folder in a run directory */
/* What its tokens are below, where it is of language; else 0. */
int64_t co_dataset_vocabulary(const co_dataset *dataset);
/* CO_E_DATA unless tokens stand for what they do by the tokenizer of the folder; CO_OK where one of
   the two is not known. */
co_status co_dataset_check_tokenizer(const co_dataset *dataset, const char *folder);

/* co_dataset_read_field of samples with fields of their own, in training: as drawn for the epoch of
   `place`. */
co_status co_dataset_draw_field(const co_dataset *dataset, void *out, int k,
                                const co_augment_place *place);

/* Buffers for reading samples, reused; one for each reading thread. Zero is empty. */
typedef struct co_data_scratch {
    co_buffer stored, pixels;
    co_image_scratch *image; /* owned, NULL until needed */
    uint64_t bytes;          /* read so far, as stored */
    bool stream;             /* non-temporal stores: floats leave the caches before they are read */
} co_data_scratch;
void co_data_scratch_free(co_data_scratch *scratch);

/* As co_dataset_read, augmented for `place` in the run (NULL: not augmented, as the test split
   always is). Allocates nothing once the scratch has grown. */
co_status co_dataset_draw(const co_dataset *dataset, float *out, uint64_t i,
                          const co_augment_place *place, co_data_scratch *scratch);

#endif
