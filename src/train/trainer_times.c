/* trainer_times.c - where the time of each rank went, and how a run ended that has failed. */
#include <stdio.h>

#include "comm/watch.h"
#include "core/clock.h"
#include "core/process.h"
#include "core/status.h"
#include "data/data.h"
#include "step/distributed.h"
#include "train/trainer_internal.h"

_Static_assert(sizeof(co_rank_times) % sizeof(double) == 0, "doubles alone");

void trainer_set_times(co_rank_times *out, const trainer *t)
{
    const double steps = (double)t->step_ns * 1e-9, wait = (double)t->waited_ns * 1e-9;
    const double sync = (double)co_distributed_sync_ns(t->distributed) * 1e-9;
    const co_loader_times read = co_loader_times_so_far(t->train.loader);

    *out = (co_rank_times){.wall = co_clock_seconds(t->job->start_ns, co_clock_ns()),
                           .data = co_loader_wait_seconds(t->train.loader),
                           .exchange = sync > wait ? sync - wait : 0,
                           .wait = wait < steps ? wait : steps,
                           .evaluation = (double)t->evaluate_ns * 1e-9,
                           .checkpoint = (double)t->checkpoint_ns * 1e-9,
                           .update = (double)co_distributed_update_ns(t->distributed) * 1e-9,
                           .read = read.busy,
                           .read_core = read.core,
                           .read_delayed = read.delayed,
                           .samples = t->local_samples};
    out->start = t->begun_ns ? co_clock_seconds(t->job->start_ns, t->begun_ns) : out->wall;
    out->compute = steps > out->exchange + out->wait ? steps - out->exchange - out->wait : 0;
    (void)co_process_times(&out->core, &out->delayed, 0);
}

co_status trainer_gather_times(trainer *t)
{
    co_rank_times own;

    trainer_set_times(&own, t);
    return co_comm_gather(t->comm, t->times, &own, sizeof(own) / sizeof(double), CO_F64, 0);
}

void trainer_note_failure(trainer *t, co_status st)
{
    const co_event event = {
        .epoch = t->epoch, .step = t->step, .wall_seconds = trainer_wall_seconds(t)};
    char reason[CO_STATUS_MESSAGE];

    if (st == CO_OK || st == CO_E_INTERRUPTED || st == CO_E_TERMINATED)
        return;
    snprintf(reason, sizeof(reason), "%s", co_error_message());
    for (int i = 0; i < t->n_sink; i++)
        if (t->sink[i]->ops->failed)
            (void)t->sink[i]->ops->failed(t->sink[i], &event, reason);
    (void)co_fail(st, "%s", reason); /* what the caller reports */
}
