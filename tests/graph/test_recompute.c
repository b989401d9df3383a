/*
 * test_recompute.c - blocks that are computed again in the backward pass: the same bits, buffers
 * included, from less memory, and no more work than needed.
 */
#include "models/models_test.h"

#include "backends/backends.h"
#include "core/rng.h"
#include "graph/plan.h"

#define BATCH   4
#define CLASSES 3

/* Two blocks with batch norm, dropout, and sums that each end one; a block within the second. */
static const char network[] =
    "layers:\n"
    "  - conv2d: {out: 8, kernel: 3, padding: 1}\n"
    "  - residual: {body: [conv2d: {out: 8, kernel: 3, padding: 1}, batchnorm, relu, dropout: 0.2,"
    " conv2d: {out: 8, kernel: 3, padding: 1}, batchnorm]}\n"
    "  - residual: {body: [conv2d: {out: 8, kernel: 3, padding: 1}, batchnorm, relu,"
    " residual: {body: [relu, conv2d: {out: 8, kernel: 1}]}],"
    " shortcut: [conv2d: {out: 8, kernel: 1}]}\n"
    "  - relu\n"
    "  - flatten\n"
    "  - linear: 3\n";

static const co_shape sample_shape = {3, {2, 9, 9}};
static const uint32_t samples[BATCH] = {4, 8, 15, 16};
static const co_step_values values = {.given.step = 2, .grad_scale = 0.25f};
static const co_run run = {.seed = 5, .sample = samples, .values = &values};

/* A plan with weights of its own. */
typedef struct trained {
    co_store *store;
    co_plan *plan;
} trained;

static trained open_plan(const models_test *t, const co_plan_options *options)
{
    trained out = {NULL, NULL};

    assert_int_equal(co_store_create(&out.store, t->graph->n_store, t->graph->n_buffer), CO_OK);
    assert_int_equal(co_graph_init(t->graph, out.store, 7), CO_OK);
    assert_int_equal(co_plan_create(&out.plan, t->graph, out.store, options), CO_OK);
    return out;
}

static void close_plan(trained *t)
{
    co_plan_destroy(t->plan);
    co_store_destroy(t->store);
}

static void step(trained *t)
{
    const co_rng rng = {.seed = 3, .stream = CO_RNG_TEST};
    int32_t *label = co_plan_input(t->plan, CO_FIELD_LABEL);

    co_rng_normal(co_plan_input(t->plan, CO_FIELD_INPUT), &rng, 0, BATCH * 2 * 9 * 9);
    for (int i = 0; i < BATCH; i++)
        label[i] = i % CLASSES;
    assert_int_equal(co_plan_forward(t->plan, &run), CO_OK);
    assert_int_equal(co_plan_backward(t->plan, &run, NULL, NULL), CO_OK);
}

static void check_same_bits(const co_backend *const *backends, co_dtype low)
{
    models_test t = models_test_make(network, &sample_shape, CLASSES);
    co_plan_options options = {
        .batch = BATCH, .training = true, .backends = backends, .precision = {.low = low}};
    trained plans[2];
    size_t used[2], unshared;

    plans[0] = open_plan(&t, &options);
    options.recompute = true;
    plans[1] = open_plan(&t, &options);
    for (int i = 0; i < 3; i++) {
        step(&plans[0]);
        step(&plans[1]);
        assert_memory_equal(co_plan_output(plans[0].plan), co_plan_output(plans[1].plan),
                            BATCH * CLASSES * sizeof(float));
        assert_memory_equal(plans[0].store->grad, plans[1].store->grad,
                            plans[0].store->n * sizeof(float));
        assert_memory_equal(plans[0].store->buffer, plans[1].store->buffer,
                            plans[0].store->n_buffer * sizeof(float));
    }
    for (int i = 0; i < 2; i++)
        co_plan_memory(plans[i].plan, &used[i], &unshared);
    assert_true(used[1] < used[0] * 4 / 5);
    close_plan(&plans[0]);
    close_plan(&plans[1]);
    models_test_free(&t);
}

static void recompute_changes_no_bit(void **state)
{
    static const co_backend *const ref[] = {&co_backend_ref, NULL};

    (void)state;
    check_same_bits(ref, CO_F32);
    check_same_bits(co_backends, CO_F32);
    check_same_bits(co_backends, CO_BF16);
}

/* Steps of the backward pass that run this op's forward. */
static int count_again(const co_plan *plan, const char *op)
{
    int n = 0;

    for (int s = 0; s < co_plan_step_count(plan); s++) {
        co_plan_step one;

        co_plan_step_at(&one, plan, s);
        n += one.backward && !one.gradient && strcmp(one.call->op->name, op) == 0;
    }
    return n;
}

/* ref fuses nothing. The sums at the ends of blocks are kept, and so are convolutions that only
   those read; what makes the input of a layer that reads it again is not. */
static void recompute_runs_only_what_is_read_again(void **state)
{
    static const co_backend *const ref[] = {&co_backend_ref, NULL};
    models_test t = models_test_make(network, &sample_shape, CLASSES);
    const co_plan_options options = {
        .batch = BATCH, .training = true, .backends = ref, .recompute = true};
    trained one = open_plan(&t, &options);

    (void)state;
    assert_int_equal(count_again(one.plan, "conv2d"), 3); /* of 6: those before a batch norm */
    assert_int_equal(count_again(one.plan, "relu"), 3);
    close_plan(&one);
    models_test_free(&t);
}

static void recompute_survives_every_failed_allocation(void **state)
{
    models_test t = models_test_make(network, &sample_shape, CLASSES);
    const co_plan_options options = {
        .batch = BATCH, .training = true, .backends = co_backends, .recompute = true};
    co_store *store = NULL;
    uint64_t k = 0;
    co_status st;

    (void)state;
    assert_int_equal(co_store_create(&store, t.graph->n_store, t.graph->n_buffer), CO_OK);
    do {
        co_plan *plan = NULL;

        co_mem_fail_at(++k);
        st = co_plan_create(&plan, t.graph, store, &options);
        assert_true(st == CO_OK || st == CO_E_NOMEM);
        if (st == CO_OK)
            co_plan_destroy(plan);
    } while (st != CO_OK);
    co_mem_fail_at(0);
    assert_true(k > 5);
    co_store_destroy(store);
    models_test_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recompute_changes_no_bit),
        cmocka_unit_test(recompute_runs_only_what_is_read_again),
        cmocka_unit_test(recompute_survives_every_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
