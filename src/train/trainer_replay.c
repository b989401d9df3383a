/*
 * trainer_replay.c - steps on a device: their batches are copied there on a queue of their own, and
 * their work, if it is the same in each, is captured once for each size of batch and replayed.
 *
 * A launch of one or more steps has one half of the places for batches and results, so there is a
 * capture for each of the two. The first time it is given as it is: what the device makes when it
 * is first used cannot be part of a capture.
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
    for (int i = 0; i < TRAINER_HALVES * TRAINER_SIZES; i++)
        replay_drop(&t->replay.kept[i]);
}

void trainer_close_replay(trainer *t)
{
    co_fence_destroy(t->replay.copied);
    co_queue_destroy(t->replay.copies);
}

co_status trainer_stage(trainer *t, const trainer_given *given)
{
    const uint64_t parts = trainer_parts(t);

    for (uint64_t k = 0; k < parts; k++) {
        const co_batch slice = trainer_part(t, &given->batch, k);

        CO_TRY(co_model_stage(t->job->model, &slice, t->train.images, t->replay.copies,
                              given->place, k));
    }
    if (given->place != given->last)
        return CO_OK;
    CO_TRY(co_fence_record(t->replay.copied, t->replay.copies));
    return co_queue_follow(t->job->model->store->queue, t->replay.copied);
}

/* Ranks that exchange through the host wait for each other there; a profile is of single layers. */
bool trainer_can_replay(const trainer *t)
{
    const co_device *device = t->job->model->store->device;

    return device && device->ops->capture && t->job->spec.device.graphs && !t->profiler &&
           co_comm_captures(t->comm) && co_distributed_repeats(t->distributed);
}

/* The same for batches that all ranks, or shards, divide in the same way. */
uint64_t trainer_work_number(const trainer *t, uint64_t epoch_step, uint64_t n)
{
    const int parts = t->shards.tree ? t->shards.tree->leaves : co_comm_size(t->comm);
    const uint64_t global = co_sampler_global(t->train.sampler, epoch_step);
    uint64_t hash = co_hash(CO_HASH, &global, sizeof(global));

    for (int p = 0; p < parts; p++) {
        const uint64_t local = co_sampler_local(t->train.sampler, epoch_step, p);

        hash = co_hash(hash, &local, sizeof(local));
    }
    return n == 1 ? hash : co_hash(hash, &n, sizeof(n));
}

static bool replay_is_current(const trainer_capture *c, const co_model *model)
{
    return c->moves == model->moves && c->freezes == model->freezes &&
           (!c->captured || co_comm_captured_is_current(c->captured));
}

/* The capture with this number at the places of the launch; where there are more than room, in
   place of another, which is dropped. */
static trainer_capture *replay_find(trainer *t, uint64_t number)
{
    trainer_capture *kept = &t->replay.kept[t->replay.half * TRAINER_SIZES], *other;

    for (int i = 0; i < TRAINER_SIZES; i++)
        if (!kept[i].given || kept[i].batch == number)
            return &kept[i];
    other = &kept[number % TRAINER_SIZES];
    replay_drop(other);
    return other;
}

co_status trainer_agree(co_comm_give *give, trainer_capture **kept, trainer *t, uint64_t n)
{
    const co_batch *first = &t->in_flight[t->given % CO_MODEL_LATE_STEPS].batch;
    const uint64_t number = trainer_work_number(t, first->step, n);
    trainer_capture *c = replay_find(t, number);

    *give = CO_GIVE_PLAINLY;
    if (c->given && replay_is_current(c, t->job->model))
        *give = c->captured ? CO_GIVE_REPLAY : CO_GIVE_CAPTURE;
    CO_TRY(co_comm_agree(give, t->comm, t->given + 1, number,
                         *give == CO_GIVE_REPLAY ? c->captured : NULL));
    if (*give == CO_GIVE_PLAINLY)
        replay_drop(c);
    c->batch = number;
    *kept = c;
    return CO_OK;
}

void trainer_note_given(const trainer *t, trainer_capture *kept)
{
    kept->given = true;
    kept->moves = t->job->model->moves;
    kept->freezes = t->job->model->freezes;
}

co_status trainer_replay_work(trainer *t, trainer_capture *kept, co_comm_give give, uint64_t n,
                              co_status (*work)(void *trainer))
{
    co_queue *queue = t->job->model->store->queue;

    if (give == CO_GIVE_CAPTURE) {
        co_comm_captured_destroy(kept->captured);
        kept->captured = NULL;
        CO_TRY(co_comm_capture(&kept->captured, t->comm, queue, work, t));
    } else {
        for (uint64_t i = 0; i < n; i++)
            co_distributed_count_step(t->distributed);
    }
    return co_comm_replay(kept->captured, queue);
}
