/* trainer_state.c - saves and restores the trainer's position in the run. */
#include "control/session.h"
#include "core/mem.h"
#include "launch/rank_notes.h"
#include "train/trainer_internal.h"

co_where trainer_where(const trainer *t)
{
    return (co_where){.step = t->step,
                      .epoch = t->epoch,
                      .samples = t->samples + t->epoch_samples,
                      .steps_per_epoch = t->info.steps_per_epoch,
                      .total_steps = t->info.total_steps,
                      .batch = t->info.batch};
}

static void state_tell(co_run_point *run, co_rank_point *own, const void *arg)
{
    const trainer *t = arg;

    *run = (co_run_point){
        .epoch = t->epoch,
        .epoch_step = t->epoch_step,
        .step = t->step,
        .samples = t->samples,
        .epoch_samples = t->epoch_samples,
        .batch = t->info.batch,
        .steps_per_epoch = t->info.steps_per_epoch,
        .train_seconds = t->train_seconds,
        .epoch_seconds = t->epoch_step ? trainer_epoch_seconds(t) : 0,
        .wall_seconds = trainer_wall_seconds(t),
        .spent = trainer_spent(t),
        .best = t->best,
        .last = t->last,
    };
    own->seen = t->seen;
    own->means = t->means;
    own->bad_samples = (uint64_t)trainer_bad_samples(t);
    own->recent = t->recent.spans;
    co_measures_save(own->metrics, &t->measures);
}

static co_status state_read_results(void *arg)
{
    return trainer_settle(arg);
}

void trainer_set_source(trainer *t)
{
    t->source = (co_state_source){.comm = t->comm,
                                  .store = t->job->model->store,
                                  .distributed = t->distributed,
                                  .ema = t->ema,
                                  .tell = state_tell,
                                  .settle = state_read_results,
                                  .arg = t};
}

co_status trainer_restore(trainer *t)
{
    const co_run_point *point = &t->job->state->point;
    co_rank_point own;

    CO_TRY(co_state_restore(&own, &t->source, t->job->state));
    t->epoch = point->epoch;
    t->epoch_step = point->epoch_step;
    t->step = t->given = t->first_step = point->step;
    t->samples = point->samples;
    t->epoch_samples = point->epoch_samples;
    t->train_seconds = point->train_seconds;
    t->epoch_seconds = point->epoch_seconds;
    t->earlier_seconds = point->wall_seconds;
    t->earlier = point->spent;
    t->best = point->best;
    co_best_resume(&t->best, &t->job->spec.stop);
    t->last = point->last;
    t->last.rank = NULL;
    t->last.times = NULL;
    t->seen = own.seen;
    t->means = own.means;
    t->bad_before = -(int64_t)own.bad_samples;
    t->recent.spans = own.recent;
    co_measures_restore(&t->measures, own.metrics);
    return CO_OK;
}

co_status trainer_open_saver(trainer *t)
{
    co_job *job = t->job;
    co_state_shape shape;
    co_saver_options options = {.policy = &job->spec.saver,
                                .source = &t->source,
                                .snapshot = co_session_snapshot(job->session),
                                .shape = &shape,
                                .run_dir = job->result->train.run_dir,
                                .run = &t->described,
                                .counts = &job->result->saver};

    if (options.policy->unit != CO_SAVER_OFF && co_comm_rank(t->comm) == 0) {
        CO_TRY(co_job_describe(&t->described, job));
        if (!options.snapshot)
            CO_TRY(co_job_state_shape(&shape, job, co_comm_size(t->comm)));
    }
    CO_TRY(co_saver_create(&t->saver, &options));
    t->control.options.saver = t->saver;
    return CO_OK;
}

co_status trainer_open_requests(trainer *t)
{
    const co_job *job = t->job;
    const co_where where = trainer_where(t);
    const co_mpi_requests_options options = {.comm = t->comm,
                                             .listener = job->listener,
                                             .run_dir = job->result->train.run_dir,
                                             .restarts = job->restart ? job->restart->count : 0,
                                             .start_ns = job->start_ns};

    return job->listener ? co_mpi_requests_open(&t->control.options.requests, &options, &where)
                         : CO_OK;
}
