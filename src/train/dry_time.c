/* dry_time.c - a rank's part of a dry run: a few steps and a part of an evaluation, timed. */
#include <math.h>
#include <sys/resource.h>

#include "core/clock.h"
#include "step/distributed.h"
#include "train/trainer_internal.h"

/* At least so many steps and seconds, unless they take too long. */
#define DRY_STEPS              10
#define DRY_SECONDS            0.25
#define DRY_MAX_SECONDS        5.0
#define DRY_EVALUATION_SECONDS 2.0

/* One step, until all ranks have made it. */
static co_status dry_step(double *seconds, trainer *t)
{
    const uint64_t start = co_clock_ns();
    double own;

    CO_TRY(trainer_step(t));
    CO_TRY(trainer_settle(t));
    own = co_clock_seconds(start, co_clock_ns());
    return co_comm_allreduce(t->comm, seconds, &own, 1, CO_F64, CO_MAX);
}

static bool dry_is_enough(const co_dry_times *times, double total)
{
    if (times->steps == 0)
        return false;
    return (times->steps >= DRY_STEPS && total >= DRY_SECONDS) ||
           total + total / (double)times->steps > DRY_MAX_SECONDS;
}

/* The first step, which compiles, does not count. */
static co_status dry_steps(co_dry_times *out, trainer *t)
{
    double seconds, total = 0;

    CO_TRY(dry_step(&seconds, t));
    out->start_seconds = co_clock_seconds(t->job->start_ns, co_clock_ns());
    for (; !dry_is_enough(out, total); out->steps++) {
        CO_TRY(dry_step(&seconds, t));
        total += seconds;
        if (out->steps == 0 || seconds < out->min_seconds)
            out->min_seconds = seconds;
        if (seconds > out->max_seconds)
            out->max_seconds = seconds;
    }
    out->step_seconds = total / (double)out->steps;
    out->data_wait_share = co_loader_wait_seconds(t->train.loader) / (out->start_seconds + total);
    return CO_OK;
}

static co_status dry_evaluation(co_dry_times *out, trainer *t)
{
    double own;

    if (!t->job->test)
        return CO_OK;
    CO_TRY(
        co_trainer_time_evaluation(&own, t->comm, t->job->model, &t->test, DRY_EVALUATION_SECONDS));
    return co_comm_allreduce(t->comm, &out->evaluation_seconds, &own, 1, CO_F64, CO_MAX);
}

/* Resident memory of the rank that held most. */
static co_status dry_peak(co_dry_times *out, co_comm *comm)
{
    struct rusage use;
    double kib = 0;

    if (getrusage(RUSAGE_SELF, &use) == 0)
        kib = (double)use.ru_maxrss;
    CO_TRY(co_comm_allreduce(comm, &kib, &kib, 1, CO_F64, CO_MAX));
    out->peak_bytes = (uint64_t)kib << 10;
    return CO_OK;
}

static co_status dry_measure(co_dry_times *out, trainer *t)
{
    *out = (co_dry_times){.ranks = t->info.ranks,
                          .batch = t->info.batch,
                          .steps_per_epoch = t->info.steps_per_epoch,
                          .total_steps = t->info.total_steps};
    CO_TRY(trainer_choose_kernels(t));
    CO_TRY(dry_steps(out, t));
    CO_TRY(dry_evaluation(out, t));
    return dry_peak(out, t->comm);
}

co_status co_trainer_dry(co_comm *comm, co_job *job)
{
    trainer t = {.comm = comm, .job = job};
    co_dry_times times;
    co_status st = trainer_open(&t);

    if (st == CO_OK)
        st = dry_measure(&times, &t);
    if (st == CO_OK)
        st = co_distributed_finish(t.distributed);
    if (st == CO_OK && co_comm_rank(comm) == 0)
        job->result->dry = times;
    trainer_close(&t);
    return st;
}
