/*
 * test_device_capture.c - a step queues the same work every time: captured once and replayed, it
 * gives the bits of steps that are queued one by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "backends/backends.h"
#include "core/mem.h"
#include "core/rng.h"
#include "device/mock.h"
#include "device/mock_backend.h"
#include "model/model.h"
#include "optim/optim.h"
#include "tensor/values.h"

#define STEPS   100
#define BATCH   3
#define PIXELS  36 /* per sample: (1, 6, 6) */
#define CLASSES 4

/* Buffers the host fills with each step's batch; copies from them are part of the step. */
typedef struct fields {
    float input[BATCH * PIXELS];
    int32_t label[BATCH];
    uint32_t sample[BATCH];
} fields;

typedef struct training {
    co_model *model;
    co_config *config;
    co_optim *optim;
    co_plan *plan;
    fields *fields; /* pinned */
    mock_backend backend;
} training;

static void open_training(training *t, co_device *device)
{
    static const co_backend *const host[] = {&co_backend_ref, NULL};
    const co_model_options options = {.model = "[conv2d: {out: 3, kernel: 3}, batchnorm, relu, "
                                               "dropout: 0.3, flatten, linear: 4]",
                                      .backend = "ref",
                                      .sample = {3, {1, 6, 6}},
                                      .classes = CLASSES,
                                      .seed = 3};
    const co_loss_scale scale = {.scale = 64};
    co_plan_options plan = {.batch = BATCH, .training = true, .backends = host};
    const co_value *value = NULL;
    void *memory = NULL;

    memset(t, 0, sizeof(*t));
    if (co_model_create(&t->model, &options) != CO_OK)
        fail_msg("%s", co_error_message());
    if (device) {
        mock_backend_init(&t->backend, host);
        plan.backends = t->backend.all;
        assert_int_equal(co_model_move(t->model, device, plan.backends), CO_OK);
    }
    assert_int_equal(co_config_parse(&t->config, "{}", 2, "test"), CO_OK);
    assert_int_equal(co_config_add_text(&value, t->config, "{name: adam, lr: 0.01}"), CO_OK);
    assert_int_equal(co_optim_create(&t->optim, value, t->config, t->model->store), CO_OK);
    assert_int_equal(co_plan_create(&t->plan, t->model->graph, t->model->store, &plan), CO_OK);
    assert_int_equal(co_device_alloc(&memory, device, sizeof(fields), CO_MEMORY_PINNED), CO_OK);
    t->fields = memory;
    assert_int_equal(co_values_set(t->model->store, 1, &scale), CO_OK);
}

static void close_training(training *t)
{
    co_device *device = t->model->store->device;

    co_plan_destroy(t->plan);
    co_optim_destroy(t->optim);
    co_config_destroy(t->config);
    co_model_destroy(t->model);
    co_device_free(device, t->fields, CO_MEMORY_PINNED);
}

/* Sets what differs between steps: values and the batch. Waits first, as the queue reads
   `fields`. */
static void bring(training *t, uint32_t step)
{
    const co_rng rng = {.seed = step, .stream = CO_RNG_TEST};
    co_store *store = t->model->store;
    co_step_given *given = co_values_given(store);

    assert_int_equal(co_queue_wait(store->queue, CO_DEVICE_WAIT_MS), CO_OK);
    co_rng_normal(t->fields->input, &rng, 0, BATCH * PIXELS);
    for (uint32_t i = 0; i < BATCH; i++) {
        t->fields->label[i] = (int32_t)((step + i) % CLASSES);
        t->fields->sample[i] = BATCH * step + i;
    }
    given->step = given->number = step;
    given->samples = BATCH;
    given->lr = 0.01 / (1 + (double)step / 10);
    given->clip_norm = 0.5;
    assert_int_equal(co_values_send(store), CO_OK);
}

