/*
 * resize_crop.c - the box of an image that `resize` and `center_crop` take.
 *
 * Resizing an image and then cropping its centre equals resizing the box that becomes this centre,
 * without decoding or resizing the rest.
 */
#include "image/resize_crop.h"

#include <math.h>

co_status co_frame_setup(co_frame *frame, const co_shape *first)
{
    const co_ints *resize = &frame->resize, *crop = &frame->crop;
    const co_ints *size = crop->n ? crop : resize;

    frame->height = size->n ? size->v[0] : first->dim[1];
    frame->width = size->n ? size->v[size->n - 1] : first->dim[2];
    if (resize->n && (frame->height > resize->v[0] || frame->width > resize->v[resize->n - 1]))
        return co_fail(CO_E_USAGE,
                       "center_crop: %lldx%lld does not fit into images resized to %lld",
                       (long long)frame->height, (long long)frame->width, (long long)resize->v[0]);
    return CO_OK;
}

/* The size that the whole image would be resized to. */
static void resize_resized(int64_t out[2], const co_frame *frame, int64_t height, int64_t width)
{
    const co_ints *resize = &frame->resize;

    out[0] = height;
    out[1] = width;
    if (resize->n == 2) {
        out[0] = resize->v[0];
        out[1] = resize->v[1];
    } else if (resize->n == 1) {
        const int64_t side = resize->v[0];

        out[0] = height <= width ? side : side * height / width;
        out[1] = height <= width ? side * width / height : side;
    }
}

co_status co_frame_box(co_image_box *out, const co_frame *frame, int64_t height, int64_t width,
                       const char *name)
{
    int64_t resized[2];
    double down, right;

    if (!frame->resize.n && !frame->crop.n && (height != frame->height || width != frame->width))
        return co_fail(CO_E_DATA,
                       "%s: is %lldx%lld, other images are %lldx%lld (height x width); bring them "
                       "to one size with data.resize",
                       name, (long long)height, (long long)width, (long long)frame->height,
                       (long long)frame->width);
    if (!frame->resize.n && (height < frame->height || width < frame->width))
        return co_fail(CO_E_DATA,
                       "%s: is %lldx%lld, smaller than center_crop, %lldx%lld (height x width); "
                       "set data.resize too",
                       name, (long long)height, (long long)width, (long long)frame->height,
                       (long long)frame->width);
    resize_resized(resized, frame, height, width);
    down = (double)height / (double)resized[0];
    right = (double)width / (double)resized[1];
    out->x = nearbyint((double)(resized[1] - frame->width) / 2) * right;
    out->y = nearbyint((double)(resized[0] - frame->height) / 2) * down;
    /* Rounding must not exceed the image. */
    out->width = fmin((double)frame->width * right, (double)width - out->x);
    out->height = fmin((double)frame->height * down, (double)height - out->y);
    return CO_OK;
}
