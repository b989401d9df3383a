/*
 * cifar_format.c - CIFAR-10 and CIFAR-100 (Krizhevsky, "Learning multiple layers of features from
 * tiny images", 2009): which files make a split, and what its labels are called.
 */
#include <stdio.h>
#include <string.h>

#include "core/config.h"
#include "core/fs.h"
#include "core/mem.h"
#include "data/cifar.h"
#include "data/formats.h"

#define CIFAR_PATH      4096
#define CIFAR_MAX_NAMES ((size_t)1 << 14) /* bytes of a text of class names */

typedef struct cifar_format {
    const char *train, *test; /* a file each, instead of the archive's */
    int labels;               /* cifar100: which label of a record */
    /* found out by open */
    size_t n_file;
    co_cifar file[CO_CIFAR_MAX_FILES];
    char *text;         /* of class names, owned; NULL: there are none */
    const char **class; /* (classes) lines of it, owned */
} cifar_format;

#define CIFAR(field) offsetof(cifar_format, field)

static const char *const cifar_labels[] = {"coarse", "fine", NULL};

static const co_key cifar10_keys[] = {
    {"train", CO_KEY_STRING, CIFAR(train), "~", 0, 0, NULL,
     "one file of training records instead of data_batch_*.bin; .gz may be left out"},
    {"test", CO_KEY_STRING, CIFAR(test), "~", 0, 0, NULL,
     "one file of test records instead of test_batch.bin"},
    CO_KEYS_END,
};

static const co_key cifar100_keys[] = {
    {"train", CO_KEY_STRING, CIFAR(train), "~", 0, 0, NULL,
     "one file of training records instead of train.bin; .gz may be left out"},
    {"test", CO_KEY_STRING, CIFAR(test), "~", 0, 0, NULL,
     "one file of test records instead of test.bin"},
    {"labels", CO_KEY_CHOICE, CIFAR(labels), "fine", 0, 0, cifar_labels,
     "fine: 100 classes; coarse: 20"},
    CO_KEYS_END,
};

/* "FOLDER/below/file", or with .gz behind it; true when there is one. */
static bool cifar_find(char out[CIFAR_PATH], const char *folder, const char *below,
                       const char *file)
{
    int n = snprintf(out, CIFAR_PATH, "%s%s%s/%s.gz", folder, below[0] ? "/" : "", below, file);

    if (n < 0 || n >= CIFAR_PATH)
        return false;
    if (co_fs_exists(out))
        return true;
    out[n - 3] = '\0';
    return co_fs_exists(out);
}

static co_status cifar_missing(const co_cifar_layout *layout, const char *folder, co_split split)
{
    const char *const *file = layout->files[split];
    const bool many = file[1] != NULL;
    char path[CIFAR_PATH];

    if (cifar_find(path, folder, "", layout->pickled[0]) ||
        cifar_find(path, folder, "", layout->pickled[1]))
        return co_fail(CO_E_DATA,
                       "%s: is of the version for Python; fetch the binary one, %s, and let "
                       "data.path be its folder %s",
                       path, layout->archive, layout->folder);
    if (!co_fs_exists(folder))
        return co_fail(CO_E_DATA, "%s: No such file or directory; data.path is the folder %s of %s",
                       folder, layout->folder, layout->archive);
    return co_fail(CO_E_DATA,
                   "%s: holds no %s%s%s, plain or .gz; data.path is the folder %s of %s, or name "
                   "the file with data.%s",
                   folder, file[0], many ? " to " : "", many ? file[CO_CIFAR_MAX_FILES - 1] : "",
                   layout->folder, layout->archive, split == CO_SPLIT_TRAIN ? "train" : "test");
}

/* Every file of the split that is there. */
static co_status cifar_open_folder(cifar_format *self, const co_cifar_layout *layout,
                                   const char *folder, co_split split)
{
    const char *const below[] = {"", layout->folder};
    char path[CIFAR_PATH];

    for (size_t k = 0; k < 2 && self->n_file == 0; k++)
        for (size_t i = 0; i < CO_CIFAR_MAX_FILES && layout->files[split][i]; i++)
            if (cifar_find(path, folder, below[k], layout->files[split][i])) {
                CO_TRY(co_cifar_open(&self->file[self->n_file], path, layout));
                self->n_file++;
            }
    return self->n_file ? CO_OK : cifar_missing(layout, folder, split);
}

