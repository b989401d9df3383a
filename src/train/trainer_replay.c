/*
 * trainer_replay.c - steps on a device: their batches are copied there on a queue of their own, and
 * their work, if it is the same in each, is captured once for each size of batch and replayed.
 *
 * A step uses one of TRAINER_IN_FLIGHT places for its batch and its results, so there is a capture
 * for each of them. The first step of a size is given as it is: what the device makes when it is
 * first used cannot be part of a capture.
 */
#include <cohort/ext/comm.h>

#include "device/device.h"
#include "step/distributed.h"
#include "train/trainer_internal.h"

co_status trainer_open_replay(trainer *t)
{
    co_device *device = t->job->model->store->device;

    CO_TRY(co_queue_create(&t->replay.copies, device));
    return co_fence_create(&t->replay.copied, device);
}

static void replay_drop(trainer_capture *c)
{
    co_capture_destroy(c->capture);
    *c = (trainer_capture){0};
}

void trainer_close_replay(trainer *t)
{
    for (int i = 0; i < TRAINER_IN_FLIGHT * TRAINER_SIZES; i++)
        replay_drop(&t->replay.kept[i]);
    co_fence_destroy(t->replay.copied);
    co_queue_destroy(t->replay.copies);
}

co_status trainer_stage(trainer *t, const co_batch *batch)
{
    const uint64_t parts = trainer_parts(t);
    const int place = (int)(t->given % TRAINER_IN_FLIGHT);

    for (uint64_t k = 0; k < parts; k++) {
        const co_batch slice = trainer_part(t, batch, k);

        CO_TRY(co_model_stage(t->job->model, &slice, t->replay.copies, place, k));
    }
    CO_TRY(co_fence_record(t->replay.copied, t->replay.copies));
    return co_queue_follow(t->job->model->store->queue, t->replay.copied);
}

/* Whether the work of all steps with batches of one size is the same, and the device can keep it.
   Several ranks wait for each other on the host, and so does one over a transport that stages what
   is on a device; a profile is of single layers. */
static bool replay_is_possible(const trainer *t)
{
    const co_device *device = t->job->model->store->device;

    return device && device->ops->capture && t->job->spec.device.graphs && !t->profiler &&
           co_comm_size(t->comm) == 1 && (t->comm->ops->memory & 1U << CO_MEMORY_DEVICE) &&
           co_distributed_repeats(t->distributed);
}

static bool replay_is_current(const trainer_capture *c, const co_model *model)
{
    return c->moves == model->moves && c->freezes == model->freezes;
}

/* The capture for batches of `count` at the step's place; where there are more sizes than room, in
   place of another. */
static trainer_capture *replay_find(trainer *t, uint64_t count)
{
    trainer_capture *kept = &t->replay.kept[t->given % TRAINER_IN_FLIGHT * TRAINER_SIZES];

    for (int i = 0; i < TRAINER_SIZES; i++)
        if (kept[i].count == count || kept[i].count == 0)
            return &kept[i];
    return &kept[count % TRAINER_SIZES];
}

co_status trainer_give_work(trainer *t, uint64_t count, co_status (*work)(void *trainer))
{
    const co_model *model = t->job->model;
    co_queue *queue = model->store->queue;
    trainer_capture *c;

    if (count == 0 || !replay_is_possible(t))
        return work(t);
    c = replay_find(t, count);
    if (c->count != count || !replay_is_current(c, model)) {
        replay_drop(c);
        CO_TRY(work(t));
        *c = (trainer_capture){.count = count, .moves = model->moves, .freezes = model->freezes};
        return CO_OK;
    }
    if (c->capture)
        co_distributed_count_step(t->distributed);
    else
        CO_TRY(co_capture_create(&c->capture, queue, work, t));
    return co_capture_replay(c->capture, queue);
}
