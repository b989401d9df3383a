/*
 * attention.c - each position of a sequence takes a weighted mean of the values of others (Vaswani
 * et al., arXiv:1706.03762), by several heads.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "ops/rules.h"

static const co_key attention_keys[] = {
    {.name = "heads",
     .type = CO_KEY_INT,
     .offset = offsetof(co_attention_attr, heads),
     .min = 1,
     .max = RULES_MAX_EXTENT,
     .help = "independent weightings, each of its own part of the queries"},
    {.name = "kv_heads",
     .type = CO_KEY_INT,
     .offset = offsetof(co_attention_attr, kv_heads),
     .fallback = "0",
     .min = 0,
     .max = RULES_MAX_EXTENT,
     .help = "heads of keys and values, each shared by as many heads of queries; 0: one for each"},
    {.name = "causal",
     .type = CO_KEY_BOOL,
     .offset = offsetof(co_attention_attr, causal),
     .fallback = "true",
     .help = "a position takes nothing from later ones"},
    {.name = "dropout",
     .type = CO_KEY_REAL,
     .offset = offsetof(co_attention_attr, dropout),
     .fallback = "0",
     .min = 0,
     .max = 1,
     .help = "probability of dropping a weight, the share that a position takes from another"},
    CO_KEYS_END,
};

static co_status attention_check(void *attr)
{
    co_attention_attr *a = attr;

    if (!a->kv_heads)
        a->kv_heads = a->heads;
    if (a->heads % a->kv_heads)
        return co_fail(CO_E_USAGE, "heads: %" PRId64 " is no multiple of kv_heads, %" PRId64,
                       a->heads, a->kv_heads);
    return CO_OK;
}

static co_status attention_shape(co_shape *out, const co_shape *in, const void *attr)
{
    const co_attention_attr *a = attr;
    const int64_t parts = a->heads + 2 * a->kv_heads;
    char text[RULES_SHAPE_TEXT];

    if (in->ndim != 3)
        return co_fail(CO_E_USAGE, "needs sequences of rows (N, T, F) but gets %s",
                       rules_format(text, in));
    if (in->dim[2] % parts)
        return co_fail(CO_E_USAGE,
                       "rows of %" PRId64 " do not divide into %" PRId64 " queries and %" PRId64
                       " keys and values; a linear layer in front gives "
                       "a multiple of %" PRId64,
                       in->dim[2], a->heads, a->kv_heads, parts);
    if (a->dropout > 0 && (double)a->heads * (double)in->dim[1] * (double)in->dim[1] > 0x1p34)
        return co_fail(CO_E_USAGE,
                       "dropout: %" PRId64 " heads over %" PRId64 " positions have more weights "
                       "than a sample has random numbers, 2^34; leave it at 0, or shorten the "
                       "sequences",
                       a->heads, in->dim[1]);
    *out = *in;
    out->dim[2] = in->dim[2] / parts * a->heads;
    return CO_OK;
}

/* A key and a value of each head of them. */
static int64_t attention_keeps(const co_shape *in, const void *attr)
{
    const co_attention_attr *a = attr;

    return in->dim[2] / (a->heads + 2 * a->kv_heads) * 2 * a->kv_heads;
}

/* Two products forward and five backward, of each position with each that it may look at. */
static void attention_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                           const void *attr)
{
    const co_attention_attr *a = attr;
    const double pairs =
        (double)in->dim[1] * (a->causal ? 0.5 * (double)(in->dim[1] + 1) : (double)in->dim[1]);
    const double product = 2.0 * (double)(in->dim[0] * out_shape->dim[2]) * pairs;

    *out = (co_op_work){2 * product, 5 * product, 0};
}

/* Rows `begin` to `end` of (N, T, F) as heads: (N, kv_heads, r, T, D), or with the last two
 * swapped.
 */
