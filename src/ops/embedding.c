/*
 * embedding.c - a trained row for each token of a vocabulary.
 */
#include "ops/rules.h"

static const co_key embedding_keys[] = {
    {.name = "vocab",
     .type = CO_KEY_INT,
     .offset = offsetof(co_embedding_attr, vocab),
     .min = 1,
     .max = RULES_MAX_CHANNELS,
     .help = "tokens that there are, from 0 to vocab - 1"},
    {.name = "out",
     .type = CO_KEY_INT,
     .offset = offsetof(co_embedding_attr, out),
     .min = 1,
     .max = RULES_MAX_CHANNELS,
     .help = "features of the row of a token"},
    RULES_INIT_STD_KEY(co_embedding_attr),
    CO_KEYS_END,
};

static co_status embedding_shape(co_shape *out, const co_shape *in, const void *attr)
{
    const co_embedding_attr *a = attr;
    const co_shape weight = {2, {a->vocab, a->out}};
    char text[RULES_SHAPE_TEXT];

    if (in->ndim != 2)
        return co_fail(CO_E_USAGE, "needs sequences of tokens (N, T) but gets %s",
                       rules_format(text, in));
    CO_TRY(rules_need_size(&weight, "weight"));
    *out = (co_shape){3, {in->dim[0], in->dim[1], a->out}};
    return rules_need_size(out, "output");
}

static int embedding_params(co_param_spec *out, const co_shape *in, const void *attr)
{
    const co_embedding_attr *a = attr;

    (void)in;
    out[0] = (co_param_spec){"weight", {2, {a->vocab, a->out}}, CO_INIT_NORMAL, a->init_std, false};
    return 1;
}

static int64_t embedding_limit(const void *attr)
{
    return ((const co_embedding_attr *)attr)->vocab;
}

/* Forward copies; back, one sum for each element. */
static void embedding_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                           const void *attr)
{
    (void)in, (void)attr;
    *out = (co_op_work){0, 0, (double)co_shape_count(out_shape)};
}

static void embedding_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    (void)in, (void)out, (void)attr;
    to->node(to, "Gather", "", (const char *[]){to->in[1], to->in[0], NULL});
    to->set_int(to, "axis", 0);
}

/* In fp32 under mixed precision: what follows adds up to sums that keep their digits. */
const co_op co_op_embedding = {
    .name = "embedding",
    .summary = "a trained row for each token",
    .keys = embedding_keys,
    .attr_size = sizeof(co_embedding_attr),
    .precision = CO_PRECISION_WIDE,
    .along = CO_ALONG_NONE,
    .n_in = 1,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .indices = 1,
    .shape = embedding_shape,
    .params = embedding_params,
    .limit = embedding_limit,
    .work = embedding_work,
    .write_onnx = embedding_onnx,
};
