/*
 * test_device_capture.c - a whole step of the distributed optimizer as one line of queued work:
 * dropout, batch norm, two micro-batches, a loss scale that overflows, clipping, the update, a
 * moving average. Kept once and given again it has the bits of the step given anew each time, and
 * of the host; so have several steps that are kept and given as one.
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
#include "data/data.h"
#include "device/mock.h"
#include "device/mock_backend.h"
#include "model/model.h"
#include "step/distributed.h"
#include "step/ema.h"
#include "step/overflow.h"
#include "tensor/values.h"

#define STEPS    100 /* after the first, for which the plan is made */
#define TOGETHER 4   /* steps in one launch */
#define BATCH    6
#define PARTS    2
#define PIXELS   36 /* of a sample: (1, 6, 6) */
#define CLASSES  4

/* Where the host puts each step's batch: copies of it are part of the step. */
typedef struct fields {
    float input[BATCH * PIXELS];
    int32_t label[BATCH];
    uint32_t sample[BATCH];
} fields;

typedef struct training {
    co_comm *comm;
    co_model *model;
    co_distributed *distributed;
    co_overflow overflow;
    co_ema *ema;
    fields *fields; /* (TOGETHER) pinned, of steps in turn */
    co_batch batch[TOGETHER];
    int place; /* of the step, here and on the device */
    mock_backend backend;
} training;

static co_model *make_model(void)
{
    const co_model_options options = {
        .model = "[conv2d: {out: 3, kernel: 3}, batchnorm, relu, dropout: 0.3, flatten, linear: 4]",
        .backend = "ref",
        .sample = {3, {1, 6, 6}},
        .classes = CLASSES,
        .precision = "{level: O1, dtype: fp16, loss_scale: dynamic, loss_scale_window: 9}",
        .seed = 3};
    co_model *model = NULL;

    if (co_model_create(&model, &options) != CO_OK)
        fail_msg("%s", co_error_message());
    return model;
}

static void open_training(training *t, co_device *device)
{
    static const co_backend *const host[] = {&co_backend_ref, NULL};
    const co_ema_options ema = {.decay = 0.9, .every = 2, .warmup = true};
    co_distributed_options options = {.optimizer = "{name: adam, lr: 0.01}",
                                      .schedule = "{name: cosine, warmup: 10, unit: step}",
                                      .clip_norm = 0.5,
                                      .clip_value = 0.2,
                                      .steps_per_epoch = 10,
                                      .total_steps = STEPS + 1};
    void *memory = NULL;

    memset(t, 0, sizeof(*t));
    assert_int_equal(co_comm_create_self(&t->comm), CO_OK);
    t->model = make_model();
    if (device) {
        mock_backend_init(&t->backend, host);
        assert_int_equal(co_model_move(t->model, device, t->backend.all), CO_OK);
    }
    options.model = t->model;
    options.comm = t->comm;
    if (co_distributed_create(&t->distributed, &options) != CO_OK)
        fail_msg("%s", co_error_message());
    assert_int_equal(co_overflow_open(&t->overflow, t->distributed, t->model->store), CO_OK);
    assert_int_equal(co_ema_create(&t->ema, &ema, t->model->store), CO_OK);
    assert_int_equal(co_device_alloc(&memory, device, TOGETHER * sizeof(fields), CO_MEMORY_PINNED),
                     CO_OK);
    t->fields = memory;
}

static void close_training(training *t)
{
    co_device *device = t->model->store->device;

    assert_int_equal(co_queue_wait(t->model->store->queue, CO_DEVICE_WAIT_MS), CO_OK);
    co_ema_destroy(t->ema);
    co_overflow_close(&t->overflow);
    co_distributed_destroy(t->distributed);
    co_model_destroy(t->model);
    co_comm_destroy(t->comm);
    co_device_free(device, t->fields, CO_MEMORY_PINNED);
}

static co_batch part_of(const training *t, uint64_t k)
{
    return co_batch_slice(&t->batch[t->place], k * BATCH / PARTS, BATCH / PARTS);
}

