/*
 * trainer_diverged.c - why a loss or a weight is not a number any more: a sample of the data has
 * such a value, or training has diverged.
 *
 * A value that is not finite ruins the weights in the step that reads it, but a ReLU may hide that
 * from the loss until the epoch ends. So the samples of this epoch are read once more, the latest
 * step first; those of earlier epochs have left finite weights.
 */
#include <stdio.h>

#include "core/clock.h"
#include "core/mem.h"
#include "data/data.h"
#include "train/finite.h"
#include "train/trainer_internal.h"

#define DIVERGED_REASON 128

typedef struct diverged {
    const trainer *t;
    co_finite data;      /* owned */
    co_sampler *sampler; /* owned */
    int parts;           /* its ranks */
    uint32_t *sample;    /* owned; room for those of a step */
    char so[DIVERGED_REASON];
} diverged;

/* The samples of all ranks: their gradients have come to this one. */
static co_status diverged_check_step(const diverged *d, uint64_t step)
{
    const trainer *t = d->t;

    for (int rank = 0; rank < d->parts; rank++) {
        const uint64_t n = co_sampler_local(d->sampler, step, rank);

        CO_TRY(co_sampler_indices(d->sampler, d->sample, t->epoch, step, rank));
        for (uint64_t i = 0; i < n; i++) {
            const co_augment_place place = {(uint64_t)t->job->spec.seed, t->epoch, d->sample[i]};

            CO_TRY(co_finite_check(&d->data, d->sample[i], &place, d->so));
        }
    }
    return CO_OK;
}

static co_status diverged_check_epoch(const diverged *d)
{
    const trainer *t = d->t;
    const uint64_t steps = t->info.steps_per_epoch, start = co_clock_ns();
    uint64_t step = t->epoch_step < steps ? t->epoch_step + 1 : steps;

    while (step > 0 && co_clock_seconds(start, co_clock_ns()) < co_finite_seconds(&t->job->spec))
        CO_TRY(diverged_check_step(d, --step));
    return CO_OK;
}

/* CO_E_DATA names a value that is not finite; CO_OK: none was found. */
static co_status diverged_check_data(const trainer *t, const char *what)
{
    const co_job *job = t->job;
    const int ranks = co_comm_size(t->comm);
    diverged d = {.t = t, .parts = job->spec.shards ? (int)job->spec.shards : ranks};
    co_status st = co_finite_open(&d.data, job->train, job->model->graph);

    snprintf(d.so, sizeof(d.so), "%s not a number any more at step %llu (epoch %llu)", what,
             (unsigned long long)t->step, (unsigned long long)t->epoch + 1);
    if (st == CO_OK && d.data.value)
        st = co_feed_sampler(&d.sampler, &job->spec, job->train, ranks, CO_SPLIT_TRAIN);
    if (d.sampler) {
        d.sample = co_calloc(t->info.batch, sizeof(*d.sample));
        st = d.sample ? diverged_check_epoch(&d) : CO_E_NOMEM;
    }
    co_free(d.sample);
    co_sampler_destroy(d.sampler);
    co_finite_close(&d.data);
    return st;
}

co_status trainer_diverged(const trainer *t, const char *what)
{
    if (diverged_check_data(t, what) == CO_E_DATA)
        return CO_E_DATA;
    return co_fail(CO_E_FAILED,
                   "%s not a number any more at step %llu (epoch %llu): training has diverged; "
                   "lower the learning rate, warm it up, or clip the gradients",
                   what, (unsigned long long)t->step, (unsigned long long)t->epoch + 1);
}
