/*
 * cifar_format.c - data sets cifar10 and cifar100 (Krizhevsky, "Learning multiple layers of
 * features from tiny images", 2009): the files of a split and the names of its classes.
 */
#include <stdio.h>
#include <string.h>

#include "core/config.h"
#include "core/fs.h"
#include "core/mem.h"
#include "data/cifar.h"
#include "data/formats.h"
#include "data/home.h"

#define CIFAR_PATH      4096
#define CIFAR_MAX_NAMES ((size_t)1 << 14) /* bytes of a file with class names */

typedef struct cifar_format {
    const char *train, *test; /* a single file each, instead of the archive's */
    int labels;               /* cifar100: index of the label that is used */
    /* set by open */
    size_t n_file;
    co_cifar file[CO_CIFAR_MAX_FILES];
    char *text;         /* owned: class names, one per line; NULL if there are none */
    const char **class; /* owned: (classes) lines of `text` */
} cifar_format;

#define CIFAR(field) offsetof(cifar_format, field)

static const char *const cifar_labels[] = {"coarse", "fine", NULL};

static const co_key cifar10_keys[] = {
    {"train", CO_KEY_STRING, CIFAR(train), "~", 0, 0, NULL,
     "one file of training samples instead of data_batch_*; .gz may be left out"},
    {"test", CO_KEY_STRING, CIFAR(test), "~", 0, 0, NULL,
     "one file of test samples instead of test_batch"},
    CO_KEYS_END,
};

static const co_key cifar100_keys[] = {
    {"train", CO_KEY_STRING, CIFAR(train), "~", 0, 0, NULL,
     "one file of training samples instead of train.bin; .gz may be left out"},
    {"test", CO_KEY_STRING, CIFAR(test), "~", 0, 0, NULL,
     "one file of test samples instead of test.bin"},
    {"labels", CO_KEY_CHOICE, CIFAR(labels), "fine", 0, 0, cifar_labels,
     "fine: 100 classes; coarse: 20"},
    CO_KEYS_END,
};

/* The path "FOLDER/below/file.gz" if it exists, else without .gz; false if neither does. */
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

    if (!co_fs_exists(folder))
        return co_fail(CO_E_DATA,
                       "%s: No such file or directory; data.path is the folder %s of %s, or %s of "
                       "%s",
                       folder, layout->folder, layout->archive, layout->python.folder,
                       layout->python.archive);
    return co_fail(CO_E_DATA,
                   "%s: holds no %s%s%s, plain or .gz; data.path is the folder %s of %s, or %s of "
                   "%s, or name the file with data.%s",
                   folder, file[0], many ? " to " : "", many ? file[CO_CIFAR_MAX_FILES - 1] : "",
                   layout->folder, layout->archive, layout->python.folder, layout->python.archive,
                   split == CO_SPLIT_TRAIN ? "train" : "test");
}

/* Open the files of the split that exist: those of the binary version or, if there are none, those
   of the Python version. */
static co_status cifar_open_folder(cifar_format *self, const co_cifar_layout *layout,
                                   const char *folder, co_split split)
{
    const struct {
        const char *below, *const *file;
    } places[] = {{"", layout->files[split]},
                  {layout->folder, layout->files[split]},
                  {"", layout->python.files[split]},
                  {layout->python.folder, layout->python.files[split]}};
    char path[CIFAR_PATH];

    for (size_t k = 0; k < 4 && self->n_file == 0; k++)
        for (size_t i = 0; i < CO_CIFAR_MAX_FILES && places[k].file[i]; i++)
            if (cifar_find(path, folder, places[k].below, places[k].file[i])) {
                CO_TRY(co_cifar_open(&self->file[self->n_file], path, layout));
                self->n_file++;
            }
    return self->n_file ? CO_OK : cifar_missing(layout, folder, split);
}

/* Class names, one per line, of the version whose file exists; NULL if there is none. Fails with
   CO_E_NOMEM only. */
static co_status cifar_find_names(char **out, const char *folder, const co_cifar_layout *layout,
                                  int labels, size_t classes)
{
    char path[CIFAR_PATH];
    uint8_t *bytes = NULL;
    size_t size;
    bool python = false;
    co_status st;

    *out = NULL;
    if (!cifar_find(path, folder, "", layout->names[labels]) &&
        !cifar_find(path, folder, layout->folder, layout->names[labels])) {
        python = cifar_find(path, folder, "", layout->python.meta) ||
                 cifar_find(path, folder, layout->python.folder, layout->python.meta);
        if (!python)
            return CO_OK;
    }
    st = co_fs_read(&bytes, &size, path, CIFAR_MAX_NAMES, CO_E_DATA);
    if (st == CO_OK && python) {
        st = co_cifar_python_names(out, bytes, size, layout->python.names[labels], classes, path);
        co_free(bytes);
    } else {
        *out = (char *)bytes;
    }
    return st == CO_E_NOMEM ? st : CO_OK;
}

/* Class names are optional: a missing or unusable file is no error. */
static co_status cifar_read_names(cifar_format *self, const char *folder,
                                  const co_cifar_layout *layout, size_t classes)
{
    char *line, *rest = NULL;
    size_t n = 0;

    CO_TRY(cifar_find_names(&self->text, folder, layout, self->labels, classes));
    if (!self->text)
        return CO_OK;
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
    (void)cifar_find(path, folder, "", file); /* if neither exists, opening it reports that */
    CO_TRY(co_cifar_open(&self->file[0], path, layout));
    self->n_file = 1;
    return CO_OK;
}

static co_status cifar_open(cifar_format *self, co_dataset_info *info,
                            const co_cifar_layout *layout, const char *path, co_split split)
{
    char home[CO_DATA_HOME_PATH];
    co_status st;

    CO_TRY(co_data_home_find(&path, home, layout->dataset));
    info->shape = (co_shape){3, {3, CO_CIFAR_SIDE, CO_CIFAR_SIDE}};
    info->in_memory = true;
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

/* The file with sample *i; *i becomes the index of the record in it. */
static const co_cifar *cifar_file_of(uint64_t *i, const cifar_format *self)
{
    const co_cifar *file = self->file;

    while (*i >= file->count)
        *i -= file++->count;
    return file;
}

static co_status cifar_read(const void *state, co_bytes *out, co_buffer *buffer, uint64_t i)
{
    const co_cifar *file = cifar_file_of(&i, state);

    (void)buffer;
    *out = (co_bytes){file->image + i * file->image_step, CO_CIFAR_IMAGE};
    return CO_OK;
}

static int32_t cifar_label(const void *state, uint64_t i)
{
    const cifar_format *self = state;
    const co_cifar *file = cifar_file_of(&i, self);

    return file->label[i * file->label_step + (size_t)self->labels];
}

static const char *cifar_class_name(const void *state, int32_t label)
{
    const cifar_format *self = state;

    return self->class ? self->class[label] : NULL;
}

const co_dataset_ops co_dataset_cifar10 = {
    .name = "cifar10",
    .summary = "32x32 colour pictures of 10 classes; path: folder of the binary version or of that "
               "for Python",
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
    .summary = "32x32 colour pictures of 100 classes; path: folder of the binary version or of "
               "that for Python",
    .keys = cifar100_keys,
    .self_size = sizeof(cifar_format),
    .open = cifar100_open,
    .read = cifar_read,
    .label = cifar_label,
    .class_name = cifar_class_name,
    .close = cifar_close,
};
