/*
 * avgpool.c - the mean of each window.
 */
#include "ops/rules.h"

static const co_key avgpool_keys[] = {
    RULES_POOL_WINDOW_KEYS,
    {.name = "padding",
     .type = CO_KEY_INTS,
     .offset = offsetof(co_pool_attr, padding),
     .fallback = "0",
     .min = 0,
     .max = RULES_MAX_EXTENT,
     .help = "pixels around the image that count as zeros"},
    {.name = "count_include_pad",
     .type = CO_KEY_BOOL,
     .offset = offsetof(co_pool_attr, count_include_pad),
     .fallback = "true",
     .help = "divide by the whole window, not by its part inside the image"},
    CO_KEYS_END,
};

static void avgpool_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                         const void *attr)
{
    const co_pool_attr *a = attr;
    const double all = (double)co_shape_count(out_shape) * (double)(a->k[0] * a->k[1]);

    (void)in;
    *out = (co_op_work){all, all, 0};
}

static void avgpool_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    const co_pool_attr *a = attr;

    (void)in, (void)out;
    to->node(to, "AveragePool", "", to->in);
    rules_onnx_window(to, a->k, a->s, a->p);
    to->set_int(to, "count_include_pad", a->count_include_pad);
}

const co_op co_op_avgpool = {
    .name = "avgpool",
    .summary = "mean of each window",
    .keys = avgpool_keys,
    .bare = "kernel",
    .attr_size = sizeof(co_pool_attr),
    .n_in = 1,
    .n_out = 1,
    .grad_in = 1,
    .check = rules_check_pool,
    .shape = rules_shape_pool,
    .work = avgpool_work,
    .receptive = rules_pool_extent,
    .write_onnx = avgpool_onnx,
};
