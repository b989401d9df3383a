/*
 * test_receptive.c - the part of each image that results depend on: by the graph's rules, and by
 * the definition, as the part outside of which no change of the image changes the result.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/backends.h"
#include "graph/plan.h"
#include "ops/ops.h"

#define BATCH  2
#define LAYERS 6

typedef struct layer {
    const co_op *op;
    int64_t out;           /* of a convolution */
    int64_t k, s, p, d;    /* the same along both axes; s 0: k */
    int64_t rows, columns; /* of its input that are read */
} layer;

typedef struct receptive_case {
    int64_t h, w;
    layer layer[LAYERS + 1];
} receptive_case;

/* 32 -> 28 -> 14 -> 10 -> 5 -> 2: the last pooling reads 4 of 5, and so on back to 28 of 32. */
static const receptive_case cases[] = {
    {32,
     32,
     {{&co_op_conv2d, 3, 5, 1, 0, 1, 28, 28},
      {&co_op_maxpool, 0, 2, 0, 0, 1, 24, 24},
      {&co_op_conv2d, 4, 5, 1, 0, 1, 12, 12},
      {&co_op_maxpool, 0, 2, 0, 0, 1, 8, 8},
      {&co_op_dropout, 0, 0, 0, 0, 0, 4, 4},
      {&co_op_maxpool, 0, 2, 0, 0, 1, 4, 4}}},
    /* padding and dilation: 13 x 12 -> 13 x 12 -> 6 x 6 -> 2 x 2, of which 3 * 2 of 6 are read */
    {13,
     12,
     {{&co_op_conv2d, 2, 3, 1, 2, 2, 13, 12},
      {&co_op_relu, 0, 0, 0, 0, 0, 12, 12},
      {&co_op_avgpool, 0, 2, 0, 0, 1, 12, 12},
      {&co_op_maxpool, 0, 3, 0, 0, 1, 6, 6}}},
    /* steps larger than the windows, in one direction only of use: 11 x 8 -> 4 x 3 -> 2 x 1 */
    {11, 8, {{&co_op_conv2d, 2, 2, 3, 0, 1, 11, 5}, {&co_op_maxpool, 0, 2, 0, 0, 1, 4, 2}}},
    /* overlapping windows with padding read all */
    {9, 9, {{&co_op_conv2d, 2, 3, 2, 1, 1, 9, 9}, {&co_op_maxpool, 0, 3, 2, 1, 1, 5, 5}}},
};

static int add_layer(co_graph *g, const layer *l, int x)
{
    const int64_t s = l->s ? l->s : l->k;
    const co_ints k = {.n = 1, .v = &l->k}, step = {.n = 1, .v = &s};
    const co_ints pad = {.n = 1, .v = &l->p}, d = {.n = 1, .v = &l->d};
    const co_conv2d_attr conv = {
        .out = l->out, .kernel = k, .stride = step, .padding = pad, .dilation = d, .groups = 1};
    const co_pool_attr pool = {.kernel = k, .stride = step, .padding = pad};
    const co_dropout_attr dropout = {.p = 0.5};
    const void *attr = l->op == &co_op_conv2d    ? (const void *)&conv
                       : l->op == &co_op_dropout ? (const void *)&dropout
                                                 : &pool;
    const int in[] = {x};
    char name[32];
    int out = -1;

    snprintf(name, sizeof(name), "layer%d", g->n_node);
    assert_int_equal(co_graph_add(&out, g, l->op, name, attr, in), CO_OK);
    return out;
}

static co_graph *make_graph(const receptive_case *c, int *var)
{
    const co_shape sample = {3, {1, c->h, c->w}};
    const co_cross_entropy_attr loss = {0};
    co_graph *g = NULL;
    int x;

    assert_int_equal(co_graph_create(&g), CO_OK);
    assert_int_equal(co_graph_add_input(&x, g, CO_FIELD_INPUT, &sample, CO_F32), CO_OK);
    for (int i = 0; c->layer[i].op; i++) {
        var[i] = x;
        x = add_layer(g, &c->layer[i], x);
    }
    assert_int_equal(co_graph_add(&x, g, &co_op_flatten, NULL, NULL, &x), CO_OK);
    assert_int_equal(co_graph_add_loss(&x, g, &co_op_cross_entropy, NULL, &loss, x), CO_OK);
    assert_int_equal(co_graph_finish(g), CO_OK);
    return g;
}

static void receptive_part_of_each_layer_is_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int var[LAYERS];
        co_graph *g = make_graph(&cases[i], var);

        for (int k = 0; cases[i].layer[k].op; k++) {
            const co_extent read = g->var[var[k]].read;

            assert_int_equal(read.rows, cases[i].layer[k].rows);
            assert_int_equal(read.columns, cases[i].layer[k].columns);
        }
        co_graph_destroy(g);
    }
}

/* The losses of two samples that differ at one place of the image. */
static bool changes(co_plan *plan, int64_t h, int64_t w, int64_t at)
{
    const co_step_values values = {.grad_scale = 1};
    const co_run run = {.values = &values};
    float *x = co_plan_input(plan, CO_FIELD_INPUT), loss[BATCH];

    for (int64_t i = 0; i < h * w; i++)
        x[i] = x[h * w + i] = (float)(i * 7919 % 101) / 50 - 1;
    x[h * w + at] += 100;
    assert_int_equal(co_plan_forward(plan, &run), CO_OK);
    memcpy(loss, co_plan_loss(plan), sizeof(loss));
    x[h * w + at] -= 200;
    assert_int_equal(co_plan_forward(plan, &run), CO_OK);
    return loss[0] != loss[1] || loss[0] != co_plan_loss(plan)[1];
}

/* By the reference kernels, which compute everything: what lies outside changes nothing. */
static void receptive_rest_changes_nothing(void **state)
{
    const co_backend *const list[] = {&co_backend_ref, NULL};
    const co_plan_options options = {.batch = BATCH, .backends = list};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const receptive_case *c = &cases[i];
        int var[LAYERS];
        co_graph *g = make_graph(c, var);
        co_store *store = NULL;
        co_plan *plan = NULL;
        bool inside = false;

        assert_int_equal(co_store_create(&store, g->n_store, g->n_buffer), CO_OK);
        assert_int_equal(co_graph_init(g, store, 5), CO_OK);
        assert_int_equal(co_plan_create(&plan, g, store, &options), CO_OK);
        memset(co_plan_input(plan, CO_FIELD_LABEL), 0, BATCH * sizeof(int32_t));
        for (int64_t at = 0; at < c->h * c->w; at++) {
            const bool read = at / c->w < c->layer[0].rows && at % c->w < c->layer[0].columns;

            inside = changes(plan, c->h, c->w, at) || inside;
            assert_true(read || !changes(plan, c->h, c->w, at));
        }
        assert_true(inside);
        co_plan_destroy(plan);
        co_store_destroy(store);
        co_graph_destroy(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receptive_part_of_each_layer_is_found),
        cmocka_unit_test(receptive_rest_changes_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
