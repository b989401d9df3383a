/*
 * test_parts.c - a language model whose logits are computed in parts: loss, places of the labels
 * and gradients are those of all logits at once, from less memory, whether or not the backward pass
 * has been announced.
 */
#include "models/models_test.h"

#include <math.h>

#include "backends/backends.h"
#include "graph/plan.h"

#define BATCH  3
#define LENGTH 5
#define VOCAB  70
#define ROWS   (BATCH * LENGTH)

static const char tied[] =
    "model: {name: gpt2, layers: 1, heads: 2, width: 8, context: 5, vocab: 70, dropout: 0.1}\n";
static const char own_layer[] =
    "model: {name: gpt2, layers: 1, heads: 2, width: 8, context: 5, vocab: 70, tie: false}\n";

static const co_shape sample_shape = {1, {LENGTH}};
static const uint32_t samples[BATCH] = {4, 8, 15};
static const co_step_values values = {.given.step = 2, .grad_scale = 0.25f};

/* A plan with weights of its own. */
typedef struct trained {
    co_store *store;
    co_plan *plan;
    float loss[BATCH];
} trained;

static trained open_plan(const models_test *t, const co_plan_options *options)
{
    trained out = {.store = NULL};

    assert_int_equal(co_store_create(&out.store, t->graph->n_store, t->graph->n_buffer), CO_OK);
    assert_int_equal(co_graph_init(t->graph, out.store, 7), CO_OK);
    for (size_t i = 0; i < out.store->n; i++) /* tokens differ by more than rounding */
        out.store->param[i] *= 20;
    assert_int_equal(co_plan_create(&out.plan, t->graph, out.store, options), CO_OK);
    return out;
}

static void close_plan(trained *t)
{
    co_plan_destroy(t->plan);
    co_store_destroy(t->store);
}

/* A label of -1 is left out. */
static int32_t label_of(int i)
{
    return i == 7 ? -1 : i * 11 % VOCAB;
}

static void forward(trained *t)
{
    const co_run run = {.seed = 5, .sample = samples, .values = &values};
    int32_t *token = co_plan_input(t->plan, CO_FIELD_INPUT);
    int32_t *label = co_plan_input(t->plan, CO_FIELD_LABEL);

    for (int i = 0; i < ROWS; i++) {
        token[i] = i * 17 % VOCAB;
        label[i] = label_of(i);
    }
    assert_int_equal(co_plan_forward(t->plan, &run), CO_OK);
    memcpy(t->loss, co_plan_loss(t->plan), sizeof(t->loss));
}

static void backward(trained *t, bool accumulate)
{
    const co_run run = {.seed = 5, .sample = samples, .values = &values, .accumulate = accumulate};

    assert_int_equal(co_plan_backward(t->plan, &run, NULL, NULL), CO_OK);
}

static void check_near(const float *x, const float *want, size_t n, double tolerance)
{
    double norm = 0, error = 0;

    for (size_t i = 0; i < n; i++) {
        norm += (double)want[i] * (double)want[i];
        error += pow((double)x[i] - (double)want[i], 2);
    }
    assert_true(norm > 0);
    if (!(sqrt(error) <= tolerance * sqrt(norm)))
        fail_msg("relative error %g", sqrt(error / norm));
}

static void check_places(const co_plan *parts, const float *logit)
{
    const int32_t *place = co_plan_places(parts);

    assert_null(co_plan_output(parts));
    for (int i = 0; i < ROWS; i++, logit += VOCAB) {
        int above = 0;

        for (int c = 0; label_of(i) >= 0 && c < VOCAB; c++)
            above += logit[c] > logit[label_of(i)];
        assert_int_equal(place[i], label_of(i) < 0 ? -1 : above);
    }
}

