/*
 * idx_images.c - find the two IDX files of a split, and check that they match.
 */
#include "data/idx_images.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/fs.h"

#define IDX_IMAGES_PATH 4096

typedef struct idx_images_place {
    const char *folder, *package, *dataset; /* as in co_idx_images_open */
    const char *split;                      /* "train", "t10k" */
} idx_images_place;

static co_status idx_images_check_folder(const idx_images_place *place)
{
    struct stat info;

    if (stat(place->folder, &info) != 0)
        return co_fail(CO_E_DATA, "%s: %s; data.path is the folder of %s's four IDX files",
                       place->folder, strerror(errno), place->dataset);
    if (!S_ISDIR(info.st_mode))
        return co_fail(CO_E_DATA, "%s: is a file; data.path is the folder of %s's four IDX files",
                       place->folder, place->dataset);
    return CO_OK;
}

/* `kind` is "images-idx3" or "labels-idx1"; some copies have a dot instead of the last dash. */
static co_status idx_images_find(char path[IDX_IMAGES_PATH], const idx_images_place *place,
                                 const char *kind)
{
    static const char *const suffixes[] = {"", ".gz"};
    const char *packages[] = {"", "", place->package};
    const char *below[] = {"", "/raw", "/raw"};

    for (size_t i = 0; i < 3; i++)
        for (size_t dot = 0; dot < 2; dot++)
            for (size_t s = 0; s < 2; s++) {
                int n = snprintf(path, IDX_IMAGES_PATH, "%s%s%s%s/%s-%s-ubyte%s", place->folder,
                                 packages[i][0] ? "/" : "", packages[i], below[i], place->split,
                                 kind, suffixes[s]);

                if (n < 0 || n >= IDX_IMAGES_PATH)
                    return co_fail(CO_E_USAGE, "data.path is too long");
                if (dot) /* images-idx3 -> images.idx3 */
                    path[(size_t)n - strlen(suffixes[s]) - strlen("-idx3-ubyte")] = '.';
                if (co_fs_exists(path))
                    return CO_OK;
            }
    return co_fail(CO_E_DATA, "%s: holds no %s-%s-ubyte or %s-%s-ubyte.gz of %s; set data.path",
                   place->folder, place->split, kind, place->split, kind, place->dataset);
}

static co_status idx_images_check(const co_idx_images *set, int64_t classes, const char *image,
                                  const char *label, const char *dataset)
{
    const size_t count = set->image.dim[0];

    if (set->label.dim[0] != count)
        return co_fail(CO_E_DATA, "%s: %zu labels for the %zu images of %s; fetch both again",
                       label, set->label.dim[0], count, image);
    for (size_t i = 0; i < count; i++)
        if (set->label.data[i] >= classes)
            return co_fail(CO_E_DATA, "%s: sample %zu has label %u, %s has labels 0 to %lld", label,
                           i, set->label.data[i], dataset, (long long)classes - 1);
    return CO_OK;
}

int64_t co_idx_images_count_classes(const co_idx *label)
{
    int64_t classes = 0;

    for (size_t i = 0; i < label->dim[0]; i++)
        if (label->data[i] >= classes)
            classes = label->data[i] + 1;
    return classes;
}

co_status co_idx_images_open_files(co_idx_images *out, co_dataset_info *info, const char *image,
                                   const char *label, int64_t classes, const char *dataset)
{
    co_status st;

    memset(out, 0, sizeof(*out));
    st = co_idx_open(&out->label, label, 1);
    if (st == CO_OK && classes == 0)
        classes = co_idx_images_count_classes(&out->label);
    if (st == CO_OK)
        st = co_idx_open(&out->image, image, 3);
    if (st == CO_OK)
        st = idx_images_check(out, classes, image, label, dataset);
    if (st != CO_OK) {
        co_idx_images_close(out);
        return st;
    }
    *info = (co_dataset_info){
        .count = out->image.dim[0],
        .in_memory = true,
        .shape = {3, {1, (int64_t)out->image.dim[1], (int64_t)out->image.dim[2]}},
        .classes = classes,
    };
    return CO_OK;
}

co_status co_idx_images_open(co_idx_images *out, co_dataset_info *info, const char *folder,
                             co_split split, int64_t classes, const char *dataset,
                             const char *package)
{
    const idx_images_place place = {folder, package, dataset,
                                    split == CO_SPLIT_TRAIN ? "train" : "t10k"};
    char image[IDX_IMAGES_PATH], label[IDX_IMAGES_PATH];

    CO_TRY(idx_images_check_folder(&place));
    CO_TRY(idx_images_find(image, &place, "images-idx3"));
    CO_TRY(idx_images_find(label, &place, "labels-idx1"));
    return co_idx_images_open_files(out, info, image, label, classes, dataset);
}

co_status co_idx_images_read(const void *self, co_bytes *out, co_buffer *buffer, uint64_t i)
{
    const co_idx *image = &((const co_idx_images *)self)->image;
    const size_t size = image->dim[1] * image->dim[2];

    (void)buffer;
    *out = (co_bytes){image->data + i * size, size};
    return CO_OK;
}

int32_t co_idx_images_label(const void *self, uint64_t i)
{
    return ((const co_idx_images *)self)->label.data[i];
}

void co_idx_images_close(void *self)
{
    co_idx_images *set = self;

    co_idx_close(&set->image);
    co_idx_close(&set->label);
}
