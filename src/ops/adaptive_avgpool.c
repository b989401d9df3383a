/*
 * adaptive_avgpool.c - means over windows that are chosen so that the output has a given size.
 */
#include "ops/rules.h"

static const co_key adaptive_avgpool_keys[] = {
    {.name = "size",
     .type = CO_KEY_INTS,
     .offset = offsetof(co_adaptive_pool_attr, size),
     .min = 1,
     .max = RULES_MAX_EXTENT,
     .help = "size of the output in pixels: one number or [height, width]"},
    CO_KEYS_END,
};

static co_status adaptive_avgpool_check(void *attr)
{
    co_adaptive_pool_attr *a = attr;

    return rules_pair(a->o, &a->size, "size", NULL);
}

static co_status adaptive_avgpool_shape(co_shape *out, const co_shape *in, const void *attr)
{
    const co_adaptive_pool_attr *a = attr;

    CO_TRY(rules_need_image(in));
    *out = (co_shape){4, {in->dim[0], in->dim[1], a->o[0], a->o[1]}};
    return rules_need_size(out, "output");
}

static void adaptive_avgpool_work(co_op_work *out, const co_shape *in, const co_shape *out_shape,
                                  const void *attr)
{
    const double n = (double)co_shape_count(in);

    (void)out_shape, (void)attr;
    *out = (co_op_work){n, n, 0};
}

/* A matrix (out, in) whose row i has the weights of window i, or its transpose. */
static const char *adaptive_avgpool_onnx_means(co_onnx *to, const char *part, int64_t out,
                                               int64_t in, bool transposed)
{
    const co_shape shape = {2, {transposed ? in : out, transposed ? out : in}};
    float *m;
    const char *name = to->constant(to, part, &shape, &m);

    for (int64_t i = 0; m && i < out; i++) {
        const int64_t begin = i * in / out, end = ((i + 1) * in + out - 1) / out;

        for (int64_t j = begin; j < end; j++)
            m[transposed ? j * out + i : i * in + j] = 1.0f / (float)(end - begin);
    }
    return name;
}

static void adaptive_avgpool_onnx(co_onnx *to, const co_shape *in, const co_shape *out,
                                  const void *attr)
{
    const co_adaptive_pool_attr *a = attr;
    const int64_t size[2] = {in->dim[2], in->dim[3]}, none[2] = {0, 0};
    const int64_t window[2] = {size[0] / a->o[0], size[1] / a->o[1]};

    (void)out;
    if (a->o[0] == 1 && a->o[1] == 1) {
        to->node(to, "GlobalAveragePool", "", to->in);
    } else if (a->o[0] == size[0] && a->o[1] == size[1]) {
        to->node(to, "Identity", "", to->in);
    } else if (size[0] % a->o[0] == 0 && size[1] % a->o[1] == 0) {
        to->node(to, "AveragePool", "", to->in);
        rules_onnx_window(to, window, window, none);
    } else { /* windows of different sizes, which ONNX's pooling lacks: rows * in * columns */
        const char *rows = adaptive_avgpool_onnx_means(to, ".rows", a->o[0], size[0], false);
        const char *columns = adaptive_avgpool_onnx_means(to, ".columns", a->o[1], size[1], true);
        const char *high = to->node(to, "MatMul", "/rows", (const char *[]){rows, to->in[0], NULL});

        to->node(to, "MatMul", "", (const char *[]){high, columns, NULL});
    }
}

const co_op co_op_adaptive_avgpool = {
    .name = "adaptive_avgpool",
    .summary = "means over windows, to an output of a given size",
    .keys = adaptive_avgpool_keys,
    .bare = "size",
    .attr_size = sizeof(co_adaptive_pool_attr),
    .n_in = 1,
    .n_out = 1,
    .grad_in = 1,
    .check = adaptive_avgpool_check,
    .shape = adaptive_avgpool_shape,
    .work = adaptive_avgpool_work,
    .write_onnx = adaptive_avgpool_onnx,
};