static void check_backends(const char *network, const co_backend *const *backends, co_dtype low)
{
    const double tolerance = low == CO_F32 ? 1e-5 : 1e-2;
    models_test t = models_test_make(network, &sample_shape, VOCAB);
    co_plan_options options = {
        .batch = BATCH, .training = true, .backends = backends, .precision = {.low = low}};
    trained whole = open_plan(&t, &options), parts;

    options.logit_rows = 6;
    parts = open_plan(&t, &options);
    forward(&whole);
    assert_null(co_plan_places(whole.plan));
    backward(&whole, false);
    forward(&parts);
    check_near(parts.loss, whole.loss, BATCH, tolerance);
    if (low == CO_F32)
        check_places(parts.plan, co_plan_output(whole.plan));
    backward(&parts, false);
    check_near(parts.store->grad, whole.store->grad, whole.store->n, tolerance);

    co_plan_announce(parts.plan, false);
    forward(&parts);
    backward(&parts, false);
    check_near(parts.store->grad, whole.store->grad, whole.store->n, tolerance);
    co_plan_announce(parts.plan, true);
    forward(&parts);
    backward(&parts, true);
    forward(&whole);
    backward(&whole, true);
    check_near(parts.store->grad, whole.store->grad, whole.store->n, tolerance);
    forward(&parts); /* not announced, after one that was */
    backward(&parts, false);
    forward(&whole);
    backward(&whole, false);
    check_near(parts.store->grad, whole.store->grad, whole.store->n, tolerance);
    close_plan(&whole);
    close_plan(&parts);
    models_test_free(&t);
}

static const co_backend *const reference[] = {&co_backend_ref, NULL};

static void parts_of_logits_equal_all_at_once(void **state)
{
    (void)state;
    check_backends(tied, reference, CO_F32);
    check_backends(tied, co_backends, CO_F32);
    check_backends(own_layer, co_backends, CO_F32);
}

static void parts_in_half_precision_equal_all_at_once(void **state)
{
    (void)state;
    check_backends(tied, co_backends, CO_BF16);
    check_backends(own_layer, co_backends, CO_F16);
}

/* Of samples without backward, as in evaluation, too. */
static void parts_without_training_have_same_loss(void **state)
{
    models_test t = models_test_make(tied, &sample_shape, VOCAB);
    co_plan_options options = {.batch = BATCH, .backends = co_backends};
    trained whole = open_plan(&t, &options), parts;

    (void)state;
    options.logit_rows = 8;
    parts = open_plan(&t, &options);
    forward(&whole);
    forward(&parts);
    check_near(parts.loss, whole.loss, BATCH, 1e-5);
    check_places(parts.plan, co_plan_output(whole.plan));
    close_plan(&whole);
    close_plan(&parts);
    models_test_free(&t);
}

static size_t memory_of(const models_test *t, int64_t batch, int64_t rows)
{
    const co_plan_options options = {
        .batch = batch, .training = true, .backends = co_backends, .logit_rows = rows};
    trained plan = open_plan(t, &options);
    size_t used, unshared;

    co_plan_memory(plan.plan, &used, &unshared);
    close_plan(&plan);
    return used;
}

/* Of each position less than its logits are kept. */
static void parts_take_memory_for_one_part(void **state)
{
    static const char network[] =
        "model: {name: gpt2, layers: 1, heads: 1, width: 4, context: 5, vocab: 9000}\n";
    models_test t = models_test_make(network, &sample_shape, 9000);
    const size_t logits = ROWS * 9000 * sizeof(float);

    (void)state;
    assert_true(memory_of(&t, 8 * BATCH, 0) >= 8 * logits);
    assert_true(memory_of(&t, 8 * BATCH, ROWS) < 3 * logits);
    assert_true(memory_of(&t, 16 * BATCH, ROWS) < 3 * logits);
    models_test_free(&t);
}

/* Losses of whole samples, logits that are rows of tokens, and those that are drawn by the sample,
   are computed as ever. */
static void parts_of_other_networks_are_not_made(void **state)
{
    static const struct {
        const char *text;
        co_shape sample;
    } network[] = {
        {"layers: [linear: 70]\n", {1, {6}}},
        {"layers: [embedding: {vocab: 70, out: 70}]\n", {1, {LENGTH}}},
        {"layers: [embedding: {vocab: 70, out: 8}, linear: 70, dropout: 0.5]\n", {1, {LENGTH}}},
    };
    const co_plan_options options = {
        .batch = BATCH, .training = true, .backends = co_backends, .logit_rows = 8};

    (void)state;
    for (size_t i = 0; i < sizeof(network) / sizeof(network[0]); i++) {
        models_test t = models_test_make(network[i].text, &network[i].sample, VOCAB);
        trained plan = open_plan(&t, &options);

        assert_null(co_plan_places(plan.plan));
        assert_non_null(co_plan_output(plan.plan));
        close_plan(&plan);
        models_test_free(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_of_logits_equal_all_at_once),
        cmocka_unit_test(parts_in_half_precision_equal_all_at_once),
        cmocka_unit_test(parts_without_training_have_same_loss),
        cmocka_unit_test(parts_take_memory_for_one_part),
        cmocka_unit_test(parts_of_other_networks_are_not_made),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
