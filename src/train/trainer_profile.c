/* trainer_profile.c - the profiler of a run: created with the trainer, written at its end. */
#include "core/mem.h"
#include "data/data.h"
#include "profile/write.h"
#include "train/trainer_internal.h"

co_status trainer_profile_open(trainer *t)
{
    const co_job *job = t->job;
    const int ranks = co_comm_size(t->comm);
    co_profiler_options options = {.skip = job->profile_skip,
                                   .steps = job->profile_steps,
                                   .ranks = ranks,
                                   .queue = job->model->store->queue};

    if (!job->profile_steps)
        return CO_OK;
    options.readers = t->train.readers;
    CO_TRY(co_run_roof(&t->roof, job->device, co_spec_threads(&job->spec), ranks));
    CO_TRY(co_profiler_create(&t->profiler, &options));
    co_profiler_watch_comm(t->profiler, t->comm);
    co_profiler_watch_loader(t->profiler, t->train.loader);
    job->model->profiler = t->profiler;
    return CO_OK;
}

co_status trainer_profile_write(trainer *t)
{
    const co_profile_job write = {.profiler = t->profiler,
                                  .comm = t->comm,
                                  .roof = &t->roof,
                                  .info = &t->info,
                                  .run_dir = t->job->result->train.run_dir,
                                  .cut = t->stop_reason == CO_STOP_NONE &&
                                         t->step < t->info.total_steps,
                                  .table = t->job->quiet ? NULL : stdout};

    return t->profiler ? co_profile_write(&write) : CO_OK;
}

void trainer_profile_close(trainer *t)
{
    if (t->profiler)
        t->job->model->profiler = NULL;
    co_profiler_destroy(t->profiler);
    t->profiler = NULL;
}
