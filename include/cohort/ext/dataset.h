/* ext/dataset.h - what the author of a data set format fills in. */
#ifndef COHORT_EXT_DATASET_H
#define COHORT_EXT_DATASET_H

#include <cohort/ext/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum co_split { CO_SPLIT_TRAIN = 0, CO_SPLIT_TEST } co_split;

/** What open determines about the samples. */
typedef struct co_dataset_info {
    uint64_t count;  /* samples; below 2^32 */
    bool encoded;    /* samples are whole JPEG or PNG files, each of its own size */
    bool in_memory;  /* samples are in memory, or made up: to read one waits for no file */
    co_shape shape;  /* (C, H, W) of every sample as stored; encoded: (1 or 3, 0, 0), where C is the
                        number of channels that images are converted to. Without images: ignored */
    int64_t classes; /* 1 to 2^31 - 1; labels are 0 .. classes - 1. Without labels: the number of
                        outputs of a network for a sample */
    /** Fields of a sample that is not an image with a label, the first CO_FIELD_INPUT of f32 or
     * i32; names belong to the format, and are valid until close. Ended by a field without a name;
     * none: images. */
    co_field field[CO_MAX_FIELDS];
} co_dataset_info;

/** Bytes of a sample, borrowed. */
typedef struct co_bytes {
    const uint8_t *at;
    size_t n;
} co_bytes;

/** A block that grows as needed and is reused sample after sample; each reading thread has its own.
 *  Zero is empty. */
typedef struct co_buffer {
    uint8_t *at; /* owned */
    size_t size;
} co_buffer;

/** At least `n` bytes in out, owned by the buffer; its former content is lost. CO_E_NOMEM. */
CO_API co_status co_buffer_reserve(uint8_t **out, co_buffer *buffer, size_t n);
CO_API void co_buffer_free(co_buffer *buffer);

typedef struct co_dataset_ops {
    const char *name;
    const char *summary;
    const co_key *keys; /* of this format; path, normalize and others belong to every data set */
    size_t self_size;
    /** `self` holds the keys already read. `path` is the config's, NULL when absent. A missing,
     *  damaged or invalid file is CO_E_DATA, with the file and what is wrong. Every label is
     * checked here, so that label cannot fail; code that uses a label checks it once more. close
     * does not follow on a failure. */
    co_status (*open)(void *self, co_dataset_info *info, const char *path, co_split split);
    /** The bytes of sample i < count; thread-safe, any order. Not encoded: C * H * W bytes, (C, H,
     *  W) row-major; if there are fewer the reader fails with CO_E_DATA. They are in memory of the
     *  data set (a mapping), or were written into `buffer`; they are valid until the buffer's next
     *  use. A sample that cannot be read is CO_E_DATA, naming it. */
    co_status (*read)(const void *self, co_bytes *out, co_buffer *buffer, uint64_t i);
    /** NULL: samples have no label. */
    int32_t (*label)(const void *self, uint64_t i);
    /** Instead of `read`, for samples with fields of their own: field k of sample i < count, with
     *  its type and shape, to `out`, of any alignment; thread-safe, any order. */
    co_status (*field)(const void *self, void *out, int k, uint64_t i);
    /** The same in training, for a format that draws anew what a sample is: a function of (seed,
     *  epoch, i), so that it is the same on any number of ranks and after a run is resumed. NULL:
     *  `field`. */
    co_status (*draw)(const void *self, void *out, int k, uint64_t i, uint64_t seed,
                      uint64_t epoch);
    /** Of tokens: bytes of text per token, the mean over the split; for bits per byte. 0, or NULL:
     *  not known. */
    double (*bytes_per_token)(const void *self);
    /** Of tokens: make the folder, and write the files of what makes text tokens and back, if that
     * is known. NULL: it never is. */
    co_status (*save_tokenizer)(const void *self, const char *folder);
    /** The name of sample i in messages, written to `out` (cut to `size`): the path of its file.
     *  NULL: "sample 17 of PATH". */
    void (*sample_name)(const void *self, char *out, size_t size, uint64_t i);
    /** The name of a class: of its folder. Borrowed. NULL: it has no name. */
    const char *(*class_name)(const void *self, int32_t label);
    void (*close)(void *self);
    /** For a format that fetches: these n samples will be read soon, in this order. Returns at
     *  once, and whether there may be anything to fetch; false: it need not be called again.
     *  Thread-safe. n = 0: no more are expected, and nothing is being fetched when it returns.
     *  NULL: samples need no such notice. */
    bool (*expect)(const void *self, const uint32_t *sample, uint64_t n);
} co_dataset_ops;

#ifdef __cplusplus
}
#endif
#endif
