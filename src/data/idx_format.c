/*
 * idx_format.c - data set "idx": grey images in IDX files of any name, such as EMNIST or KMNIST.
 */
#include <stdio.h>

#include "core/fs.h"
#include "data/formats.h"
#include "data/idx_images.h"

#define IDX_FORMAT_PATH 4096

typedef struct idx_format {
    co_idx_images set; /* first, so that co_idx_images_read and the others work on an idx_format */
    const char *images, *labels, *test_images, *test_labels;
    int64_t classes;
} idx_format;

#define IDX_FORMAT(field) offsetof(idx_format, field)

static const co_key idx_format_keys[] = {
    {"images", CO_KEY_STRING, IDX_FORMAT(images), "train-images-idx3-ubyte", 0, 0, NULL,
     "file of the training images, below path; .gz may be left out"},
    {"labels", CO_KEY_STRING, IDX_FORMAT(labels), "train-labels-idx1-ubyte", 0, 0, NULL,
     "file of the training labels"},
    {"test_images", CO_KEY_STRING, IDX_FORMAT(test_images), "t10k-images-idx3-ubyte", 0, 0, NULL,
     "file of the test images"},
    {"test_labels", CO_KEY_STRING, IDX_FORMAT(test_labels), "t10k-labels-idx1-ubyte", 0, 0, NULL,
     "file of the test labels"},
    {"classes", CO_KEY_INT, IDX_FORMAT(classes), "0", 0, 256, NULL,
     "number of labels; 0: as many as the largest of the training split needs"},
    CO_KEYS_END,
};

static co_status idx_format_find(char out[IDX_FORMAT_PATH], const char *folder, const char *file)
{
    int n = snprintf(out, IDX_FORMAT_PATH, "%s/%s.gz", folder, file);

    if (n < 0 || n >= IDX_FORMAT_PATH)
        return co_fail(CO_E_USAGE, "data idx: the path of '%s' is too long", file);
    if (!co_fs_exists(out))
        out[n - 3] = '\0'; /* as named; opening it reports a missing file */
    return CO_OK;
}

/* Without the key the classes are those of the training split, where that is there: the test split
   may lack some. */
static co_status idx_format_classes(int64_t *out, const idx_format *self, const char *folder,
                                    co_split split)
{
    char path[IDX_FORMAT_PATH];
    co_idx label;

    *out = self->classes;
    if (*out || split == CO_SPLIT_TRAIN)
        return CO_OK;
    CO_TRY(idx_format_find(path, folder, self->labels));
    if (!co_fs_exists(path))
        return CO_OK;
    CO_TRY(co_idx_open(&label, path, 1));
    *out = co_idx_images_count_classes(&label);
    co_idx_close(&label);
    return CO_OK;
}

static co_status idx_format_open(void *state, co_dataset_info *info, const char *path,
                                 co_split split)
{
    idx_format *self = state;
    char image[IDX_FORMAT_PATH], label[IDX_FORMAT_PATH];
    bool train = split == CO_SPLIT_TRAIN;
    int64_t classes;

    if (!path)
        return co_fail(CO_E_USAGE, "data idx: the key 'path' is missing: the folder of the files");
    CO_TRY(idx_format_find(image, path, train ? self->images : self->test_images));
    CO_TRY(idx_format_find(label, path, train ? self->labels : self->test_labels));
    CO_TRY(idx_format_classes(&classes, self, path, split));
    return co_idx_images_open_files(&self->set, info, image, label, classes, "data idx");
}

const co_dataset_ops co_dataset_idx = {
    .name = "idx",
    .summary = "grey images in any IDX files, plain or .gz; path: their folder",
    .keys = idx_format_keys,
    .self_size = sizeof(idx_format),
    .open = idx_format_open,
    .read = co_idx_images_read,
    .label = co_idx_images_label,
    .close = co_idx_images_close,
};
