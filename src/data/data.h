/* data.h - what the rest of Cohort needs of src/data beside the public header. */
#ifndef CO_DATA_DATA_H
#define CO_DATA_DATA_H

#include <cohort/data.h>

#include "core/plugin.h"
#include "data/partition.h"
#include "image/augment.h"
#include "image/image.h"

/* NULL-ended, in the order that `cohort list datasets` prints. */
extern const co_dataset_ops *const co_dataset_formats[];
extern const co_plugins co_dataset_plugins;
/* Keys of every data set: path, normalize, resize. */
extern const co_key co_dataset_common_keys[];

/* Open from a config value (`config` owns it and outlives the data set). */
co_status co_dataset_open_value(co_dataset **out, const co_value *value, co_config *config,
                                co_split split);
const char *co_dataset_name(const co_dataset *dataset);
/* Samples are images with a label, which have a form as stored; else they have fields. */
bool co_dataset_has_images(const co_dataset *dataset);
bool co_dataset_has_labels(const co_dataset *dataset);
/* As stored, before resizing. */
const co_dataset_info *co_dataset_stored(const co_dataset *dataset);
/* Its label, of a format that may be wrong about it: CO_E_DATA names the sample, the label and
   those that there are. */
co_status co_dataset_take_label(int32_t *out, const co_dataset *dataset, uint64_t i);
/* Its bytes as stored: co_dataset_ops' read. */
co_status co_dataset_stored_sample(co_bytes *out, const co_dataset *dataset, co_buffer *buffer,
                                   uint64_t i);
/* What messages call a sample: its file, or its number and the data set's path. */
void co_dataset_sample_name(const co_dataset *dataset, char *out, size_t size, uint64_t i);
/* NULL: the label has no name. Borrowed. */
const char *co_dataset_class_name(const co_dataset *dataset, int32_t label);

/* CO_E_USAGE unless it is for samples that the data set has, and for `rank` and the `parts` - 1
   after it. */
co_status co_sampler_fits(const co_sampler *sampler, const co_dataset *dataset, int rank,
                          int parts);

/* Told by each reader thread, on that thread, of samples that it has read: since when, how many. */
typedef struct co_loader_observer {
    void (*read)(void *arg, int reader, uint64_t begin_ns, uint64_t samples);
    void *arg;
} co_loader_observer;

/* `observer` is borrowed by the readers until the loader goes. */
void co_loader_observe(co_loader *loader, const co_loader_observer *observer);

/* What readers have read so far, ahead of the batches that were handed out. */
typedef struct co_loader_reads {
    uint64_t samples, bytes; /* as stored */
} co_loader_reads;
co_loader_reads co_loader_read_so_far(const co_loader *loader);

/* Whether its JPEGs may be decoded at a smaller scale (`scaled_decode`). */
bool co_dataset_scales(const co_dataset *dataset);
/* Whether another sample takes the place of one whose bytes are no image (`on_bad_sample`). */
bool co_dataset_skips_bad(const co_dataset *dataset);

/* Samples begin .. begin + count of a batch. */
co_batch co_batch_slice(const co_batch *batch, uint64_t begin, uint64_t count);

/* What reading samples needs over and over; each reading thread has its own. Zero is empty. */
typedef struct co_data_scratch {
    co_buffer stored, pixels;
    co_image_scratch *image; /* owned, NULL until needed */
    uint64_t bytes;          /* that data sets have given so far, as stored */
    bool past;               /* floats past the caches: other samples drive them out anyway */
} co_data_scratch;
void co_data_scratch_free(co_data_scratch *scratch);

/* As co_dataset_read, augmented for this place in the run (NULL: not at all; samples of the test
   split never are). Takes no memory once the scratch has grown. */
co_status co_dataset_draw(const co_dataset *dataset, float *out, uint64_t i,
                          const co_augment_place *place, co_data_scratch *scratch);

#endif
