/*
 * ratios.c - how many samples each rank gets of a set that is shared by ratio.
 *
 * First int(ratio * count) each, as in Python; then what rounding has left over, to the ranks that
 * lost most by it.
 */
#include <math.h>

#include "core/plural.h"
#include "data/partition.h"

#define RATIOS_TOLERANCE 1e-4

static double ratios_of(const co_reals *ratios, int ranks, int rank)
{
    return ratios->n ? ratios->v[rank] : 1.0 / ranks;
}

co_status co_ratios_check(const co_reals *ratios, int ranks, const char *name)
{
    double sum = 0;

    if (ratios->n && ratios->n != (size_t)ranks)
        return co_fail(CO_E_USAGE,
                       "partition %s: %zu ratio%s for %d part%s; give one for each rank, or, with "
                       "`shards`, for each shard",
                       name, ratios->n, co_plural(ratios->n), ranks, co_plural((uint64_t)ranks));
    for (int r = 0; r < ranks; r++)
        sum += ratios_of(ratios, ranks, r);
    if (fabs(sum - 1) > RATIOS_TOLERANCE)
        return co_fail(CO_E_USAGE, "partition %s: the ratios add up to %g, expected 1", name, sum);
    return CO_OK;
}

uint64_t co_ratios_floor(uint64_t *size, const co_reals *ratios, const co_sampler_options *options)
{
    uint64_t left = options->count;

    for (int r = 0; r < options->ranks; r++) {
        size[r] = (uint64_t)(ratios_of(ratios, options->ranks, r) * (double)options->count);
        if (size[r] > left)
            size[r] = left;
        left -= size[r];
    }
    return left;
}

static int ratios_neediest(const uint64_t *size, const co_reals *ratios,
                           const co_sampler_options *options)
{
    double most = -INFINITY;
    int neediest = 0;

    for (int r = 0; r < options->ranks; r++) {
        const double ratio = ratios_of(ratios, options->ranks, r);
        const double behind = ratio * (double)options->count - (double)size[r];

        if (ratio > 0 && behind > most) {
            most = behind;
            neediest = r;
        }
    }
    return neediest;
}

void co_ratios_add(uint64_t *size, uint64_t left, const co_reals *ratios,
                   const co_sampler_options *options)
{
    for (; left; left--)
        size[ratios_neediest(size, ratios, options)]++;
}