/* The batch of a step, at the host's and the device's place for it. */
static void bring_batch(training *t, uint32_t step, int place)
{
    const co_rng rng = {.seed = step, .stream = CO_RNG_TEST};
    fields *f = &t->fields[place];

    co_rng_normal(f->input, &rng, 0, BATCH * PIXELS);
    if (step % 40 == 15)
        f->input[7] = 1e38f; /* of which gradients in 16 bits overflow */
    for (uint32_t i = 0; i < BATCH; i++) {
        f->label[i] = (int32_t)((step + i) % CLASSES);
        f->sample[i] = BATCH * step + i;
    }
    t->place = place;
    t->batch[place] = (co_batch){.epoch = step / 10,
                                 .step = step % 10,
                                 .count = BATCH,
                                 .global = BATCH,
                                 .sample = f->sample,
                                 .field = {{CO_FIELD_INPUT, CO_F32, {3, {1, 6, 6}}, f->input},
                                           {CO_FIELD_LABEL, CO_I32, {0}, f->label}}};
    for (uint64_t k = 0; k < PARTS && t->model->store->ring; k++) {
        const co_batch part = part_of(t, k);

        assert_int_equal(co_model_stage(t->model, &part, NULL, t->model->store->queue, place, k),
                         CO_OK);
    }
}

/* What differs from step to step: the batch, and what is decided before the work is queued. */
static void begin(training *t, uint32_t step, int place)
{
    co_store *store = t->model->store;

    assert_int_equal(co_queue_wait(store->queue, CO_DEVICE_WAIT_MS), CO_OK);
    bring_batch(t, step, place);
    co_ema_begin(t->ema, store, step + 1);
    assert_int_equal(co_distributed_begin(t->distributed, &t->batch[place]), CO_OK);
}

/* The same in every step. */
static co_status work(void *arg)
{
    training *t = arg;
    co_result result;

    co_overflow_keep(&t->overflow);
    for (uint64_t k = 0; k < PARTS; k++) {
        const co_batch part = part_of(t, k);

        if (t->model->store->ring) {
            CO_TRY(co_model_forward_late(t->model, &part, t->place, k));
        } else {
            CO_TRY(co_model_forward(&result, t->model, &part));
            (void)co_overflow_forgive(&t->overflow, &result);
        }
        CO_TRY(co_distributed_backward(t->distributed, &part, k + 1 < PARTS));
    }
    CO_TRY(co_distributed_step(t->distributed));
    co_overflow_settle(&t->overflow);
    co_ema_update(t->ema, t->model->store);
    return CO_OK;
}

/* Weights, the two states of the optimizer, running statistics, and the averages of both kinds. */
typedef struct outcome {
    float *array[6];
    size_t n[6];
    co_step_values values;
} outcome;

static void take(outcome *out, const training *t)
{
    const co_store *store = t->model->store;
    const float *const array[6] = {store->param,  store->state[0], store->state[1],
                                   store->buffer, t->ema->param,   t->ema->buffer};

    assert_int_equal(co_values_read(&out->values, store), CO_OK);
    for (int i = 0; i < 6; i++) {
        out->n[i] = i == 3 || i == 5 ? store->n_buffer : store->n;
        out->array[i] = co_calloc(out->n[i], sizeof(float));
        assert_non_null(out->array[i]);
        assert_int_equal(
            co_queue_copy_now(store->queue, out->array[i], array[i], out->n[i] * sizeof(float)),
            CO_OK);
    }
}

static void check_outcome(const outcome *got, const outcome *want)
{
    assert_int_equal(got->values.update, want->values.update);
    assert_memory_equal(&got->values.loss_scale, &want->values.loss_scale, sizeof(co_loss_scale));
    assert_true(got->values.norm == want->values.norm);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(got->n[i], want->n[i]);
        assert_memory_equal(got->array[i], want->array[i], got->n[i] * sizeof(float));
    }
}

static void free_outcome(outcome *out)
{
    for (int i = 0; i < 6; i++)
        co_free(out->array[i]);
}

