/*
 * trainer_together.c - several steps in one launch on a device, where a step would take it hardly
 * longer than the host takes to launch it.
 *
 * Only where the samples are in its memory: then a step needs nothing of the host but numbers.
 * Steps after which the host looks at the weights or the gradient end a launch; what does not fill
 * one is given step by step.
 */
#include "comm/tree.h"
#include "control/session.h"
#include "core/log.h"
#include "step/distributed.h"
#include "step/ema.h"
#include "train/trainer_internal.h"

#define TOGETHER_AUTO 8 /* most steps, if the config does not say how many */
#define TOGETHER_SMALL                                                                             \
    4e9 /* operations of a rank in a step of a small network: a launch for each                    \
           would be much of the time that these take */

_Static_assert(CO_RUN_DEVICE_STEPS <= TRAINER_TOGETHER, "there are places for them");

/* ---- how many ---- */

/* Why each step is launched by itself; NULL: it need not be. The same on all ranks. */
static const char *together_hindered(const trainer *t)
{
    return !t->train.images         ? "batches are read on the host"
           : !trainer_can_replay(t) ? "steps are not given as graphs"
           : t->job->on_step        ? "the program looks at the model after each"
           : co_session_commits_steps(t->job->session)
               ? "ranks keep the state after each, for a restart"
               : NULL;
}

/* Of this rank in the first step of an epoch; 0 where it has no sample then. */
static co_status together_operations(double *out, trainer *t)
{
    const co_tree *tree = t->train.tree;
    const int rank = co_comm_rank(t->comm), first = tree ? co_tree_first(tree, rank) : rank;
    const int end = tree ? co_tree_first(tree, rank + 1) : rank + 1;
    const co_roof unknown = {0};
    uint64_t samples = 0, part;
    co_plan *plan = NULL;

    *out = 0;
    for (int p = first; p < end; p++)
        samples += co_sampler_local(t->train.sampler, 0, p);
    part = co_sampler_local(t->train.sampler, 0, first) / (uint64_t)t->job->spec.accumulate;
    if (part == 0)
        return CO_OK;
    CO_TRY(co_model_plan(&plan, t->job->model, part, true));
    trainer_add_work(out, NULL, plan, &unknown);
    *out *= (double)samples;
    return CO_OK;
}

/* The most that fill the steps between two events, after which the host looks at the gradient. */
static co_status together_auto(uint64_t *out, trainer *t)
{
    const uint64_t every = (uint64_t)t->job->spec.log_every;
    double operations = 0;
    uint64_t n = TOGETHER_AUTO;

    CO_TRY(together_operations(&operations, t));
    CO_TRY(co_comm_allreduce(t->comm, &operations, &operations, 1, CO_F64, CO_MAX));
    while (every % n != 0)
        n--;
    *out = operations < TOGETHER_SMALL ? n : 1;
    return CO_OK;
}

co_status trainer_choose_together(trainer *t)
{
    const uint64_t wanted = (uint64_t)t->job->spec.device.steps_per_launch;
    const char *why;

    t->together = 1;
    if (!t->job->model->store->device || wanted == 1)
        return CO_OK;
    why = together_hindered(t);
    if (why && wanted && co_comm_rank(t->comm) == 0 && !t->job->quiet)
        co_log(CO_LOG_INFO, "device: steps_per_launch: one step in a launch: %s", why);
    if (why)
        return CO_OK;
    if (!wanted)
        return together_auto(&t->together, t);
    t->together = wanted;
    return CO_OK;
}

/* Whether the host needs what is on the device after a step, before the next begins. */
static bool together_ends(const trainer *t, uint64_t step)
{
    return step % (uint64_t)t->job->spec.log_every == 0 || co_saver_is_due(t->saver, step);
}

uint64_t trainer_next_together(const trainer *t)
{
    const uint64_t n = t->together, at = t->given % t->info.steps_per_epoch;
    uint64_t number;

    if (n <= 1 || at + n > t->info.steps_per_epoch || t->given + n > t->until)
        return 1;
    number = trainer_work_number(t, at, 1);
    for (uint64_t i = 1; i < n; i++)
        if (together_ends(t, t->given + i) || trainer_work_number(t, at + i, 1) != number)
            return 1;
    return n;
}

/* ---- giving them ---- */

static trainer_given *together_step(trainer *t, uint64_t i)
{
    return &t->in_flight[(t->given + i) % CO_MODEL_LATE_STEPS];
}

/* What the next one overwrites, the host gets from here. */
static co_status together_leave(const trainer *t, const trainer_given *g)
{
    return g->place == g->last
               ? CO_OK
               : co_values_late_copy(&t->replay.found[g->place], t->job->model->store);
}

/* All steps of a launch, with the values that the host has kept for them. */
static co_status together_work(void *arg)
{
    trainer *t = arg;
    const trainer_given *first = together_step(t, 0);
    const uint64_t n = (uint64_t)first->together;

    CO_TRY(co_values_bring(t->job->model->store, first->place, (int)n));
    for (uint64_t i = 0; i < n; i++) {
        t->now = together_step(t, i);
        CO_TRY(co_distributed_use(t->distributed, t->now->place));
        CO_TRY(trainer_work(t));
        CO_TRY(together_leave(t, t->now));
    }
    return CO_OK;
}

/* The host's part of all of them. */
static void together_foresee(trainer *t, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        trainer_given *g = together_step(t, i);

        if (t->ema)
            co_ema_begin(t->ema, t->job->model->store, t->given + i + 1);
        co_distributed_foresee(t->distributed, &g->batch, i, g->place);
        g->meet = true; /* what repeats keeps replicas in sync */
    }
    if ((t->given + n) % (uint64_t)t->job->spec.log_every == 0)
        co_distributed_want_norm(t->distributed);
}

static co_status together_give_plainly(trainer *t, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        trainer_given *g = together_step(t, i);

        CO_TRY(trainer_give_plainly(t, g, t->given + i));
        CO_TRY(together_leave(t, g));
    }
    return CO_OK;
}

co_status trainer_give_together(trainer *t, uint64_t n)
{
    co_comm_give give = CO_GIVE_PLAINLY;
    trainer_capture *kept = NULL;

    CO_TRY(trainer_agree(&give, &kept, t, n));
    if (give == CO_GIVE_PLAINLY) {
        CO_TRY(together_give_plainly(t, n));
        trainer_note_given(t, kept);
        return CO_OK;
    }
    together_foresee(t, n);
    return trainer_replay_work(t, kept, give, n, together_work);
}
