/*
 * scale.c - every value times a constant, for instance to soften the logits that a loss sees.
 */
#include "ops/rules.h"

static const co_key scale_keys[] = {
    {.name = "factor",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_scale_attr, factor),
     .min = -1e6,
     .max = 1e6,
     .help = "what every value is multiplied by"},
    CO_KEYS_END,
};

static void scale_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    const co_scale_attr *a = attr;

    (void)in, (void)out;
    to->node(to, "Mul", "",
             (const char *[]){to->in[0], rules_onnx_number(to, ".factor", a->factor), NULL});
}

const co_op co_op_scale = {
    .name = "scale",
    .summary = "every value times a constant",
    .keys = scale_keys,
    .bare = "factor",
    .attr_size = sizeof(co_scale_attr),
    .along = CO_ALONG_NONE,
    .n_in = 1,
    .n_out = 1,
    .grad_in = 1,
    .shape = rules_shape_same,
    .receptive = rules_same_extent,
    .write_onnx = scale_onnx,
};
