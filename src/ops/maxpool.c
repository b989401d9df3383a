/*
 * maxpool.c - the largest value of each window.
 */
#include "ops/rules.h"

static const co_key maxpool_keys[] = {
    RULES_POOL_WINDOW_KEYS,
    {.name = "padding",
     .type = CO_KEY_INTS,
     .offset = offsetof(co_pool_attr, padding),
     .fallback = "0",
     .min = 0,
     .max = RULES_MAX_EXTENT,
     .help = "pixels around the image that no window picks"},
    CO_KEYS_END,
};

static void maxpool_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                         const void *attr)
{
    const co_pool_attr *a = attr;
    const double windows = (double)co_shape_count(out_shape);

    (void)in;
    *out = (co_op_work){windows * (double)(a->k[0] * a->k[1]), windows, 0};
}

static void maxpool_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    const co_pool_attr *a = attr;

    (void)in, (void)out;
    to->node(to, "MaxPool", "", to->in);
    rules_onnx_window(to, a->k, a->s, a->p);
}

const co_op co_op_maxpool = {
    .name = "maxpool",
    .summary = "largest value of each window",
    .keys = maxpool_keys,
    .bare = "kernel",
    .attr_size = sizeof(co_pool_attr),
    .n_in = 1,
    .n_out = 1,
    .grad_in = 1,
    .pools = true,
    .check = rules_check_pool,
    .shape = rules_shape_pool,
    .work = maxpool_work,
    .receptive = rules_pool_extent,
    .write_onnx = maxpool_onnx,
};
