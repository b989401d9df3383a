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
};
