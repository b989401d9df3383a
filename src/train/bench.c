/* bench.c - times training steps, without evaluation, sinks or files. */
#include <sys/resource.h>

#include "core/clock.h"
#include "core/sort.h"
#include "device/device.h"
#include "graph/work.h"
#include "train/trainer_internal.h"

/* `seconds`: of each round, sorted. */
static void bench_fill(co_bench_summary *out, const trainer *t, double *seconds)
{
    const int n = t->job->bench_rounds;
    const double steps = (double)t->job->bench_steps;
    const double pick[3] = {seconds[0], seconds[n / 2], seconds[n - 1]};
    double total = 0;

    for (int i = 0; i < n; i++)
        total += seconds[i];
    *out = (co_bench_summary){.ranks = t->info.ranks,
                              .rounds = n,
                              .batch = t->info.batch,
                              .steps = t->job->bench_steps,
                              .start_seconds = t->start_seconds};
    for (int i = 0; i < 3; i++) {
        out->step_ms[i] = pick[i] / steps * 1e3;
        out->samples_per_second[2 - i] = (double)t->info.batch * steps / pick[i];
    }
    out->data_wait_share = co_loader_wait_seconds(t->train.loader) / total;
}

static co_status bench_round(double *seconds, trainer *t, uint64_t steps)
{
    uint64_t start = co_clock_ns();

    t->until = t->given + steps;
    while (t->given < t->until)
        CO_TRY(trainer_step(t));
    CO_TRY(trainer_settle(t));
    CO_TRY(co_comm_barrier(t->comm)); /* a round ends when all ranks have made its steps */
    *seconds = co_clock_seconds(start, co_clock_ns());
    return CO_OK;
}

/* Peak memory of the host and of the device, each of the rank that used most. */
static co_status bench_peak(uint64_t bytes[2], const trainer *t)
{
    struct rusage use;
    double peak[2] = {0, (double)co_device_peak(t->job->device)};

    if (getrusage(RUSAGE_SELF, &use) == 0)
        peak[0] = (double)use.ru_maxrss * 1024;
    CO_TRY(co_comm_allreduce(t->comm, peak, peak, 2, CO_F64, CO_MAX));
    for (int i = 0; i < 2; i++)
        bytes[i] = (uint64_t)peak[i];
    return CO_OK;
}

void trainer_add_work(double *flops, double *seconds, const co_plan *plan, const co_roof *roof)
{
    const double batch = (double)co_plan_batch(plan);

    for (int s = 0; s < co_plan_step_count(plan); s++) {
        co_plan_step step;
        co_work work;

        co_plan_step_at(&step, plan, s);
        co_work_of(&work, &step);
        if (step.again)
            continue;
        work.flops *= step.times;
        *flops += work.flops / batch;
        if (roof->flops_per_second > 0)
            *seconds += co_roof_seconds(NULL, roof, work.flops, 0, work.factors) / batch;
    }
}

/* By the median round: the network's operations, and if it is asked for, what part they are of what
   the cores, or the GPU, can do, which all ranks measure. */
static co_status bench_flops(co_bench_summary *out, const trainer *t)
{
    const co_job *job = t->job;
    const int ranks = co_comm_size(t->comm);
    const double rate = out->samples_per_second[1];
    double flops = 0, seconds = 0;
    co_roof roof = {0};

    if (job->bench_utilization)
        CO_TRY(co_run_roof(&roof, job->device, co_spec_threads(&job->spec), ranks));
    if (job->model->last)
        trainer_add_work(&flops, &seconds, job->model->last, &roof);
    out->model_flops_per_second = flops * rate;
    out->model_flops_utilization = seconds * rate / ranks;
    return CO_OK;
}

co_status co_trainer_bench(co_comm *comm, co_job *job)
{
    trainer t = {.comm = comm, .job = job};
    double seconds[CO_BENCH_MAX_ROUNDS], warmup;
    co_bench_summary summary;
    uint64_t peak[2] = {0};
    co_status st = trainer_open(&t);

    if (st == CO_OK)
        st = trainer_choose_kernels(&t);
    if (st == CO_OK)
        st = bench_round(&warmup, &t, job->bench_warmup);
    for (int i = 0; i < job->bench_rounds && st == CO_OK; i++)
        st = bench_round(&seconds[i], &t, job->bench_steps);
    if (st == CO_OK)
        st = bench_peak(peak, &t);
    if (st == CO_OK) {
        co_sort_doubles(seconds, (size_t)job->bench_rounds);
        bench_fill(&summary, &t, seconds);
        summary.peak_memory_bytes = peak[0];
        summary.peak_device_memory_bytes = peak[1];
        st = bench_flops(&summary, &t);
    }
    if (st == CO_OK && co_comm_rank(comm) == 0)
        job->result->bench = summary;
    if (st == CO_OK)
        st = co_distributed_finish(t.distributed);
    trainer_close(&t);
    return st;
}
