/* cost.c - closed forms of collectives. Does not know which of them a strategy uses. */
#include "plan/cost.h"

#include <math.h>
#include <stdbool.h>

#define COST_SMALL      16384.0   /* bytes of a level up to which sum_over_hosts.c exchanges once */
#define COST_PIECE      1048576.0 /* bytes that pipeline.h exchanges at a time */
#define COST_MESSAGE    61440.0   /* most bytes of a message of sum_over_hosts.c */
#define COST_DESCRIPTOR 96.0      /* bytes, with the complement */

double co_cost_levels(double p)
{
    int levels = 0;

    while (exp2(levels) < p)
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

/* Each of a host's ranks exchanges a slice of its own: all of it, once on each level. */
static co_cost_exchange cost_small_slices(const co_cost_link *link, const co_levels *levels,
                                          double bytes)
{
    co_cost_exchange x = {0};

    for (int k = 0; k < levels->n; k++) {
        const double others = levels->factor[k] - 1;

        x.busy += others * fmax(link[k].overhead, bytes / link[k].bandwidth);
        x.latency += others > 0 ? link[k].latency : 0;
        x.bytes += others * bytes;
    }
    return x;
}

/* A piece of `bytes`, there and back, in messages of `message` at most, counted over all ranks of a
   host; `busy` is what it takes where others follow. */
static co_cost_exchange cost_piece(const co_cost_link *link, const co_levels *levels, double bytes,
                                   double message)
{
    double prepared = 0, wired = 0, both = 0;
    co_cost_exchange x = {0};

    for (int k = 0; k < levels->n; k++) {
        const double f = levels->factor[k], sent = (f - 1) / f * bytes;
        const double messages = 2 * (f - 1) * fmax(1, ceil(bytes / f / message));
        const double prepare = messages * link[k].overhead, wire = 2 * sent / link[k].bandwidth;

        prepared += prepare;
        wired += wire;
        both += fmax(prepare, wire);
        x.latency += f > 1 ? 2 * link[k].latency : 0;
        x.bytes += 2 * sent;
        bytes /= f;
    }
    x.busy = fmax(prepared, wired);
    x.latency += both - x.busy;
    return x;
}

/* `wire`: what is sent of a byte. */
static co_cost_exchange cost_slices(const co_cost_link *link, const co_levels *levels, double bytes,
                                    double slices, double wire)
{
    const double pieces = fmax(1, ceil(bytes / COST_PIECE)), sent = wire * bytes / pieces;
    const bool two = wire < 1 && levels->n == 1 && levels->factor[0] <= 2;
    co_cost_exchange x;

    if (two || wire * bytes / slices * levels->factor[0] <= COST_SMALL)
        x = cost_small_slices(link, levels, sent);
    else
        x = cost_piece(link, levels, sent, slices * COST_MESSAGE);
    x.busy *= pieces;
    x.bytes *= pieces;
    return x;
}

co_cost_exchange co_cost_slices(const co_cost_link *link, const co_levels *levels, double bytes,
                                double slices)
{
    return cost_slices(link, levels, bytes, slices, 1);
}

co_cost_exchange co_cost_half_slices(const co_cost_link *link, const co_levels *levels,
                                     double bytes, double slices)
{
    return cost_slices(link, levels, bytes, slices, 0.5);
}

co_cost_exchange co_cost_gather_slices(const co_cost_link *link, const co_levels *levels,
                                       double bytes)
{
    co_cost_exchange x = cost_piece(link, levels, bytes, bytes); /* not cut */

    x.busy /= 2;
    x.latency /= 2;
    x.bytes /= 2;
    return x;
}

double co_cost_agree(const co_cost_link *link, const co_levels *levels)
{
    const co_cost_exchange x = cost_small_slices(link, levels, COST_DESCRIPTOR);

    return x.busy + x.latency;
}

double co_cost_agree_inside(const co_cost_link *link, double p)
{
    return p <= 1 ? 0 : 2 * (link->latency + (p - 1) * link->overhead);
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
