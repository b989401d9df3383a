/*
 * patches.c - the pixels of an image as a sequence: what a convolution has made of its patches.
 */
#include "ops/rules.h"

static co_status patches_shape(co_shape *out, const co_shape *in, const void *attr)
{
    (void)attr;
    CO_TRY(rules_need_image(in));
    *out = (co_shape){3, {in->dim[0], in->dim[2] * in->dim[3], in->dim[1]}};
    return CO_OK;
}

static void patches_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                         const void *attr)
{
    (void)in, (void)out_shape, (void)attr;
    *out = (co_op_work){0, 0, 0};
}

static void patches_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    static const int64_t swapped[3] = {0, 2, 1};
    const int64_t lines[3] = {0, in->dim[1], -1};
    const char *x =
        to->node(to, "Reshape", "/lines",
                 (const char *[]){to->in[0], to->constant_ints(to, ".lines", lines, 3), NULL});

    (void)out, (void)attr;
    to->node(to, "Transpose", "", (const char *[]){x, NULL});
    to->set_ints(to, "perm", swapped, 3);
}

const co_op co_op_patches = {
    .name = "patches",
    .summary = "the pixels of an image as a sequence",
    .n_in = 1,
    .n_out = 1,
    .grad_in = 1,
    .shape = patches_shape,
    .work = patches_work,
    .write_onnx = patches_onnx,
};