/* What a person calls the labels; a set without such a file is none the worse. */
static co_status cifar_read_names(cifar_format *self, const char *folder,
                                  const co_cifar_layout *layout, size_t classes)
{
    const char *file = layout->names[self->labels];
    char path[CIFAR_PATH], *line, *rest = NULL;
    uint8_t *text = NULL;
    size_t size, n = 0;
    co_status st;

    if (!cifar_find(path, folder, "", file) && !cifar_find(path, folder, layout->folder, file))
        return CO_OK;
    st = co_fs_read(&text, &size, path, CIFAR_MAX_NAMES, CO_E_DATA);
    if (st != CO_OK)
        return st == CO_E_NOMEM ? st : CO_OK;
    self->text = (char *)text;
    self->class = co_calloc(classes, sizeof(*self->class));
    if (!self->class)
        return CO_E_NOMEM;
    for (line = strtok_r(self->text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
        if (n < classes)
            self->class[n] = line;
        n++;
    }
    if (n != classes) {
        co_free(self->class);
        self->class = NULL;
    }
    return CO_OK;
}

static void cifar_close(void *state)
{
    cifar_format *self = state;

    for (size_t i = 0; i < self->n_file; i++)
        co_cifar_close(&self->file[i]);
    co_free(self->class);
    co_free(self->text);
    self->n_file = 0;
    self->class = NULL;
    self->text = NULL;
}

static co_status cifar_open_files(cifar_format *self, const co_cifar_layout *layout,
                                  const char *folder, co_split split)
{
    const char *file = split == CO_SPLIT_TRAIN ? self->train : self->test;
    char path[CIFAR_PATH];

    if (!file)
        return cifar_open_folder(self, layout, folder, split);
    (void)cifar_find(path, folder, "", file); /* else opening it says that it is missing */
    CO_TRY(co_cifar_open(&self->file[0], path, layout));
    self->n_file = 1;
    return CO_OK;
}

static co_status cifar_open(cifar_format *self, co_dataset_info *info,
                            const co_cifar_layout *layout, const char *path, co_split split)
{
    co_status st;

    if (!path)
        return co_fail(CO_E_USAGE,
                       "data %s: the key 'path' is missing: the folder %s that %s unpacks to",
                       layout->owner, layout->folder, layout->archive);
    info->shape = (co_shape){3, {3, CO_CIFAR_SIDE, CO_CIFAR_SIDE}};
    info->classes = layout->classes[self->labels];
    st = cifar_open_files(self, layout, path, split);
    if (st == CO_OK)
        st = cifar_read_names(self, path, layout, (size_t)info->classes);
    for (size_t i = 0; i < self->n_file; i++)
        info->count += self->file[i].count;
    if (st != CO_OK)
        cifar_close(self);
    return st;
}

static co_status cifar10_open(void *self, co_dataset_info *info, const char *path, co_split split)
{
    return cifar_open(self, info, &co_cifar10_layout, path, split);
}

static co_status cifar100_open(void *self, co_dataset_info *info, const char *path, co_split split)
{
    return cifar_open(self, info, &co_cifar100_layout, path, split);
}

static const uint8_t *cifar_record(const co_cifar **file, const cifar_format *self, uint64_t i)
{
    const co_cifar *f = self->file;

    while (i >= f->count)
        i -= f++->count;
    *file = f;
    return f->file.data + i * f->record;
}

static co_status cifar_read(const void *state, co_bytes *out, co_buffer *buffer, uint64_t i)
{
    const co_cifar *file;
    const uint8_t *record = cifar_record(&file, state, i);

    (void)buffer;
    *out = (co_bytes){record + file->record - CO_CIFAR_IMAGE, CO_CIFAR_IMAGE};
    return CO_OK;
}

static int32_t cifar_label(const void *state, uint64_t i)
{
    const cifar_format *self = state;
    const co_cifar *file;

    return cifar_record(&file, self, i)[self->labels];
}

static const char *cifar_class_name(const void *state, int32_t label)
{
    const cifar_format *self = state;

    return self->class ? self->class[label] : NULL;
}

const co_dataset_ops co_dataset_cifar10 = {
    .name = "cifar10",
    .summary = "32x32 colour pictures of 10 classes; path: folder of the binary version",
    .keys = cifar10_keys,
    .self_size = sizeof(cifar_format),
    .open = cifar10_open,
    .read = cifar_read,
    .label = cifar_label,
    .class_name = cifar_class_name,
    .close = cifar_close,
};

const co_dataset_ops co_dataset_cifar100 = {
    .name = "cifar100",
    .summary = "32x32 colour pictures of 100 classes; path: folder of the binary version",
    .keys = cifar100_keys,
    .self_size = sizeof(cifar_format),
    .open = cifar100_open,
    .read = cifar_read,
    .label = cifar_label,
    .class_name = cifar_class_name,
    .close = cifar_close,
};
