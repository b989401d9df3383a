/*
 * pack_convert.c - what a packed file stores of a sample: the same bytes, a smaller JPEG, or
 * pixels.
 */
#include "data/pack_convert.h"

#include <string.h>

#include "image/encode.h"
#include "image/resize_crop.h"

#define CONVERT_NAME 4096

co_status co_pack_converter_open(co_pack_converter *out, co_pack_head *head, const co_dataset *data,
                                 const co_pack_options *options)
{
    const co_dataset_info *info = co_dataset_stored(data);

    out->data = data;
    out->options = *options;
    if (!co_dataset_has_images(data))
        return co_fail(CO_E_USAGE, "%s holds no images, which a pack is for",
                       co_dataset_name(data));
    if (!info->encoded && (options->resize || options->decode))
        return co_fail(CO_E_USAGE,
                       "%s holds pixels already; --resize and --decode are for images "
                       "that are files",
                       co_dataset_name(data));
    if (options->resize && options->decode)
        return co_fail(CO_E_USAGE, "--resize and --decode: choose one");
    *head = (co_pack_head){
        .encoded = info->encoded && !options->decode,
        .channels = (uint32_t)info->shape.dim[0],
        .height = (uint32_t)info->shape.dim[1],
        .width = (uint32_t)info->shape.dim[2],
        .classes = (uint32_t)info->classes,
    };
    if (options->decode)
        head->height = head->width = (uint32_t)options->decode;
    return co_image_scratch_create(&out->image);
}

/* Scale down to `longest` on the longest side, rounded; sides are at least 1. */
static void convert_shrink(co_shape *shape, int64_t longest)
{
    const int64_t height = shape->dim[1], width = shape->dim[2];
    const int64_t side = height > width ? height : width;

    shape->dim[1] = (height * longest + side / 2) / side;
    shape->dim[2] = (width * longest + side / 2) / side;
    if (shape->dim[1] < 1)
        shape->dim[1] = 1;
    if (shape->dim[2] < 1)
        shape->dim[2] = 1;
}

static co_status convert_decode(uint8_t **out, co_pack_converter *c, const co_bytes *in,
                                const co_image_box *box, const co_shape *shape, const char *name)
{
    const co_image_want want = {.box = *box,
                                .channels = shape->dim[0],
                                .height = shape->dim[1],
                                .width = shape->dim[2],
                                .scaled = co_dataset_scales(c->data)};

    CO_TRY(co_buffer_reserve(out, &c->pixels, (size_t)co_shape_count(shape)));
    return co_image_decode(*out, &want, c->image, in->at, in->n, name);
}

static co_status convert_to_pixels(co_bytes *out, co_pack_converter *c, const co_bytes *in,
                                   const co_image_info *image, const char *name)
{
    const int64_t side = c->options.decode;
    const co_shape shape = {3, {co_dataset_stored(c->data)->shape.dim[0], side, side}};
    co_frame frame = {.resize = {1, &side}};
    co_image_box box;
    uint8_t *pixels;

    CO_TRY(co_frame_setup(&frame, &shape));
    CO_TRY(co_frame_box(&box, &frame, image->height, image->width, name));
    CO_TRY(convert_decode(&pixels, c, in, &box, &shape, name));
    *out = (co_bytes){pixels, (size_t)co_shape_count(&shape)};
    return CO_OK;
}

/* Grey stays grey. A file that is small enough is stored unchanged, without loss. */
static co_status convert_to_smaller(co_bytes *out, co_pack_converter *c, const co_bytes *in,
                                    const co_image_info *image, const char *name)
{
    const co_image_box box = {0, 0, image->width, image->height};
    co_shape shape = {3, {image->channels < 3 ? 1 : 3, image->height, image->width}};
    uint8_t *pixels;

    *out = *in;
    if (image->width <= c->options.resize && image->height <= c->options.resize)
        return CO_OK;
    convert_shrink(&shape, c->options.resize);
    CO_TRY(convert_decode(&pixels, c, in, &box, &shape, name));
    return co_image_encode_jpeg(out, &c->file, pixels, &shape, (int)c->options.quality);
}

static co_status convert_sample(co_bytes *out, co_pack_converter *c, uint64_t i)
{
    char name[CONVERT_NAME];
    co_image_info image;
    co_bytes in;

    CO_TRY(co_dataset_stored_sample(&in, c->data, &c->stored, i));
    c->read = in.n;
    if (!co_dataset_stored(c->data)->encoded) {
        *out = in;
        return CO_OK;
    }
    co_dataset_sample_name(c->data, name, sizeof(name), i);
    CO_TRY(co_image_probe(&image, in.at, in.n, name));
    if (c->options.decode)
        return convert_to_pixels(out, c, &in, &image, name);
    if (c->options.resize)
        return convert_to_smaller(out, c, &in, &image, name);
    *out = in;
    return CO_OK;
}

co_status co_pack_convert(co_bytes *out, co_pack_converter *c, uint64_t i)
{
    const co_status st = convert_sample(out, c, i);

    if (st != CO_E_DATA)
        return st;
    return co_fail(st, "%s; repair it or leave it out: on_bad_sample is for reading",
                   co_error_message());
}

void co_pack_converter_close(co_pack_converter *c)
{
    co_image_scratch_destroy(c->image);
    co_buffer_free(&c->stored);
    co_buffer_free(&c->pixels);
    co_buffer_free(&c->file);
}
