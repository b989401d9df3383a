/*
 * imagefolder.c - data set "imagefolder": a folder of images per class, as torchvision's
 * ImageFolder.
 *
 * Opening only lists names; a file is read when its sample is. Does not decode images.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/mem.h"
#include "data/folder_names.h"
#include "data/formats.h"

#define IMAGEFOLDER_MAX_FILE    ((off_t)256 << 20)
#define IMAGEFOLDER_MAX_CLASSES 100000

typedef struct imagefolder {
    int64_t channels;
    const char *train, *test; /* names of the splits' folders; test: NULL for val, or else test */
    /* set by open */
    char folder[PATH_MAX]; /* of the split */
    co_names classes;      /* sorted; a label is an index into it */
    co_names files;        /* grouped by class, each group sorted */
    uint32_t *first;       /* owned: (classes + 1) index of the first file of each class */
} imagefolder;

#define IMAGEFOLDER(field) offsetof(imagefolder, field)

static const co_key imagefolder_keys[] = {
    {"channels", CO_KEY_INT, IMAGEFOLDER(channels), "3", 1, 3, NULL,
     "3: colour, 1: grey; images are converted"},
    {"train", CO_KEY_STRING, IMAGEFOLDER(train), "train", 0, 0, NULL,
     "folder below path with the classes of the training split"},
    {"test", CO_KEY_STRING, IMAGEFOLDER(test), "~", 0, 0, NULL,
     "the same of the test split; default: val, or else test"},
    CO_KEYS_END,
};

static co_status imagefolder_join(char out[PATH_MAX], const char *folder, const char *name)
{
    const int n = snprintf(out, PATH_MAX, "%s/%s", folder, name);

    if (n < 0 || n >= PATH_MAX)
        return co_fail(CO_E_DATA, "%s/%.64s...: the path is too long", folder, name);
    return CO_OK;
}

