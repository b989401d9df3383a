/*
 * rotary.c - rotates the queries and keys of each position by angles that grow with it, so that
 * their products depend on how far apart two positions are (Su et al., arXiv:2104.09864).
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "ops/rules.h"

static const co_key rotary_keys[] = {
    {.name = "heads",
     .type = CO_KEY_INT,
     .offset = offsetof(co_rotary_attr, heads),
     .min = 1,
     .max = RULES_MAX_EXTENT,
     .help = "heads of the attention after it"},
    {.name = "kv_heads",
     .type = CO_KEY_INT,
     .offset = offsetof(co_rotary_attr, kv_heads),
     .fallback = "0",
     .min = 0,
     .max = RULES_MAX_EXTENT,
     .help = "heads of keys and values; 0: one for each"},
    {.name = "theta",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_rotary_attr, theta),
     .fallback = "10000",
     .min = 1,
     .max = 1e12,
     .help = "base of the frequencies: pair i of D / 2 turns by theta^(-2 i / D) a position"},
    CO_KEYS_END,
};

static co_status rotary_check(void *attr)
{
    co_rotary_attr *a = attr;

    if (!a->kv_heads)
        a->kv_heads = a->heads;
    return CO_OK;
}

static co_status rotary_shape(co_shape *out, const co_shape *in, const void *attr)
{
    const co_rotary_attr *a = attr;
    const int64_t parts = a->heads + 2 * a->kv_heads;
    char text[RULES_SHAPE_TEXT];

    if (in->ndim != 3)
        return co_fail(CO_E_USAGE, "needs sequences of rows (N, T, F) but gets %s",
                       rules_format(text, in));
    if (in->dim[2] % (2 * parts))
        return co_fail(CO_E_USAGE,
                       "rows of %" PRId64 " do not divide into %" PRId64 " queries and %" PRId64
                       " keys and values of an even length; a linear layer in front gives a "
                       "multiple of %" PRId64,
                       in->dim[2], a->heads, a->kv_heads, 2 * parts);
    *out = *in;
    return CO_OK;
}

/* Two products and a sum for each element of queries and keys; back the same. */
static void rotary_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                        const void *attr)
{
    const co_rotary_attr *a = attr;
    const double share = (double)(a->heads + a->kv_heads) / (double)(a->heads + 2 * a->kv_heads);
    const double n = 3 * share * (double)co_shape_count(in);

    (void)out_shape;
    *out = (co_op_work){n, n, 0};
}

/* (1, T, 1, 2, D / 2): the cosines of a position twice, or its sines, the first half negative. */
static const char *rotary_onnx_angles(co_onnx *to, const char *part, const int64_t size[2],
                                      double theta, bool sines)
{
    const int64_t half = size[1];
    const co_shape shape = {5, {1, size[0], 1, 2, half}};
    float *values;
    const char *name = to->constant(to, part, &shape, &values);

    for (int64_t t = 0; values && t < size[0]; t++)
        for (int64_t i = 0; i < half; i++) {
            const double angle = (double)t * pow(theta, -(double)i / (double)half);
            float *at = values + 2 * half * t + i;

            at[0] = (float)(sines ? -sin(angle) : cos(angle));
            at[half] = (float)(sines ? sin(angle) : cos(angle));
        }
    return name;
}

/* Part `range` of the last dimension, or of the one before. */
static const char *rotary_onnx_slice(co_onnx *to, const char *part, const char *x,
                                     const int64_t range[2], int64_t axis)
{
    char begin[32], end[32], axes[32];

    snprintf(begin, sizeof(begin), "%s.begin", part);
    snprintf(end, sizeof(end), "%s.end", part);
    snprintf(axes, sizeof(axes), "%s.axes", part);
    return to->node(to, "Slice", part,
                    (const char *[]){x, to->constant_ints(to, begin, &range[0], 1),
                                     to->constant_ints(to, end, &range[1], 1),
                                     to->constant_ints(to, axes, &axis, 1), NULL});
}

/* Rows of queries and keys as (N, T, heads, 2, D / 2), whose halves are exchanged for the sines. */
static void rotary_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    const co_rotary_attr *a = attr;
    const int64_t size = in->dim[2] / (a->heads + 2 * a->kv_heads);
    const int64_t turned = (a->heads + a->kv_heads) * size, all[2] = {0, turned};
    const int64_t values[2] = {turned, in->dim[2]}, first[2] = {0, 1}, second[2] = {1, 2};
    const int64_t heads[5] = {0, 0, a->heads + a->kv_heads, 2, size / 2}, rows[3] = {0, 0, turned};
    const int64_t angles[2] = {in->dim[1], size / 2};
    const char *x, *y, *v;

    (void)out;
    x = rotary_onnx_slice(to, "/turned", to->in[0], all, 2);
    v = rotary_onnx_slice(to, "/values", to->in[0], values, 2);
    x = to->node(to, "Reshape", "/heads",
                 (const char *[]){x, to->constant_ints(to, ".heads", heads, 5), NULL});
    y = to->node(to, "Concat", "/exchanged",
                 (const char *[]){rotary_onnx_slice(to, "/second", x, second, 3),
                                  rotary_onnx_slice(to, "/first", x, first, 3), NULL});
    to->set_int(to, "axis", 3);
    x = to->node(
        to, "Mul", "/by_cosines",
        (const char *[]){x, rotary_onnx_angles(to, ".cosines", angles, a->theta, false), NULL});
    y = to->node(
        to, "Mul", "/by_sines",
        (const char *[]){y, rotary_onnx_angles(to, ".sines", angles, a->theta, true), NULL});
    x = to->node(to, "Add", "/sum", (const char *[]){x, y, NULL});
    x = to->node(to, "Reshape", "/rows",
                 (const char *[]){x, to->constant_ints(to, ".rows", rows, 3), NULL});
    to->node(to, "Concat", "", (const char *[]){x, v, NULL});
    to->set_int(to, "axis", 2);
}

const co_op co_op_rotary = {
    .name = "rotary",
    .summary = "rotate queries and keys by their positions",
    .keys = rotary_keys,
    .attr_size = sizeof(co_rotary_attr),
    .along = CO_ALONG_EARLIER,
    .n_in = 1,
    .n_out = 1,
    .grad_in = 1,
    .check = rotary_check,
    .shape = rotary_shape,
    .work = rotary_work,
    .write_onnx = rotary_onnx,
};
