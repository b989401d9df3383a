/*
 * test_device_late.c - results of steps on a device are read late: the next step is queued before,
 * and still nothing is saved, reported as final or seen by others before the results of its step
 * have been read. What a run leaves is what the same run leaves on the host.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <cohort.h>

#include <cohort/ext/step.h>

#include "core/mem.h"
#include "device/trainings.h"

#define MAX_LOG 100000

/* 7 steps in each of 2 epochs; checkpoints after steps 3, 6, 9, 12 and each epoch's end. */
static const char classes[] = "model: {name: mlp, hidden: [9]}\n"
                              "data: {name: synthetic, shape: [1, 6, 6], classes: 7, samples: 52}\n"
                              "batch: 8\n"
                              "accumulate: 2\n"
                              "epochs: 2\n"
                              "log_every: 3\n"
                              "backend: ref\n"
                              "metrics: f1_macro\n"
                              "optimizer: {name: sgd, lr: 0.2, momentum: 0.9}\n"
                              "schedule: {name: cosine, unit: step}\n"
                              "checkpoint: {every: 3 steps, keep: 100}\n"
                              "threads: 1\n";

/* What the log shows of steps: how many were queued, and looked at. */
typedef struct seen {
    uint64_t queued, read;
    uint64_t ahead;  /* most that were queued and not read, when one was read */
    uint64_t states; /* copies of all weights to the host */
} seen;

/* The copy of a step's values: all else of it has been queued. */
static bool ends_step(const mock_entry *e, const training *t)
{
    return e->kind == MOCK_COPIED && e->from == t->values && e->bytes == sizeof(co_step_values);
}

/* All weights to the host: for a checkpoint, or at the end. */
static bool takes_state(const mock_entry *e, const training *t, size_t param_bytes)
{
    return e->kind == MOCK_COPIED && e->from == t->param && e->bytes == param_bytes;
}

/* A fence that is recorded after the copy says that it is there. */
static seen follow(const training *t, size_t param_bytes)
{
    const co_fence *fence[2] = {NULL, NULL};
    seen s = {0, 0, 0, 0};

    assert_true(t->n_log < t->max_log);
    for (size_t i = 1; i < t->n_log; i++) {
        const mock_entry *e = &t->log[i];

        s.queued += ends_step(e, t);
        if (ends_step(e - 1, t))
            fence[s.queued % 2] = e->fence;
        if (takes_state(e, t, param_bytes)) {
            assert_int_equal(s.read, s.queued);
            s.states++;
        }
        if (e->kind != MOCK_SEEN || s.read == s.queued || e->fence != fence[(s.read + 1) % 2])
            continue;
        s.ahead = s.queued - s.read > s.ahead ? s.queued - s.read : s.ahead;
        s.read++;
    }
    return s;
}

static mock_entry *make_log(void)
{
    mock_entry *log = co_calloc(MAX_LOG, sizeof(*log));

    assert_non_null(log);
    return log;
}

/* (36 + 1) 9 + (9 + 1) 7 values, each tensor from a multiple of 16 on. */
#define CLASSES_PARAM ((16 + 64 + 16 + 336) * sizeof(float))

static void late_next_step_is_queued_before_results_are_read(void **state)
{
    training host = {.config = classes, .name = "host"};
    training device = {
        .config = classes, .name = "device", .mock = true, .log = make_log(), .max_log = MAX_LOG};
    seen s;

    (void)state;
    training_run(&host);
    training_run(&device);
    training_check_same(&device, &host);
    s = follow(&device, CLASSES_PARAM);
    assert_int_equal(s.queued, 14);
    assert_int_equal(s.read, 14);
    assert_int_equal(s.ahead, 2);
    assert_true(s.states >= 5); /* what follow() has looked at */
    co_free(device.log);
}

static size_t count_replays(const training *t)
{
    size_t n = 0;

    assert_true(t->n_log < t->max_log);
    for (size_t i = 0; i < t->n_log; i++)
        n += t->log[i].kind == MOCK_REPLAYED;
    return n;
}

/* Given as they are: the first steps of each size in each of two places, and those after memory has
   grown, for the second place and for the first evaluation. */
static void late_steps_are_replayed_with_the_bits_of_the_host(void **state)
{
    char plain[sizeof(classes) + 32];
    training host = {.config = classes, .name = "host"};
    training device = {
        .config = classes, .name = "device", .mock = true, .log = make_log(), .max_log = MAX_LOG};
    training given = {
        .config = plain, .name = "given", .mock = true, .log = make_log(), .max_log = MAX_LOG};

    (void)state;
    snprintf(plain, sizeof(plain), "%sdevice: {graphs: false}\n", classes);
    training_run(&host);
    training_run(&device);
    training_run(&given);
    training_check_same(&device, &host);
    training_check_same(&given, &host);
    assert_true(count_replays(&device) >= 14 / 2);
    assert_int_equal(count_replays(&given), 0);
    co_free(device.log);
    co_free(given.log);
}

/* The host counts all, where the device counts nothing. */
static void late_figures_counted_by_the_host_are_the_same(void **state)
{
    training host = {.config = classes, .name = "host"};
    training device = {.config = classes, .name = "device", .mock = true, .host_counts = true};

    (void)state;
    training_run(&host);
    training_run(&device);
    training_check_same(&device, &host);
}

/* ---- a program that looks at the model ---- */

typedef struct looked {
    uint64_t steps;
    float weight[20]; /* after each of them */
    double lr[20], loss[20];
} looked;