/* Each step given anew; on a device (NULL: the host) the same work in each but the first. */
static void train_plainly(outcome *out, co_device *device)
{
    uint64_t trace = 0;
    training t;

    open_training(&t, device);
    for (uint32_t step = 0; step <= STEPS; step++) {
        begin(&t, step, 0);
        if (device)
            (void)mock_trace(device);
        assert_int_equal(work(&t), CO_OK);
        if (device && step == 1)
            trace = mock_trace(device);
        else if (device && step > 1)
            assert_true(mock_trace(device) == trace);
    }
    take(out, &t);
    close_training(&t);
}

static void train_by_replays(outcome *out, co_device *device)
{
    co_capture *capture = NULL;
    training t;

    open_training(&t, device);
    for (uint32_t step = 0; step <= STEPS; step++) {
        begin(&t, step, 0);
        if (step == 0)
            assert_int_equal(work(&t), CO_OK);
        else if (step == 1) /* counts as the step whose work it does not do */
            assert_int_equal(co_capture_create(&capture, t.model->store->queue, work, &t), CO_OK);
        else
            co_distributed_count_step(t.distributed);
        if (step > 0)
            assert_int_equal(co_capture_replay(capture, t.model->store->queue), CO_OK);
    }
    take(out, &t);
    co_capture_destroy(capture);
    close_training(&t);
}

/* The work of TOGETHER steps, each with the values that were kept for it. */
static co_status work_together(void *arg)
{
    training *t = arg;

    CO_TRY(co_values_bring(t->model->store, 0, TOGETHER));
    for (t->place = 0; t->place < TOGETHER; t->place++) {
        CO_TRY(co_distributed_use(t->distributed, t->place));
        CO_TRY(work(t));
    }
    return CO_OK;
}

/* The first TOGETHER + 1 steps as they are, so that each place has its memory. */
static void train_together(outcome *out, co_device *device)
{
    co_capture *capture = NULL;
    uint32_t step = 0;
    training t;

    open_training(&t, device);
    for (; step <= TOGETHER; step++) {
        begin(&t, step, (int)(step % TOGETHER));
        assert_int_equal(work(&t), CO_OK);
    }
    for (; step + TOGETHER <= STEPS + 1; step += TOGETHER) {
        assert_int_equal(co_queue_wait(t.model->store->queue, CO_DEVICE_WAIT_MS), CO_OK);
        for (uint32_t i = 0; i < TOGETHER; i++) {
            bring_batch(&t, step + i, (int)i);
            co_ema_begin(t.ema, t.model->store, step + i + 1);
            co_distributed_foresee(t.distributed, &t.batch[i], i, (int)i);
        }
        if (!capture)
            assert_int_equal(co_capture_create(&capture, t.model->store->queue, work_together, &t),
                             CO_OK);
        else
            for (int i = 0; i < TOGETHER; i++)
                co_distributed_count_step(t.distributed);
        assert_int_equal(co_capture_replay(capture, t.model->store->queue), CO_OK);
    }
    assert_int_equal(step, STEPS + 1);
    take(out, &t);
    co_capture_destroy(capture);
    close_training(&t);
}

static void step_captured_and_replayed_100_times_has_bits_of_100_steps(void **state)
{
    outcome host, plain, replayed, together;
    co_device *device = NULL;

    (void)state;
    if (mock_open(&device, MOCK_KEYS) != CO_OK)
        assert_int_equal(mock_open(&device, MOCK_TWICE), CO_OK);
    train_plainly(&host, NULL);
    assert_true(host.values.loss_scale.skipped >= 3);
    assert_true(host.values.update > STEPS / 2);
    train_plainly(&plain, device);
    train_by_replays(&replayed, device);
    train_together(&together, device);
    check_outcome(&plain, &host);
    check_outcome(&replayed, &host);
    check_outcome(&together, &host);
    free_outcome(&host);
    free_outcome(&plain);
    free_outcome(&replayed);
    free_outcome(&together);
    mock_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(step_captured_and_replayed_100_times_has_bits_of_100_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
