/*
 * trainer_replay.c - steps on a device: their batches are copied there on a queue of their own, and
 * their work, if it is the same in each, is captured once for each size of batch and replayed.
 *
 * A step uses one of TRAINER_IN_FLIGHT places for its batch and its results, so there is a capture
 * for each of them. The first step of a size is given as it is: what the device makes when it is
 * first used cannot be part of a capture.
 */
#include <cohort/data.h>
#include <cohort/ext/comm.h>

#include "comm/tree.h"
#include "core/hash.h"
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
    co_comm_captured_destroy(c->captured);
    *c = (trainer_capture){0};
}

void trainer_drop_captures(trainer *t)
{
    for (int i = 0; i < TRAINER_IN_FLIGHT * TRAINER_SIZES; i++)
        replay_drop(&t->replay.kept[i]);
}

void trainer_close_replay(trainer *t)
{
    co_fence_destroy(t->replay.copied);
    co_queue_destroy(t->replay.copies);
}

co_status trainer_stage(trainer *t, const co_batch *batch)
{
    const uint64_t parts = trainer_parts(t);
    const int place = (int)(t->given % TRAINER_IN_FLIGHT);

    for (uint64_t k = 0; k < parts; k++) {
        const co_batch slice = trainer_part(t, batch, k);

        CO_TRY(co_model_stage(t->job->model, &slice, t->train.images, t->replay.copies, place, k));
    }
    CO_TRY(co_fence_record(t->replay.copied, t->replay.copies));
    return co_queue_follow(t->job->model->store->queue, t->replay.copied);
}

/* Whether the work of all steps with batches of one size is the same, and the device can keep it;
   on all ranks, or on none. Ranks that exchange through the host wait for each other there; a
   profile is of single layers. */
static bool replay_is_possible(const trainer *t)
{
    const co_device *device = t->job->model->store->device;

    return device && device->ops->capture && t->job->spec.device.graphs && !t->profiler &&
           co_comm_captures(t->comm) && co_distributed_repeats(t->distributed);
}

/* The same for batches that all ranks, or shards, divide in the same way. */
static uint64_t replay_batch(const trainer *t, const co_batch *batch)
{
    const int parts = t->shards.tree ? t->shards.tree->leaves : co_comm_size(t->comm);
    uint64_t hash = co_hash(CO_HASH, &batch->global, sizeof(batch->global));

    for (int p = 0; p < parts; p++) {
        const uint64_t local = co_sampler_local(t->train.sampler, batch->step, p);

        hash = co_hash(hash, &local, sizeof(local));
    }
    return hash;
}

static bool replay_is_current(const trainer_capture *c, const co_model *model)
{
    return c->moves == model->moves && c->freezes == model->freezes &&
           (!c->captured || co_comm_captured_is_current(c->captured));
}

/* The capture for such batches at the step's place; where there are more than room, in place of
   another. */
static trainer_capture *replay_find(trainer *t, uint64_t batch)
{
    trainer_capture *kept = &t->replay.kept[t->given % TRAINER_IN_FLIGHT * TRAINER_SIZES];

    for (int i = 0; i < TRAINER_SIZES; i++)
        if (!kept[i].given || kept[i].batch == batch)
            return &kept[i];
    return &kept[batch % TRAINER_SIZES];
}

/* The work as it is, which a later step can capture: on this rank, now or before. */
static co_status replay_give_plainly(trainer *t, trainer_capture *c, uint64_t batch,
                                     co_status (*work)(void *trainer))
{
    const co_model *model = t->job->model;

    replay_drop(c);
    CO_TRY(work(t));
    *c = (trainer_capture){
        .given = true, .batch = batch, .moves = model->moves, .freezes = model->freezes};
    return CO_OK;
}

co_status trainer_give_work(trainer *t, const co_batch *batch, co_status (*work)(void *trainer))
{
    co_queue *queue = t->job->model->store->queue;
    co_comm_give give = CO_GIVE_PLAINLY;
    uint64_t number;
    trainer_capture *c;

    if (!replay_is_possible(t))
        return work(t);
    number = replay_batch(t, batch);
    c = replay_find(t, number);
    if (c->given && c->batch == number && replay_is_current(c, t->job->model))
        give = c->captured ? CO_GIVE_REPLAY : CO_GIVE_CAPTURE;
    CO_TRY(co_comm_agree(&give, t->comm, t->given + 1, number,
                         give == CO_GIVE_REPLAY ? c->captured : NULL));
    if (give == CO_GIVE_PLAINLY)
        return replay_give_plainly(t, c, number, work);
    if (give == CO_GIVE_CAPTURE) {
        co_comm_captured_destroy(c->captured);
        c->captured = NULL;
        CO_TRY(co_comm_capture(&c->captured, t->comm, queue, work, t));
    } else {
        co_distributed_count_step(t->distributed);
    }
    return co_comm_replay(c->captured, queue);
}
