/* exchange.c - which collective a bucket takes, by strategy and by where ranks are. */
#include "plan/exchange.h"

#include <math.h>

typedef double (*exchange_cost_fn)(const co_cost_link *link, double bytes, double p);

static const exchange_cost_fn exchange_costs[] = {
    [CO_ALLREDUCE_RING] = co_cost_ring,
    [CO_ALLREDUCE_RECURSIVE_DOUBLING] = co_cost_recursive_doubling,
    [CO_ALLREDUCE_HALVING_DOUBLING] = co_cost_halving_doubling,
    [CO_ALLREDUCE_TREE] = co_cost_two_trees,
};

/* Whether a node sends to all others, so that much leaves its switch. */
static bool exchange_is_wide(int algorithm)
{
    return algorithm != CO_ALLREDUCE_RING && algorithm != CO_ALLREDUCE_TREE;
}

/* As levels.h joins nodes; link: between those of a group, (levels). */
static void exchange_levels(co_cost_link *link, co_levels *levels, const plan_layout *l)
{
    double stride = 1;

    co_levels_find(levels, (int)l->nodes, 0);
    for (int k = 0; k < levels->n; k++) {
        link[k] = co_cluster_group(l->cluster, l->nodes, stride, levels->factor[k]);
        stride *= levels->factor[k];
    }
}

static co_cost_exchange exchange_slices(const plan_layout *l, double bytes)
{
    co_cost_link link[CO_LEVELS_MAX];
    co_levels levels;

    exchange_levels(link, &levels, l);
    return co_cost_slices(link, &levels, bytes, l->each);
}

/* A ring's or a tree's message waits for the one before it, so all of its time counts. */
static co_cost_exchange exchange_across(const plan_layout *l, int algorithm, double bytes)
{
    const co_cost_link link = co_cluster_across(l->cluster, l->nodes, exchange_is_wide(algorithm));
    const double p = l->nodes;

    if (algorithm == CO_ALLREDUCE_SLICES)
        return exchange_slices(l, bytes);
    return (co_cost_exchange){.busy = exchange_costs[algorithm](&link, bytes, p),
                              .bytes = 2 * (p - 1) / p * bytes};
}

static double exchange_seconds(const plan_layout *l, int algorithm, double bytes)
{
    const co_cost_exchange x = exchange_across(l, algorithm, bytes);

    return x.busy + x.latency;
}

/* What each collective of Cohort's waits for first. */
static double exchange_agree(const plan_layout *l)
{
    co_cost_link link[CO_LEVELS_MAX];
    co_levels levels;

    exchange_levels(link, &levels, l);
    return co_cost_agree(link, &levels) + co_cost_agree_inside(&l->cluster->inside.cost, l->each);
}

static int exchange_algorithm(const plan_layout *l, double bytes)
{
    int best = CO_ALLREDUCE_SLICES;

    if (l->cluster->allreduce != CO_ALLREDUCE_BEST)
        return l->cluster->allreduce;
    for (int i = best + 1; i < CO_ALLREDUCE_BEST; i++)
        if (exchange_seconds(l, i, bytes) < exchange_seconds(l, best, bytes))
            best = i;
    return best;
}

plan_exchange plan_exchange_whole(const plan_layout *l, double bytes)
{
    const int algorithm = exchange_algorithm(l, bytes);
    plan_exchange x = {.own = co_cost_shared(&l->cluster->inside.cost, bytes, l->each)};
    co_cost_exchange across;

    if (l->nodes <= 1)
        return x;
    across = exchange_across(l, algorithm, bytes);
    x.wire = across.busy;
    x.latency = across.latency;
    x.bytes = across.bytes;
    if (algorithm == CO_ALLREDUCE_SLICES)
        x.latency += exchange_agree(l);
    return x;
}

/* Every rank sends `bytes` to each of the others, in one message to each: what goes to ranks of
   other nodes crosses the node's link once for each pair. */
