/* run.h - events of an imaginary small run. */
#ifndef TESTS_TELEMETRY_RUN_H
#define TESTS_TELEMETRY_RUN_H

#include "telemetry/telemetry.h"

static const co_run_info run_info = {
    .model = "mnist-net",
    .strategy = "sync",
    .dataset = "mnist",
    .transport = "shm",
    .backend = "auto",
    .precision = "fp32",
    .ranks = 2,
    .parameter_count = 21840,
    .train_samples = 60000,
    .test_samples = 10000,
    .batch = 128,
    .steps_per_epoch = 469,
    .total_steps = 4690,
    .epochs = 10,
};

static inline co_event run_step(uint64_t step)
{
    return (co_event){.kind = CO_EVENT_STEP,
                      .epoch = step / 469,
                      .step = step,
                      .epoch_step = step % 469,
                      .wall_seconds = (double)step * 0.01,
                      .train_seconds = (double)step * 0.01,
                      .samples_per_second = 24310.4,
                      .recent = {.steps = step % 2 ? 0 : 2,
                                 .loss = 1.0 / (double)step,
                                 .accuracy = 0.75,
                                 .accuracy_top5 = -1,
                                 .samples_per_second = 20000,
                                 .read_samples_per_second = 20480,
                                 .read_bytes_per_second = 16056320},
                      .lr = 0.01,
                      .gradient_norm = 1.5,
                      .train_loss = 0.5124,
                      .train_accuracy = 0.8231,
                      .train_accuracy_top5 = -1,
                      .test_accuracy_top5 = -1};
}

static inline co_event run_epoch(uint64_t epoch, co_event_kind kind)
{
    co_event event = run_step((epoch + 1) * 469);

    event.kind = kind;
    event.epoch = epoch;
    event.has_test = true;
    event.test_loss = 0.401;
    event.test_accuracy = 0.8612;
    event.test_accuracy_top5 = 0.99;
    return event;
}

#endif
