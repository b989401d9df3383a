/*
 * step.c - steps of a training on a simulated cluster: a strategy with its own code, forward and
 * backward passes as sleeps. Values of gradients are zeros; what a rank computes, a compressor
 * included, takes the time that is given to it and nothing more.
 */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "simulate/step.h"

#include "core/mem.h"
#include "plan/step.h"
#include "strategy/strategy.h"

#define STEP_WARM  2
#define STEP_COUNT 4 /* that are timed; of `local`, so many rounds */

typedef struct step_job {
    const simulate_job *of;
    co_plan_work work;
    co_choice choice;
    co_strategy *strategy;
    co_store *store;
    co_prediction predicted;
} step_job;

/* Steps after which ranks exchange something. */
static double step_round(const step_job *job)
{
    return job->choice.kind == CO_CHOICE_LOCAL ? job->choice.period : 1;
}

static co_status step_one(const step_job *job, uint64_t step)
{
    const co_plan_work *w = &job->work;
    const co_strategy_step about = {step, 1, (uint64_t)job->of->size};
    size_t begin = 0;

    CO_TRY(simulate_compute(job->of->comm, w->forward));
    for (size_t i = 0; i < w->n_segment; i++) {
        CO_TRY(simulate_compute(job->of->comm, w->segment[i].seconds));
        if (w->segment[i].end > begin)
            CO_TRY(co_strategy_grad_ready(job->strategy, begin, w->segment[i].end));
        begin = w->segment[i].end;
    }
    CO_TRY(co_strategy_before_update(job->strategy, &about));
    return co_strategy_after_update(job->strategy, &about);
}

static co_status step_run(const step_job *job)
{
    const uint64_t round = (uint64_t)step_round(job);
    const uint64_t warm = STEP_WARM * round, all = warm + STEP_COUNT * round;
    double begin = 0, took, most;

    CO_TRY(co_strategy_start(job->strategy));
    (void)simulate_meet();
    for (uint64_t i = 0; i < all; i++) {
        if (i == warm)
            begin = simulate_now();
        CO_TRY(step_one(job, i));
    }
    took = (simulate_now() - begin) / (double)(all - warm);
    CO_TRY(co_strategy_finish(job->strategy));
    MPI_Allreduce(&took, &most, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (job->of->rank == 0) {
        printf("%s %d %.0f %.2f %.2f\n", job->choice.title, job->of->size, 4 * (double)job->work.n,
               job->predicted.step * 1e6, most * 1e6);
        fflush(stdout);
    }
    return CO_OK;
}

static co_status step_predict(step_job *job, const co_value *strategy, const char *text)
{
    co_cluster cluster = job->of->cluster;
    const co_cluster_compute *c = &cluster.compute;

    if (!cluster.compute_value || !(c->weights > 0))
        return co_fail(CO_E_USAGE, "steps need a cluster file with `compute` and its weights");
    cluster.variation = 0; /* simulated ranks are all alike */
    job->work =
        (co_plan_work){.n = (size_t)c->weights, .threads = 1, .accumulate = 1, .readers = 1};
    CO_TRY(co_work_assume(&job->work, c->samples_per_second, (double)c->batch, c->backward));
    CO_TRY(co_choice_read(&job->choice, strategy));
    job->choice.title = text;
    if (!co_plan_predict(&job->predicted, &cluster, &job->work, &job->choice, job->of->size,
                         (double)c->batch))
        return co_fail(CO_E_USAGE, "%s needs memory that all ranks share", text);
    simulate.poll = job->predicted.step * step_round(job) / 1000;
    return CO_OK;
}

static co_status step_open(step_job *job, co_config *config, const char *text)
{
    const co_value *strategy = co_value_get(co_config_root(config), "strategy");

    CO_TRY(step_predict(job, strategy, text));
    CO_TRY(co_store_create(&job->store, job->work.n, 0));
    CO_TRY(co_strategy_create(&job->strategy, strategy, config, job->of->comm, job->store, NULL));
    return step_run(job);
}

co_status simulate_step(const simulate_job *of, const char *path)
{
    const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    step_job job = {.of = of};
    co_config *config = NULL;
    co_status st;

    CO_TRY(co_config_load(&config, path));
    st = step_open(&job, config, name);
    co_strategy_destroy(job.strategy);
    co_store_destroy(job.store);
    co_work_fini(&job.work);
    co_config_destroy(config);
    return st;
}
