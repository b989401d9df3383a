/*
 * hogwild.c - ranks update the same weights at any time (Recht et al., "Hogwild!", NIPS 2011).
 *
 * Each rank goes through its own samples, computes the mean gradient over its part of a batch with
 * the weights as they are, and updates the weights that all share. Ranks wait for each other only
 * at the end of an epoch, where results are added up, and at the end of the run.
 *
 * The race: store->param is memory that all ranks read in forward and backward and write in
 * co_optim_update, without locks or atomics. The race is on each weight separately. On the machines
 * that we support an aligned float is read and written whole, so a rank sees a value that some rank
 * has written; between a rank's read and write of a weight, another rank's update may be lost. The
 * paper allows for that: steps are small, some are lost or use a slightly old gradient, and the
 * descent continues. Nothing else is shared, and no address or size depends on a weight, so a lost
 * value can do no other harm. In C this is a data race nevertheless, hidden from the compiler
 * because ranks are processes with separate mappings. Runs are not reproducible.
 *
 * The optimizer's state is per rank, because it follows the rank's own gradients. So are the
 * running statistics of batch norm, until they are averaged over ranks at the end.
 */
#include "strategy/shared.h"
#include "strategy/strategy.h"
#include "strategy/weights.h"

typedef struct hogwild_state {
    float *weights; /* owned; shared by all ranks */
} hogwild_state;

static co_status hogwild_init(co_strategy *strategy)
{
    strategy->own_state = true;
    return CO_OK;
}

static co_status hogwild_start(co_strategy *strategy)
{
    hogwild_state *self = strategy->self;

    return co_shared_open(&self->weights, strategy, strategy->comm);
}

static bool hogwild_is_local(const co_strategy *strategy, uint64_t step)
{
    (void)strategy;
    (void)step;
    return true;
}

static co_status hogwild_before_update(co_strategy *strategy, const co_strategy_step *step)
{
    co_weights_allow(strategy, step);
    return co_comm_progress(strategy->comm); /* finds out whether another rank has failed */
}

/* After it, the weights contain all steps of all ranks. */
static co_status hogwild_meet(co_strategy *strategy)
{
    return co_comm_barrier(strategy->comm);
}

static void hogwild_fini(co_strategy *strategy)
{
    hogwild_state *self = strategy->self;

    co_shared_close(strategy, strategy->comm, self->weights);
}

const co_strategy_ops co_strategy_hogwild = {
    .name = "hogwild",
    .summary = "ranks update shared weights without waiting or locking (Hogwild!)",
    .self_size = sizeof(hogwild_state),
    .needs = CO_STRATEGY_NEEDS_WINDOW,
    .init = hogwild_init,
    .start = hogwild_start,
    .is_local = hogwild_is_local,
    .before_update = hogwild_before_update,
    .finish = hogwild_meet,
    .quiesce = hogwild_meet,
    .fini = hogwild_fini,
};
