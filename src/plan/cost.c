/* cost.c - closed forms of collectives. Does not know which of them a strategy uses. */
#include "plan/cost.h"

#include <math.h>
#include <stdbool.h>

#define COST_SMALL 16384.0   /* received bytes up to which sum_over_hosts.c exchanges once */
#define COST_PIECE 1048576.0 /* bytes that pipeline.h exchanges at a time */

double co_cost_levels(double p)
{
    double levels = 0;

    for (double reach = 1; reach < p; reach *= 2)
        levels++;
    return levels;
}

double co_cost_send(const co_cost_link *link, double bytes)
{
    return link->latency + bytes / link->bandwidth;
}

double co_cost_ring(const co_cost_link *link, double bytes, double p)
{
    if (p <= 1)
        return 0;
    return 2 * (p - 1) * co_cost_send(link, bytes / p);
}

/* Ranks beyond the largest power of 2 send everything to a neighbour first, and get it back. */
static double cost_odd(const co_cost_link *link, double bytes, double p)
{
    return exp2(co_cost_levels(p)) == p ? 0 : 2 * co_cost_send(link, bytes);
}

static double cost_power(double p)
{
    const double levels = co_cost_levels(p);

    return exp2(levels) == p ? levels : levels - 1;
}

double co_cost_recursive_doubling(const co_cost_link *link, double bytes, double p)
{
    if (p <= 1)
        return 0;
    return cost_odd(link, bytes, p) + cost_power(p) * co_cost_send(link, bytes);
}

double co_cost_halving_doubling(const co_cost_link *link, double bytes, double p)
{
    const double levels = cost_power(p), power = exp2(levels);

    if (p <= 1)
        return 0;
    return cost_odd(link, bytes, p) + 2 * levels * link->latency +
           2 * (power - 1) / power * bytes / link->bandwidth;
}

double co_cost_two_trees(const co_cost_link *link, double bytes, double p)
{
    if (p <= 1)
        return 0;
    return 2 * co_cost_levels(p) * link->latency + 2 * bytes / link->bandwidth;
}

/* Each of a host's ranks exchanges a slice of its own. */
static bool cost_is_small(double bytes, double p, double slices)
{
    return bytes / slices * p <= COST_SMALL;
}

double co_cost_slices_bytes(double bytes, double p, double slices)
{
    if (p <= 1)
        return 0;
    return cost_is_small(bytes, p, slices) ? (p - 1) * bytes : 2 * (p - 1) / p * bytes;
}

double co_cost_slices(const co_cost_link *link, double bytes, double p, double slices)
{
    const double rounds = cost_is_small(bytes, p, slices) ? 1 : 2;
    const double messages = rounds * (p - 1) * fmax(1, ceil(bytes / COST_PIECE));

    if (p <= 1)
        return 0;
    return rounds * link->latency + fmax(messages * link->overhead,
                                         co_cost_slices_bytes(bytes, p, slices) / link->bandwidth);
}

double co_cost_agree(const co_cost_link *link, double p)
{
    return 2 * co_cost_levels(p) * link->latency;
}

double co_cost_allgather(const co_cost_link *link, double bytes, double p)
{
    if (p <= 1)
        return 0;
    return link->latency + (p - 1) * (link->overhead + bytes / link->bandwidth);
}

double co_cost_shared(const co_cost_link *link, double bytes, double p)
{
    if (p <= 1)
        return 0;
    return 2 * link->latency + 2 * (p - 1) / p * bytes / link->bandwidth;
}
