/*
 * positions.c - adds a trained row for each position of a sequence.
 */
#include <inttypes.h>

#include "ops/rules.h"

static const co_key positions_keys[] = {
    {.name = "length",
     .type = CO_KEY_INT,
     .offset = offsetof(co_positions_attr, length),
     .fallback = "0",
     .min = 0,
     .max = RULES_MAX_CHANNELS,
     .help = "positions that there are rows for; 0: those of the data"},
    RULES_INIT_STD_KEY(co_positions_attr),
    CO_KEYS_END,
};

static co_status positions_shape(co_shape *out, const co_shape *in, const void *attr)
{
    const co_positions_attr *a = attr;
    char text[RULES_SHAPE_TEXT];

    if (in->ndim != 3)
        return co_fail(CO_E_USAGE, "needs sequences of rows (N, T, F) but gets %s",
                       rules_format(text, in));
    if (a->length && in->dim[1] > a->length)
        return co_fail(CO_E_USAGE,
                       "sequences of %" PRId64 " positions, and rows for %" PRId64
                       "; make `length` larger, or the data's `context` smaller",
                       in->dim[1], a->length);
    *out = *in;
    return CO_OK;
}

static int positions_params(co_param_spec *out, const co_shape *in, const void *attr)
{
    const co_positions_attr *a = attr;
    const int64_t length = a->length ? a->length : in->dim[1];

    out[0] =
        (co_param_spec){"weight", {2, {length, in->dim[2]}}, CO_INIT_NORMAL, a->init_std, false};
    return 1;
}

static void positions_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                           const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){n, 0, n};
}

static void positions_onnx(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr)
{
    static const int64_t first[1] = {0};
    const co_positions_attr *a = attr;
    const char *rows = to->in[1];

    (void)out;
    if (a->length > in->dim[1])
        rows = to->node(to, "Slice", "/rows",
                        (const char *[]){rows, to->constant_ints(to, ".begin", first, 1),
                                         to->constant_ints(to, ".end", &in->dim[1], 1), NULL});
    to->node(to, "Add", "", (const char *[]){to->in[0], rows, NULL});
}

const co_op co_op_positions = {
    .name = "positions",
    .summary = "add a trained row to each position of a sequence",
    .keys = positions_keys,
    .attr_size = sizeof(co_positions_attr),
    .along = CO_ALONG_EARLIER,
    .n_in = 1,
    .n_out = 1,
    .grad_in = 1,
    .shape = positions_shape,
    .params = positions_params,
    .work = positions_work,
    .write_onnx = positions_onnx,
};