static plan_exchange exchange_all_to_all(const plan_layout *l, double bytes)
{
    const co_cost_link link = co_cluster_across(l->cluster, l->nodes, true);
    const co_cost_link *inside = &l->cluster->inside.cost;
    plan_exchange x = {0};

    if (l->each > 1)
        x.own = co_cost_allgather(inside, bytes, l->each);
    if (l->nodes <= 1)
        return x;
    x.bytes = l->each * (l->ranks - l->each) * bytes;
    x.wire = x.bytes / link.bandwidth + (l->ranks - 1) * link.overhead;
    x.latency = link.latency + exchange_agree(l);
    return x;
}

static plan_exchange exchange_add(plan_exchange own, co_cost_exchange across, double agree)
{
    own.wire = across.busy;
    own.latency = across.latency + agree;
    own.bytes = across.bytes;
    return own;
}

/* In floats among ranks of a node, in half precision between nodes. */
static plan_exchange exchange_half(const plan_layout *l, double bytes)
{
    const plan_exchange own = {.own = co_cost_shared(&l->cluster->inside.cost, bytes, l->each)};
    co_cost_link link[CO_LEVELS_MAX];
    co_levels levels;

    exchange_levels(link, &levels, l);
    return exchange_add(own, co_cost_half_slices(link, &levels, bytes, l->each), exchange_agree(l));
}

/* `bytes` of every rank to all others: each node's pass between nodes once, and all of them to its
   ranks. */
static plan_exchange exchange_gather(const plan_layout *l, double bytes)
{
    const double all = l->nodes * bytes;
    const plan_exchange own = {.own = co_cost_allgather(&l->cluster->inside.cost, all, l->each)};
    co_cost_link link[CO_LEVELS_MAX];
    co_levels levels;

    exchange_levels(link, &levels, l);
    return exchange_add(own, co_cost_gather_slices(link, &levels, l->each * all),
                        exchange_agree(l));
}

static plan_exchange exchange_twice(plan_exchange x)
{
    x.own *= 2;
    x.wire *= 2;
    x.latency *= 2;
    x.bytes *= 2;
    return x;
}

/* Elements of P and Q for all tensors, as compress_powersgd.c has them. */
static void exchange_powersgd(double *p, double *q, const plan_layout *l)
{
    *q = 0;
    *p = l->work->n_tensor ? 0 : (double)l->work->n;
    for (size_t i = 0; i < l->work->n_tensor; i++) {
        const double rows = (double)l->work->tensor[i].rows, cols = (double)l->work->tensor[i].cols;
        const double least = fmin(rows, cols), rank = fmin(l->choice->rank, least);
        const bool whole =
            least <= 1 || rows * cols <= l->choice->min_compression * (rows + cols) * rank;

        *p += whole ? rows * cols : rows * rank;
        *q += whole ? 0 : cols * rank;
    }
}

plan_exchange plan_exchange_of(const plan_layout *l, double bytes)
{
    const double share = bytes / (4 * (double)l->work->n);
    double p, q;

    switch (l->choice->compress) {
    case CO_CHOICE_HALF:
        if (l->nodes > 1)
            return exchange_half(l, bytes);
        return l->ranks <= 2 ? exchange_all_to_all(l, bytes / 2)
                             : exchange_twice(exchange_all_to_all(l, bytes / 2 / l->ranks));
    case CO_CHOICE_TOPK: /* position and value of each */
        bytes *= 2 * l->choice->ratio;
        return l->nodes > 1 ? exchange_gather(l, bytes) : exchange_all_to_all(l, bytes);
    case CO_CHOICE_POWERSGD:
        exchange_powersgd(&p, &q, l);
        return plan_exchange_whole(l, 4 * p * share);
    default:
        break;
    }
    if (l->work->shards) /* the tree all-reduce goes from rank to rank (src/comm/mpi/tree.c) */
        return l->nodes > 1 ? exchange_twice(exchange_all_to_all(l, bytes / l->ranks))
                            : plan_exchange_whole(l, bytes);
    return plan_exchange_whole(l, bytes);
}

plan_exchange plan_exchange_late(const plan_layout *l)
{
    double p, q;

    if (l->choice->compress != CO_CHOICE_POWERSGD)
        return (plan_exchange){0};
    exchange_powersgd(&p, &q, l);
    return plan_exchange_whole(l, 4 * q);
}