static const char *attention_onnx_part(co_onnx *to, const char *part, const int64_t range[2],
                                       const int64_t shape[5], bool swapped)
{
    static const int64_t rows[5] = {0, 2, 3, 1, 4}, columns[5] = {0, 2, 3, 4, 1}, last[1] = {2};
    char begin[32], end[32], axes[32], dims[32], heads[32];
    const char *x;

    snprintf(begin, sizeof(begin), "%s.begin", part);
    snprintf(end, sizeof(end), "%s.end", part);
    snprintf(axes, sizeof(axes), "%s.axes", part);
    snprintf(dims, sizeof(dims), "%s.shape", part);
    snprintf(heads, sizeof(heads), "%s/heads", part);
    x = to->node(to, "Slice", part,
                 (const char *[]){to->in[0], to->constant_ints(to, begin, &range[0], 1),
                                  to->constant_ints(to, end, &range[1], 1),
                                  to->constant_ints(to, axes, last, 1), NULL});
    x = to->node(to, "Reshape", heads,
                 (const char *[]){x, to->constant_ints(to, dims, shape, 5), NULL});
    snprintf(heads, sizeof(heads), "%s/rows", part);
    x = to->node(to, "Transpose", heads, (const char *[]){x, NULL});
    to->set_ints(to, "perm", swapped ? columns : rows, 5);
    return x;
}

/* What is added to the scores of (T, T) pairs: next to minus infinity for later positions. */
static const char *attention_onnx_mask(co_onnx *to, int64_t length)
{
    const co_shape shape = {2, {length, length}};
    float *values;
    const char *name = to->constant(to, ".mask", &shape, &values);

    for (int64_t t = 0; values && t < length; t++)
        for (int64_t s = t + 1; s < length; s++)
            values[t * length + s] = -1e30f;
    return name;
}

/* Heads that share keys and values are the dimension r of the queries, over which these are
   broadcast. */
static void attention_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    static const int64_t back[5] = {0, 3, 1, 2, 4};
    const co_attention_attr *a = attr;
    const int64_t width = out->dim[2], size = width / a->heads, shared = a->kv_heads * size;
    const int64_t queries[5] = {0, 0, a->kv_heads, a->heads / a->kv_heads, size};
    const int64_t keys[5] = {0, 0, a->kv_heads, 1, size}, rows[3] = {0, 0, width};
    const char *q, *k, *v, *x;

    q = attention_onnx_part(to, "/q", (const int64_t[2]){0, width}, queries, false);
    k = attention_onnx_part(to, "/k", (const int64_t[2]){width, width + shared}, keys, true);
    v = attention_onnx_part(to, "/v", (const int64_t[2]){width + shared, width + 2 * shared}, keys,
                            false);
    x = to->node(to, "MatMul", "/products", (const char *[]){q, k, NULL});
    x = to->node(
        to, "Mul", "/scaled",
        (const char *[]){x, rules_onnx_number(to, ".scale", 1 / sqrt((double)size)), NULL});
    if (a->causal)
        x = to->node(to, "Add", "/masked",
                     (const char *[]){x, attention_onnx_mask(to, in->dim[1]), NULL});
    x = to->node(to, "Softmax", "/weights", (const char *[]){x, NULL});
    to->set_int(to, "axis", -1);
    x = to->node(to, "MatMul", "/means", (const char *[]){x, v, NULL});
    x = to->node(to, "Transpose", "/positions", (const char *[]){x, NULL});
    to->set_ints(to, "perm", back, 5);
    to->node(to, "Reshape", "",
             (const char *[]){x, to->constant_ints(to, ".shape", rows, 3), NULL});
}

const co_op co_op_attention = {
    .name = "attention",
    .summary = "weighted means over the positions of a sequence, by heads",
    .keys = attention_keys,
    .attr_size = sizeof(co_attention_attr),
    .precision = CO_PRECISION_LOW,
    .along = CO_ALONG_EARLIER,
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_IN | CO_SAVES_OUT,
    .grad_in = 1,
    .check = attention_check,
    .shape = attention_shape,
    .keeps = attention_keeps,
    .work = attention_work,
    .write_onnx = attention_onnx,
};
