/*
 * test_round.c - results that a kernel in floats rounds itself for the one op that reads them:
 * where that is, and that the numbers are those of a pass that converts.
 */
#include "models/models_test.h"

#include "backends/backends.h"
#include "backends/cpu/cpu.h"
#include "core/rng.h"
#include "graph/plan.h"

#define BATCH   3
#define CLASSES 5

/* `alone` is read by one linear layer, `shared` by a linear layer and a sum. More rows than are
   rounded at once, and widths that are no whole vectors. */
static const char network[] =
    "layers:\n"
    "  - residual: {body: [layernorm: {name: alone}, linear: 33, rmsnorm: {name: narrow},"
    " linear: 19]}\n"
    "  - residual: {body: [rmsnorm: {name: alone_too}, linear: 19]}\n"
    "  - layernorm: {name: shared}\n"
    "  - residual: {body: [linear: 19]}\n"
    "  - flatten\n"
    "  - linear: 5\n";

static const co_shape sample_shape = {2, {7, 19}};
static const uint32_t samples[BATCH] = {0, 1, 2};
static const co_step_values values = {.grad_scale = 1};
static const co_run run = {.seed = 5, .sample = samples, .values = &values};

/* Types of the results of the norms, by their names. */
static co_dtype find_type(const co_plan *plan, const char *name)
{
    for (int s = 0; s < co_plan_step_count(plan); s++) {
        co_plan_step step;

        co_plan_step_at(&step, plan, s);
        if (!step.backward && strcmp(step.call->name, name) == 0)
            return step.call->out[0]->dtype;
    }
    fail_msg("no layer %s", name);
    return CO_F32;
}

/* One step; its gradients are in the store, which is the caller's. */
static co_store *train(const models_test *t, const co_backend *norms, co_dtype low, bool rounds)
{
    const co_backend *const list[] = {norms, &co_backend_ref, NULL};
    const co_plan_options options = {
        .batch = BATCH, .training = true, .backends = list, .precision = {.low = low}};
    const co_rng rng = {.seed = 3, .stream = CO_RNG_TEST};
    co_store *store = NULL;
    co_plan *plan = NULL;

    assert_int_equal(co_store_create(&store, t->graph->n_store, t->graph->n_buffer), CO_OK);
    assert_int_equal(co_graph_init(t->graph, store, 7), CO_OK);
    assert_int_equal(co_plan_create(&plan, t->graph, store, &options), CO_OK);
    assert_int_equal(find_type(plan, "alone"), rounds ? low : CO_F32);
    assert_int_equal(find_type(plan, "alone_too"), rounds ? low : CO_F32);
    assert_int_equal(find_type(plan, "narrow"), low);
    assert_int_equal(find_type(plan, "shared"), CO_F32);
    co_rng_normal(co_plan_input(plan, CO_FIELD_INPUT), &rng, 0, BATCH * 7 * 19);
    for (int i = 0; i < BATCH; i++)
        ((int32_t *)co_plan_input(plan, CO_FIELD_LABEL))[i] = i;
    assert_int_equal(co_plan_forward(plan, &run), CO_OK);
    assert_int_equal(co_plan_backward(plan, &run, NULL, NULL), CO_OK);
    co_plan_destroy(plan);
    return store;
}

static void check_type(co_dtype low)
{
    co_kernel layernorm = co_cpu_layernorm, rmsnorm = co_cpu_rmsnorm;
    const co_kernel *const copies[] = {&layernorm, &rmsnorm, NULL};
    const co_kernel *const own[] = {&co_cpu_layernorm, &co_cpu_rmsnorm, NULL};
    const co_backend rounding = {.name = "rounding", .kernels = own};
    const co_backend converted = {.name = "converted", .kernels = copies};
    models_test t = models_test_make(network, &sample_shape, CLASSES);
    co_store *a, *b;

    layernorm.rounds = rmsnorm.rounds = 0;
    a = train(&t, &rounding, low, true);
    b = train(&t, &converted, low, false);
    assert_memory_equal(a->grad, b->grad, a->n * sizeof(float));
    co_store_destroy(a);
    co_store_destroy(b);
    models_test_free(&t);
}

static void rounded_results_have_bits_of_converted_ones(void **state)
{
    (void)state;
    check_type(CO_BF16);
    check_type(CO_F16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounded_results_have_bits_of_converted_ones),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