/* Queues what is the same in every step. */
static co_status compute(void *arg)
{
    static const co_loss_scale_rules rules = {
        .on = true, .dynamic = true, .min_scale = 1, .max_scale = 4096, .window = 30};
    const training *t = arg;
    co_store *store = t->model->store;
    co_step_values *values = store->values;
    const co_run run = {.seed = 3, .values = values, .sample = co_plan_samples(t->plan)};

    CO_TRY(co_plan_feed(t->plan, CO_FIELD_INPUT, t->fields->input, sizeof(t->fields->input)));
    CO_TRY(co_plan_feed(t->plan, CO_FIELD_LABEL, t->fields->label, sizeof(t->fields->label)));
    CO_TRY(co_plan_feed_samples(t->plan, t->fields->sample));
    CO_TRY(co_plan_forward(t->plan, &run));
    co_model_check_loss(t->model, t->plan, BATCH);
    CO_TRY(co_plan_backward(t->plan, &run, NULL, NULL));
    co_clip_norm(store, true);
    store->vector->step(store->queue, values, CO_STEP_FOUND, NULL);
    if (store->ring || !values->found_inf)
        CO_TRY(co_optim_update(t->optim, store, 0, store->n));
    store->vector->step(store->queue, values, CO_STEP_COUNT, NULL);
    store->vector->step(store->queue, values, CO_STEP_END, &rules);
    return CO_OK;
}

/* Weights, two optimizer states and running statistics, then the step values. */
typedef struct outcome {
    float *array[4];
    size_t n[4];
    co_step_values values;
} outcome;

static void take(outcome *out, const training *t)
{
    static const co_store_array arrays[4] = {CO_STORE_PARAM, CO_STORE_STATE, CO_STORE_STATE + 1,
                                             CO_STORE_BUFFER};
    const co_store *store = t->model->store;

    assert_int_equal(co_values_read(&out->values, store), CO_OK);
    for (int i = 0; i < 4; i++) {
        out->n[i] = arrays[i] == CO_STORE_BUFFER ? store->n_buffer : store->n;
        out->array[i] = co_calloc(out->n[i], sizeof(float));
        assert_non_null(out->array[i]);
        assert_int_equal(co_store_read(store, arrays[i], 0, out->n[i], out->array[i]), CO_OK);
    }
}

static void check_outcome(outcome *got, const outcome *want)
{
    assert_int_equal(got->values.update, want->values.update);
    assert_true(got->values.loss_scale.scale == want->values.loss_scale.scale);
    assert_true(got->values.norm == want->values.norm);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(got->n[i], want->n[i]);
        assert_memory_equal(got->array[i], want->array[i], got->n[i] * sizeof(float));
    }
}

static void free_outcome(outcome *out)
{
    for (int i = 0; i < 4; i++)
        co_free(out->array[i]);
}

/* Queues every step anew. On a device (NULL: the host) checks that each step queues the same
   work. */
static void train_plainly(outcome *out, co_device *device)
{
    uint64_t first = 0;
    training t;

    open_training(&t, device);
    for (uint32_t step = 0; step < STEPS; step++) {
        bring(&t, step);
        if (device)
            (void)mock_trace(device);
        assert_int_equal(compute(&t), CO_OK);
        if (device && step == 0)
            first = mock_trace(device);
        else if (device)
            assert_true(mock_trace(device) == first);
    }
    take(out, &t);
    close_training(&t);
}

static void train_by_replays(outcome *out, co_device *device)
{
    co_capture *capture = NULL;
    training t;

    open_training(&t, device);
    bring(&t, 0);
    assert_int_equal(co_capture_create(&capture, t.model->store->queue, compute, &t), CO_OK);
    for (uint32_t step = 0; step < STEPS; step++) {
        bring(&t, step);
        assert_int_equal(co_capture_replay(capture, t.model->store->queue), CO_OK);
    }
    take(out, &t);
    co_capture_destroy(capture);
    close_training(&t);
}

static void capture_replayed_100_times_gives_the_bits_of_100_steps(void **state)
{
    outcome host, plain, replayed;
    co_device *device = NULL;

    (void)state;
    if (mock_open(&device, MOCK_KEYS) != CO_OK)
        assert_int_equal(mock_open(&device, MOCK_TWICE), CO_OK);
    train_plainly(&host, NULL);
    assert_true(host.values.loss_scale.scale > 64); /* it has changed */
    train_plainly(&plain, device);
    train_by_replays(&replayed, device);
    check_outcome(&plain, &host);
    check_outcome(&replayed, &host);
    free_outcome(&host);
    free_outcome(&plain);
    free_outcome(&replayed);
    mock_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capture_replayed_100_times_gives_the_bits_of_100_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
