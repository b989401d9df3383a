/*
 * hogwild.c - ranks update the same weights whenever they please (Recht et al., "Hogwild!",
 * NIPS 2011).
 *
 * Each rank goes through its own samples, takes the mean gradient over its part of a batch at
 * whatever the weights are by then, and moves the weights that all share. Nobody waits for anybody
 * but at the end of an epoch, where results are added up, and at the end of the run.
 *
 * The race, declared: store->param is memory that all ranks read in forward and backward and
 * write in co_optim_update, without locks and without atomics. What is raced on is each weight, a
 * float on its own. On the machines that we run on an aligned float is read and written whole, so
 * a rank sees a value that some rank has written; between a rank's read and write of a weight
 * another rank's step may be lost. That is what the paper allows for: steps are small, some are
 * lost or taken along a gradient that is a little old, and the descent continues. Nothing else is
 * shared, and no address or size depends on a weight, so a torn or lost value can do no other
 * harm. In C this is a data race all the same, hidden from the compiler by ranks being processes,
 * each with its own mapping. Two runs do not give the same bytes.
 *
 * The optimizer's state is each rank's own: it follows the rank's own gradients. So are the
 * running statistics of batch norm, until their mean over ranks is taken at the end.
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
    return co_comm_progress(strategy->comm); /* whether another rank has failed */
}

/* All steps of all ranks are in the weights. */
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
