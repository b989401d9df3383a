/*
 * overflow.c - a step whose gradients overflow, as the loop sees it: what it has touched already is
 * put back, and it is reported.
 *
 * Must not know how an overflow is found (loss_scale.c, distributed.c).
 */
#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "model/model.h"
#include "step/distributed.h"
#include "train/trainer_internal.h"

co_status trainer_overflow_open(trainer *t)
{
    const co_store *store = t->job->model->store;

    if (!co_scaler_is_on(co_distributed_scaler(t->distributed)))
        return CO_OK;
    t->kept_buffer = co_calloc(store->n_buffer + 1, sizeof(*t->kept_buffer));
    return t->kept_buffer ? CO_OK : CO_E_NOMEM;
}

void trainer_overflow_keep(trainer *t)
{
    const co_store *store = t->job->model->store;

    if (t->kept_buffer)
        store->vector->copy(store->queue, t->kept_buffer, store->buffer, store->n_buffer);
}

bool trainer_overflow_forgive(trainer *t, co_result *part)
{
    if (!t->kept_buffer || isfinite(part->loss_sum))
        return false;
    memset(part, 0, sizeof(*part));
    co_distributed_note_overflow(t->distributed);
    return true;
}

void trainer_overflow_settle(trainer *t)
{
    const co_store *store = t->job->model->store;
    char line[128];

    if (!t->kept_buffer || !co_distributed_skipped(t->distributed))
        return;
    store->vector->copy(store->queue, store->buffer, t->kept_buffer, store->n_buffer);
    trainer_say(t, co_scaler_message(line, sizeof(line), co_distributed_scaler(t->distributed)));
}
