/* ext/dataset.h - what the author of a data set format fills in. */
#ifndef COHORT_EXT_DATASET_H
#define COHORT_EXT_DATASET_H

#include <cohort/ext/keys.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum co_split { CO_SPLIT_TRAIN = 0, CO_SPLIT_TEST } co_split;

/** What open finds out about the samples. */
typedef struct co_dataset_info {
    uint64_t count;  /* samples; below 2^32 */
    co_shape shape;  /* (C, H, W) of every sample as stored */
    int64_t classes; /* labels are 0 .. classes - 1 */
} co_dataset_info;

typedef struct co_dataset_ops {
    const char *name;
    const char *summary;
    const co_key *keys; /* of this format; path, normalize and resize belong to every data set */
    size_t self_size;
    /** `self` holds the keys already read. `path` is the config's, NULL when absent. A missing,
     *  damaged or lying file is CO_E_DATA naming the file and the offence. Every label is checked
     *  here, so that read and label cannot fail on one. */
    co_status (*open)(void *self, co_dataset_info *info, const char *path, co_split split);
    /** Sample i as bytes, (C, H, W) row-major; thread-safe, any order, i < count. */
    co_status (*read)(const void *self, uint8_t *out, uint64_t i);
    int32_t (*label)(const void *self, uint64_t i);
    void (*close)(void *self);
} co_dataset_ops;

#ifdef __cplusplus
}
#endif
#endif
