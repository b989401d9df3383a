/*
 * images.c - files of images from anywhere, read as the samples of a data set are. Untrusted input.
 *
 * Not in the list of formats: `cohort predict` opens it with the keys of a run's data set.
 */
#include "data/images.h"

#include <stdio.h>

#include "core/fs.h"
#include "core/mem.h"
#include "data/dataset_internal.h"

#define IMAGES_MAX_FILE ((uint64_t)256 << 20)

typedef struct images {
    const co_image_files *files;
} images;

static co_status images_open(void *self, co_dataset_info *info, const char *path, co_split split)
{
    const co_image_files *files = ((images *)self)->files;

    (void)path;
    (void)split;
    *info = (co_dataset_info){.count = files->n,
                              .encoded = files->encoded,
                              .shape = files->stored,
                              .classes = files->classes};
    return CO_OK;
}

static co_status images_load(co_bytes *out, co_buffer *buffer, const char *path)
{
    static const co_open_rule rule = {
        .status = CO_E_DATA, .max = IMAGES_MAX_FILE, .expected = "an image"};
    uint8_t *bytes;
    uint64_t size;
    FILE *file;
    co_status st;

    CO_TRY(co_open_stream(&file, &size, path, &rule));
    st = co_buffer_reserve(&bytes, buffer, size ? size : 1);
    if (st == CO_OK)
        *out = (co_bytes){bytes, fread(bytes, 1, size, file)}; /* cut short: decoding fails */
    fclose(file);
    return st;
}

/* The largest box of this shape in the middle of an image. */
static co_image_box images_middle(const co_image_info *image, const co_shape *shape)
{
    const double width = image->width, height = image->height;
    co_image_box box = {0, 0, width, height};

    if (width * (double)shape->dim[1] > height * (double)shape->dim[2])
        box.width = height * (double)shape->dim[2] / (double)shape->dim[1];
    else
        box.height = width * (double)shape->dim[1] / (double)shape->dim[2];
    box.x = (width - box.width) / 2;
    box.y = (height - box.height) / 2;
    return box;
}

/* As pixels (C, H, W), in front of which the buffer has the file. */
static co_status images_decode(co_bytes *out, co_buffer *buffer, const co_shape *shape,
                               const char *path)
{
    const size_t size = (size_t)co_shape_count(shape);
    co_image_want want = {
        .channels = shape->dim[0], .height = shape->dim[1], .width = shape->dim[2]};
    co_image_scratch *scratch = NULL;
    co_buffer pixels = {0};
    co_image_info image;
    uint8_t *at;
    co_status st;

    CO_TRY(co_image_probe(&image, out->at, out->n, path));
    want.box = images_middle(&image, shape);
    st = co_image_scratch_create(&scratch);
    if (st == CO_OK)
        st = co_buffer_reserve(&at, &pixels, size);
    if (st == CO_OK)
        st = co_image_decode(at, &want, scratch, out->at, out->n, path);
    co_image_scratch_destroy(scratch);
    if (st != CO_OK) {
        co_buffer_free(&pixels);
        return st;
    }
    co_buffer_free(buffer);
    *buffer = pixels;
    *out = (co_bytes){at, size};
    return CO_OK;
}

static co_status images_read(const void *self, co_bytes *out, co_buffer *buffer, uint64_t i)
{
    const co_image_files *files = ((const images *)self)->files;

    CO_TRY(images_load(out, buffer, files->path[i]));
    return files->encoded ? CO_OK : images_decode(out, buffer, &files->stored, files->path[i]);
}

static int32_t images_label(const void *self, uint64_t i)
{
    (void)self;
    (void)i;
    return 0;
}

static void images_sample_name(const void *self, char *out, size_t size, uint64_t i)
{
    snprintf(out, size, "%s", ((const images *)self)->files->path[i]);
}

static const co_dataset_ops images_ops = {
    .name = "images",
    .summary = "files of images",
    .self_size = sizeof(images),
    .open = images_open,
    .read = images_read,
    .label = images_label,
    .sample_name = images_sample_name,
};

co_status co_dataset_open_images(co_dataset **out, const co_value *value, co_config *config,
                                 const co_image_files *files)
{
    const images self = {files};
    char want[64], got[64];
    const co_shape *shape;

    CO_TRY(co_dataset_open_as(out, &images_ops, &self, value, config));
    shape = co_dataset_shape(*out);
    if (co_shape_equal(shape, &files->sample))
        return CO_OK;
    co_shape_format(want, sizeof(want), &files->sample);
    co_shape_format(got, sizeof(got), shape);
    co_dataset_destroy(*out);
    *out = NULL;
    return co_fail(CO_E_DATA,
                   "%s: becomes a sample of %s, and the network takes %s; the run's config has no "
                   "data.resize, so images must have the size of those it was trained on",
                   files->path[0], got, want);
}
