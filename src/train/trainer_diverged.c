/*
 * trainer_diverged.c - why a loss or a weight is not a number any more: a sample of the data has
 * such a value, or training has diverged.
 *
 * A value that is not finite ruins the weights in the step that reads it, but a ReLU may hide that
 * from the loss until the epoch ends. So the samples of this epoch are read once more, the latest
 * step first; those of earlier epochs have left finite weights.
 */
#include <math.h>

#include "core/clock.h"
#include "core/mem.h"
#include "data/data.h"
#include "train/trainer_internal.h"

#define DIVERGED_NAME  1024
#define DIVERGED_SHARE 4 /* part of the time that the other ranks wait for this one */

typedef struct diverged {
    const trainer *t;
    const char *what;    /* is not a number: "the loss is" */
    co_sampler *sampler; /* owned */
    int parts;           /* its ranks */
    uint32_t *sample;    /* owned; room for those of a step */
    float *value;        /* owned; room for a field of one */
} diverged;

/* Whether the network has this input, and its values are floats. */
static bool diverged_reads(const trainer *t, const co_field *field)
{
    return field->dtype == CO_F32 && co_graph_find_input(t->job->model->graph, field->name) >= 0;
}

static co_status diverged_check_field(const diverged *d, int k, uint64_t sample)
{
    const trainer *t = d->t;
    const co_field *field = &co_dataset_fields(t->job->train)[k];
    const co_augment_place place = {(uint64_t)t->job->spec.seed, t->epoch, sample};
    const size_t n = (size_t)co_shape_count(&field->shape);
    char name[DIVERGED_NAME];

    CO_TRY(co_dataset_draw_field(t->job->train, d->value, k, &place));
    for (size_t i = 0; i < n; i++) {
        if (isfinite(d->value[i]))
            continue;
        co_dataset_sample_name(t->job->train, name, sizeof(name), sample);
        return co_fail(CO_E_DATA,
                       "%s: value %zu of its field '%s' is %s, so %s not a number any more at step "
                       "%llu (epoch %llu); correct it, or leave the sample out",
                       name, i, field->name, isnan(d->value[i]) ? "nan" : "infinite", d->what,
                       (unsigned long long)t->step, (unsigned long long)t->epoch);
    }
    return CO_OK;
}

/* The samples of all ranks: their gradients have come to this one. */
static co_status diverged_check_step(const diverged *d, uint64_t step)
{
    const co_field *field = co_dataset_fields(d->t->job->train);

    for (int rank = 0; rank < d->parts; rank++) {
        const uint64_t n = co_sampler_local(d->sampler, step, rank);

        CO_TRY(co_sampler_indices(d->sampler, d->sample, d->t->epoch, step, rank));
        for (uint64_t i = 0; i < n; i++)
            for (int k = 0; k < CO_MAX_FIELDS && field[k].name; k++)
                if (diverged_reads(d->t, &field[k]))
                    CO_TRY(diverged_check_field(d, k, d->sample[i]));
    }
    return CO_OK;
}

static co_status diverged_check_epoch(const diverged *d)
{
    const trainer *t = d->t;
    const uint64_t steps = t->info.steps_per_epoch, start = co_clock_ns();
    uint64_t step = t->epoch_step < steps ? t->epoch_step + 1 : steps;

    while (step > 0 &&
           co_clock_seconds(start, co_clock_ns()) * DIVERGED_SHARE < (double)t->job->spec.timeout_s)
        CO_TRY(diverged_check_step(d, --step));
    return CO_OK;
}

/* CO_E_DATA names a value that is not finite; CO_OK: none was found. */
static co_status diverged_check_data(const trainer *t, const char *what)
{
    const co_job *job = t->job;
    const co_field *field = co_dataset_fields(job->train);
    const int ranks = co_comm_size(t->comm);
    diverged d = {.t = t, .what = what, .parts = job->spec.shards ? (int)job->spec.shards : ranks};
    size_t most = 0;
    co_status st;

    for (int k = 0; k < CO_MAX_FIELDS && field[k].name; k++) {
        const size_t n = (size_t)co_shape_count(&field[k].shape);

        most = diverged_reads(t, &field[k]) && n > most ? n : most;
    }
    if (co_dataset_has_images(job->train) || most == 0) /* bytes and tokens are finite */
        return CO_OK;
    CO_TRY(co_feed_sampler(&d.sampler, &job->spec, job->train, ranks, CO_SPLIT_TRAIN));
    d.sample = co_calloc(t->info.batch, sizeof(*d.sample));
    d.value = co_calloc(most, sizeof(*d.value));
    st = d.sample && d.value ? diverged_check_epoch(&d) : CO_E_NOMEM;
    co_free(d.sample);
    co_free(d.value);
    co_sampler_destroy(d.sampler);
    return st;
}

co_status trainer_diverged(const trainer *t, const char *what)
{
    if (diverged_check_data(t, what) == CO_E_DATA)
        return CO_E_DATA;
    return co_fail(CO_E_FAILED,
                   "%s not a number any more at step %llu (epoch %llu): training has diverged; "
                   "lower the learning rate, warm it up, or clip the gradients",
                   what, (unsigned long long)t->step, (unsigned long long)t->epoch);
}