static bool look(void *arg, const co_step_info *info)
{
    looked *l = arg;

    assert_int_equal(info->step, l->steps + 1);
    assert_true(l->steps < 20);
    assert_int_equal(co_store_read(info->model->store, CO_STORE_PARAM, 0, 1, &l->weight[l->steps]),
                     CO_OK);
    l->lr[l->steps] = info->lr;
    l->loss[l->steps++] = info->loss;
    return l->steps == 9;
}

static void late_program_sees_the_model_of_each_step(void **state)
{
    looked here = {.steps = 0}, there = {.steps = 0};
    training host = {.config = classes, .name = "host", .on_step = look, .on_step_arg = &here};
    training device = {
        .config = classes, .name = "device", .mock = true, .on_step = look, .on_step_arg = &there};

    (void)state;
    training_run(&host);
    training_run(&device);
    training_check_same(&device, &host);
    assert_int_equal(device.result.train.steps, 9);
    assert_memory_equal(&there, &here, sizeof(here));
}

/* ---- values and labels, of which the device counts some metrics, and the host others ---- */

#define TRAIN    40
#define TEST     12
#define FEATURES 5
#define OUTPUTS  3

static void make_data(bool binary)
{
    static float x[TRAIN + TEST][FEATURES], y[TRAIN + TEST][OUTPUTS];
    const co_named_tensor tensors[] = {
        {"train.input", CO_F32, {2, {TRAIN, FEATURES}}, x, TRAIN * sizeof(x[0])},
        {"train.target", CO_F32, {2, {TRAIN, OUTPUTS}}, y, TRAIN * sizeof(y[0])},
        {"test.input", CO_F32, {2, {TEST, FEATURES}}, x[TRAIN], TEST * sizeof(x[0])},
        {"test.target", CO_F32, {2, {TEST, OUTPUTS}}, y[TRAIN], TEST * sizeof(y[0])},
    };
    char path[128];

    for (int i = 0; i < TRAIN + TEST; i++) {
        for (int k = 0; k < FEATURES; k++)
            x[i][k] = (float)((i * 7 + k * 11) % 19 - 9) / 7;
        for (int k = 0; k < OUTPUTS; k++)
            y[i][k] = binary ? (float)((i + k) % 3 == 0) : x[i][k] - x[i][k + 1] / 3;
    }
    snprintf(path, sizeof(path), "%s/data.safetensors", training_folder());
    assert_int_equal(co_safetensors_write(path, tensors, 4, NULL), CO_OK);
}

static void check_targets(bool binary, const char *loss, const char *metrics)
{
    training host = {.name = "host"}, device = {.name = "device", .mock = true};
    char text[512];

    make_data(binary);
    snprintf(text, sizeof(text),
             "model: {name: mlp, hidden: [6]}\n"
             "data: {name: arrays, path: %s/data.safetensors}\n"
             "loss: %s\n"
             "metrics: %s\n"
             "batch: 8\n"
             "epochs: 2\n"
             "log_every: 1\n"
             "backend: ref\n"
             "checkpoint: 2 steps\n"
             "threads: 1\n",
             training_folder(), loss, metrics);
    host.config = device.config = text;
    training_run(&host);
    training_run(&device);
    training_check_same(&device, &host);
}

static void late_metrics_of_values_are_the_same(void **state)
{
    (void)state;
    check_targets(false, "mse_loss", "[mae, rmse, r2]");
}

static void late_metrics_of_labels_are_the_same(void **state)
{
    (void)state;
    check_targets(true, "bce_with_logits_loss", "label_accuracy");
}

/* ---- a step that is bad ---- */

/* The loss of a step is found to be no number when the next step is queued, and a checkpoint is
   due: there is none. */
static void late_checkpoint_is_not_made_of_a_bad_step(void **state)
{
    static const char bad[] = "model: {name: mlp, hidden: [9]}\n"
                              "data: {name: synthetic, shape: [1, 6, 6], classes: 7, samples: 80}\n"
                              "batch: 8\n"
                              "epochs: 2\n"
                              "backend: ref\n"
                              "optimizer: {name: sgd, lr: 1000, weight_decay: 1000}\n"
                              "checkpoint: {every: 3 steps, keep: 100}\n"
                              "threads: 1\n";
    training host = {.config = bad, .name = "host", .fails = true};
    training device = {.config = bad, .name = "device", .fails = true, .mock = true};

    (void)state;
    training_run(&host);
    training_run(&device);
    assert_non_null(strstr(host.message, "the loss is not a number any more at step"));
    assert_string_equal(device.message, host.message);
    assert_true(training_count_checkpoints(&host) > 0);
    assert_int_equal(training_count_checkpoints(&device), training_count_checkpoints(&host));
}

int main(void)
{
#define TEST_OF(name)                                                                              \
    cmocka_unit_test_setup_teardown(name, training_make_folder, training_remove_folder)
    const struct CMUnitTest tests[] = {
        TEST_OF(late_next_step_is_queued_before_results_are_read),
        TEST_OF(late_steps_are_replayed_with_the_bits_of_the_host),
        TEST_OF(late_figures_counted_by_the_host_are_the_same),
        TEST_OF(late_program_sees_the_model_of_each_step),
        TEST_OF(late_metrics_of_values_are_the_same),
        TEST_OF(late_metrics_of_labels_are_the_same),
        TEST_OF(late_checkpoint_is_not_made_of_a_bad_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