static bool imagefolder_is_folder(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static co_status imagefolder_find_split(imagefolder *self, const char *path, co_split split)
{
    const char *name = split == CO_SPLIT_TRAIN ? self->train : self->test;

    if (!path)
        return co_fail(CO_E_USAGE, "data imagefolder: set data.path, the folder with train/ and "
                                   "val/ in it");
    if (!imagefolder_is_folder(path))
        return co_fail(CO_E_DATA, "%s: no such folder; set data.path", path);
    if (!name) {
        CO_TRY(imagefolder_join(self->folder, path, "val"));
        if (imagefolder_is_folder(self->folder))
            return CO_OK;
        name = "test";
    }
    CO_TRY(imagefolder_join(self->folder, path, name));
    if (imagefolder_is_folder(self->folder))
        return CO_OK;
    if (split == CO_SPLIT_TEST && !self->test)
        return co_fail(CO_E_DATA, "%s: holds neither val nor test; name the folder with data.test",
                       path);
    return co_fail(CO_E_DATA, "%s: no such folder; name it with data.%s", self->folder,
                   split == CO_SPLIT_TRAIN ? "train" : "test");
}

/* Both splits have the classes of training: a class may have no image to test on. */
static co_status imagefolder_find_classes(imagefolder *self, const char *path)
{
    char train[PATH_MAX];

    CO_TRY(imagefolder_join(train, path, self->train));
    CO_TRY(co_names_add(&self->classes, imagefolder_is_folder(train) ? train : self->folder,
                        CO_NAMES_FOLDERS));
    if (self->classes.n == 0)
        return co_fail(CO_E_DATA, "%s: holds no folder; each class needs one with its images",
                       self->folder);
    if (self->classes.n > IMAGEFOLDER_MAX_CLASSES)
        return co_fail(CO_E_DATA, "%s: %zu folders; at most %d classes are taken", self->folder,
                       self->classes.n, IMAGEFOLDER_MAX_CLASSES);
    return CO_OK;
}

/* Refuse class folders that training does not have: they have no label. */
static co_status imagefolder_check_folders(const imagefolder *self)
{
    co_names found = {0};
    co_status st = co_names_add(&found, self->folder, CO_NAMES_FOLDERS);

    for (size_t i = 0; st == CO_OK && i < found.n; i++)
        if (co_names_find(&self->classes, co_names_get(&found, i)) == self->classes.n)
            st = co_fail(CO_E_DATA, "%s/%s: a class that %s/ does not have", self->folder,
                         co_names_get(&found, i), self->train);
    co_names_free(&found);
    return st;
}

static co_status imagefolder_list_class(imagefolder *self, size_t class)
{
    const size_t before = self->files.n;
    char folder[PATH_MAX];

    CO_TRY(imagefolder_join(folder, self->folder, co_names_get(&self->classes, class)));
    if (!imagefolder_is_folder(folder))
        return CO_OK; /* only in training */
    if (strlen(folder) + NAME_MAX + 2 > PATH_MAX)
        return co_fail(CO_E_DATA, "%s: the path is too long", folder);
    CO_TRY(co_names_add(&self->files, folder, CO_NAMES_IMAGES));
    if (self->files.n == before)
        return co_fail(CO_E_DATA,
                       "%s: a class without images (.jpg, .jpeg, .png); add some or remove the "
                       "folder",
                       folder);
    if (self->files.n > UINT32_MAX)
        return co_fail(CO_E_DATA, "%s: more than %u images", self->folder, UINT32_MAX);
    return CO_OK;
}

static co_status imagefolder_list(imagefolder *self)
{
    self->first = co_calloc(self->classes.n + 1, sizeof(*self->first));
    if (!self->first)
        return CO_E_NOMEM;
    for (size_t class = 0; class < self->classes.n; class ++) {
        CO_TRY(imagefolder_list_class(self, class));
        self->first[class + 1] = (uint32_t)self->files.n;
    }
    if (self->files.n == 0)
        return co_fail(CO_E_DATA, "%s: holds no folder; each class needs one with its images",
                       self->folder);
    return CO_OK;
}

static void imagefolder_close(void *state)
{
    imagefolder *self = state;

    co_names_free(&self->classes);
    co_names_free(&self->files);
    co_free(self->first);
}

static co_status imagefolder_open_split(imagefolder *self, const char *path, co_split split)
{
    CO_TRY(imagefolder_find_split(self, path, split));
    CO_TRY(imagefolder_find_classes(self, path));
    CO_TRY(imagefolder_check_folders(self));
    return imagefolder_list(self);
}

static co_status imagefolder_open(void *state, co_dataset_info *info, const char *path,
                                  co_split split)
{
    imagefolder *self = state;
    co_status st;

    if (self->channels == 2)
        return co_fail(CO_E_USAGE, "data imagefolder: channels is 1 or 3");
    st = imagefolder_open_split(self, path, split);
    if (st != CO_OK) {
        imagefolder_close(self);
        return st;
    }
    info->count = self->files.n;
    info->encoded = true;
    info->shape = (co_shape){3, {self->channels, 0, 0}};
    info->classes = (int64_t)self->classes.n;
    return CO_OK;
}

static int32_t imagefolder_label(const void *state, uint64_t i)
{
    const imagefolder *self = state;
    size_t low = 0, end = self->classes.n;

    while (end - low > 1) {
        const size_t middle = low + (end - low) / 2;

        if (self->first[middle] <= i)
            low = middle;
        else
            end = middle;
    }
    return (int32_t)low;
}

static const char *imagefolder_class_name(const void *state, int32_t label)
{
    return co_names_get(&((const imagefolder *)state)->classes, (size_t)label);
}

static void imagefolder_sample_name(const void *state, char *out, size_t size, uint64_t i)
{
    const imagefolder *self = state;

    snprintf(out, size, "%s/%s/%s", self->folder,
             imagefolder_class_name(self, imagefolder_label(self, i)),
             co_names_get(&self->files, i));
}

static co_status imagefolder_read_file(co_bytes *out, co_buffer *buffer, size_t size, int fd,
                                       const char *path)
{
    uint8_t *bytes;
    size_t at = 0;

    CO_TRY(co_buffer_reserve(&bytes, buffer, size ? size : 1));
    while (at < size) {
        const ssize_t n = read(fd, bytes + at, size - at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return co_fail(CO_E_DATA, "%s: %s", path, strerror(errno));
        if (n == 0)
            break; /* truncated meanwhile; decoding it will fail */
        at += (size_t)n;
    }
    *out = (co_bytes){bytes, at};
    return CO_OK;
}

static co_status imagefolder_read(const void *state, co_bytes *out, co_buffer *buffer, uint64_t i)
{
    char path[PATH_MAX + 2 * NAME_MAX + 4];
    static const co_open_rule rule = {.status = CO_E_DATA, .max = IMAGEFOLDER_MAX_FILE};
    uint64_t size;
    co_status st;
    int fd;

    imagefolder_sample_name(state, path, sizeof(path), i);
    CO_TRY(co_open_read(&fd, &size, path, &rule));
    st = imagefolder_read_file(out, buffer, size, fd, path);
    close(fd);
    return st;
}

const co_dataset_ops co_dataset_imagefolder = {
    .name = "imagefolder",
    .summary = "JPEG and PNG files of any size: path/train/CLASS/*.jpg and path/val/CLASS/*.jpg",
    .keys = imagefolder_keys,
    .self_size = sizeof(imagefolder),
    .open = imagefolder_open,
    .read = imagefolder_read,
    .label = imagefolder_label,
    .sample_name = imagefolder_sample_name,
    .class_name = imagefolder_class_name,
    .close = imagefolder_close,
};
