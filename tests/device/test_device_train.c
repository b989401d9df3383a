/*
 * test_device_train.c - whole trainings on a device other than the host end with the bits of the
 * same run on the host, also when split in two by a checkpoint.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cohort.h>

#include "backends/backends.h"
#include "data/data.h"
#include "device/mock.h"
#include "device/mock_backend.h"
#include "folder.h"
#include "train/resume.h"
#include "train/rundir.h"
#include "train/trainer.h"

/* Together they cover dropout, batch norm, clipping by norm and by value, a moving average of
   weights, micro-batches, a dynamic loss scale that overflows in the first steps, and a short last
   batch. */
static const char mnist_net[] =
    "model: {name: mnist-net, batch_norm: true}\n"
    "data: {name: synthetic, shape: [1, 28, 28], classes: 10, samples: 44}\n"
    "batch: 12\n"
    "accumulate: 2\n"
    "epochs: 2\n"
    "backend: ref\n"
    "optimizer: {name: sgd, lr: 0.05, momentum: 0.9, weight_decay: 0.001}\n"
    "schedule: {name: step, every: 3, gamma: 0.5, unit: step}\n"
    "clip: {norm: 0.5}\n"
    "ema: {decay: 0.9}\n"
    "precision: {level: O1, dtype: fp16, loss_scale: dynamic, loss_scale_window: 1}\n"
    "checkpoint: {every: 3 steps}\n"
    "threads: 1\n";

static const char resnet9[] =
    "model: resnet9\n"
    "data: {name: synthetic, shape: [3, 32, 32], classes: 10, samples: 10}\n"
    "batch: 4\n"
    "epochs: 1\n"
    "backend: ref\n"
    "optimizer: {name: adam, lr: 0.002}\n"
    "clip: {value: 0.01}\n"
    "checkpoint: {every: 2 steps}\n"
    "threads: 1\n";

/* One run, prepared as by the launcher and executed as by a rank. */
typedef struct run {
    const char *config;
    const char *name;  /* of its folder */
    const char *limit; /* "max_steps=4", or NULL */
    bool resume;
    co_device *device; /* NULL: the host */
    co_job_result result;
} run;

static void open_job(co_job *job, const run *r)
{
    const char *const set[] = {r->limit, NULL};
    const co_train_options options = {.config_text = r->config, .set = r->limit ? set : NULL};
    co_spec *spec = &job->spec;
    co_model_options model = {.classes = 10};
    co_distributed_values update;
    co_model_values values;

    if (co_spec_load(spec, &options) != CO_OK)
        fail_msg("%s", co_error_message());
    update = co_spec_update(spec);
    assert_int_equal(co_distributed_check(&job->needs, &job->common, &job->in_step, &update),
                     CO_OK);
    assert_int_equal(co_dataset_open_value(&job->train, spec->data, spec->config, CO_SPLIT_TRAIN),
                     CO_OK);
    assert_int_equal(co_dataset_open_value(&job->test, spec->data, spec->config, CO_SPLIT_TEST),
                     CO_OK);
    model.backend = spec->backend;
    model.seed = (uint64_t)spec->seed;
    model.sample = *co_dataset_shape(job->train);
    values = (co_model_values){spec->model, spec->layers, spec->loss, spec->precision_value,
                               spec->config};
    assert_int_equal(co_model_create_from(&job->model, &values, &model), CO_OK);
}

static void close_job(co_job *job)
{
    co_rundir_unlock(job->lock);
    co_model_destroy(job->model);
    co_dataset_destroy(job->test);
    co_dataset_destroy(job->train);
    co_spec_unload(&job->spec);
}

static co_status enter(co_state **state, co_job *job)
{
    co_train_summary *train = &job->result->train;
    co_resume_kind kind;

    if (!job->resume)
        return co_rundir_create(&job->lock, train->run_dir, sizeof(train->run_dir), &job->spec);
    CO_TRY(co_rundir_lock(&job->lock, train->run_dir));
    CO_TRY(co_resume_find(&kind, state, train->run_dir, job));
    assert_int_equal(kind, CO_RESUME_STATE);
    job->state = *state;
    return co_resume_prepare(train->run_dir, job, *state);
}

static void make_run(run *r)
{
    static const co_backend *const host[] = {&co_backend_ref, NULL};
    co_job job = {.quiet = true, .lock = -1, .resume = r->resume, .result = &r->result};
    co_state *state = NULL;
    co_comm *comm = NULL;
    mock_backend backend;
    co_status st;

    open_job(&job, r);
    snprintf(r->result.train.run_dir, sizeof(r->result.train.run_dir), "%s", folder_path(r->name));
    mock_backend_init(&backend, host);
    assert_int_equal(co_comm_create_self(&comm), CO_OK);
    st = enter(&state, &job);
    if (st == CO_OK && r->device)
        st = co_model_move(job.model, r->device, backend.all);
    if (st == CO_OK)
        st = co_trainer_run(comm, &job);
    if (st != CO_OK)
        fail_msg("%s: %s", r->name, co_error_message());
    co_state_destroy(state);
    co_comm_destroy(comm);
    close_job(&job);
}

static void check_same(const run *got, const run *want)
{
    const co_train_summary *a = &got->result.train, *b = &want->result.train;

    assert_string_equal(a->weights_sha256, b->weights_sha256);
    assert_int_equal(a->steps, b->steps);
    assert_true(a->train_loss == b->train_loss && a->train_accuracy == b->train_accuracy);
    assert_true(a->test_loss == b->test_loss && a->test_accuracy == b->test_accuracy);
}

/* Runs on the host, on the device, and on the device with a checkpoint and a resume in the
   middle. */
static void check(const char *config, const char *half)
{
    run host = {.config = config, .name = "host"};
    run device = {.config = config, .name = "device"};
    run first = {.config = config, .name = "cut", .limit = half};
    run rest = {.config = config, .name = "cut", .resume = true};
    co_device *mock = NULL;

    if (mock_open(&mock, MOCK_KEYS) != CO_OK)
        assert_int_equal(mock_open(&mock, MOCK_TWICE), CO_OK);
    device.device = first.device = rest.device = mock;
    make_run(&host);
    make_run(&device);
    check_same(&device, &host);
    make_run(&first);
    assert_true(first.result.train.steps < host.result.train.steps);
    make_run(&rest);
    check_same(&rest, &host);
    mock_close(mock);
}

static void device_train_mnist_net_gives_the_bits_of_the_host(void **state)
{
    (void)state;
    check(mnist_net, "max_steps=5");
}

static void device_train_resnet9_gives_the_bits_of_the_host(void **state)
{
    (void)state;
    check(resnet9, "max_steps=2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(device_train_mnist_net_gives_the_bits_of_the_host,
                                        folder_make, folder_remove),
        cmocka_unit_test_setup_teardown(device_train_resnet9_gives_the_bits_of_the_host,
                                        folder_make, folder_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
