/*
 * sampler.c - the plan of an epoch: which rank takes which samples at which step.
 *
 * A pure function of the options and the epoch, so ranks agree without talking and a resume needs
 * one number. Must not know files, batches in memory or threads.
 */
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/rng.h"
#include "data/partition.h"

#define SAMPLER_NO_EPOCH UINT64_MAX

struct co_sampler {
    uint64_t count, batch, steps, seed;
    int ranks;
    bool sequential, parts;
    uint64_t epoch;  /* that `order` holds */
    uint32_t *order; /* (count): samples of the epoch by batch or, with parts, by rank */
    /* with parts, else NULL: */
    uint32_t *base;  /* (count): samples of rank 0's part, then rank 1's, ... */
    uint64_t *first; /* (ranks + 1): where parts begin in base and order */
    uint32_t *taken; /* (steps + 1, ranks): samples of a part that are taken before a step */
};

const co_partition_ops co_partition_global = {
    .name = "global",
    .summary = "no parts: every global batch is drawn from the whole set and shared",
};

static co_status sampler_check(const co_sampler_options *o)
{
    if (o->count == 0)
        return co_fail(CO_E_USAGE, "the data set has no samples");
    if (o->count > UINT32_MAX)
        return co_fail(CO_E_USAGE, "%llu samples are more than a data set may have (%u)",
                       (unsigned long long)o->count, UINT32_MAX);
    if (o->batch == 0)
        return co_fail(CO_E_USAGE, "batch: expected at least 1");
    if (o->ranks < 1)
        return co_fail(CO_E_USAGE, "ranks: expected at least 1");
    if (!o->sequential && (uint64_t)o->ranks > o->count)
        return co_fail(CO_E_USAGE,
                       "%d ranks are more than the %llu samples to train on; start at most %llu",
                       o->ranks, (unsigned long long)o->count, (unsigned long long)o->count);
    return CO_OK;
}

/* The rank that lags furthest behind its due once `all` samples are taken. */
static int sampler_neediest(const co_sampler *s, const uint32_t *taken, uint64_t all)
{
    double most = -1;
    int neediest = 0;

    for (int r = 0; r < s->ranks; r++) {
        const uint64_t part = s->first[r + 1] - s->first[r];
        const double lag = (double)part / (double)s->count * (double)all - taken[r];

        if (lag > most && taken[r] < part) {
            most = lag;
            neediest = r;
        }
    }
    return neediest;
}

/*
 * Share every global batch in proportion to the parts. Once `all` samples are taken, rank r is due
 * part[r] * all / count; each batch first gives everyone the whole samples of its share, and the
 * rest one by one to the rank that lags furthest behind its due. So nobody gets a whole sample
 * ahead, and each part ends with the epoch.
 */
static void sampler_share(co_sampler *s)
{
    uint64_t all = 0;

    for (uint64_t step = 0; step < s->steps; step++) {
        const uint64_t batch = co_sampler_global(s, step);
        const uint32_t *before = s->taken + step * (uint64_t)s->ranks;
        uint32_t *after = s->taken + (step + 1) * (uint64_t)s->ranks;
        uint64_t left = batch;

        all += batch;
        for (int r = 0; r < s->ranks; r++) {
            uint64_t whole = batch * (s->first[r + 1] - s->first[r]) / s->count;

            after[r] = before[r] + (uint32_t)whole;
            left -= whole;
        }
        for (; left; left--)
            after[sampler_neediest(s, after, all)]++;
    }
}

static co_status sampler_cut(co_sampler *s, const co_sampler_options *options)
{
    size_t table;

    s->base = co_calloc(s->count, sizeof(*s->base));
    s->first = co_calloc((size_t)s->ranks + 1, sizeof(*s->first));
    if (!s->base || !s->first)
        return CO_E_NOMEM;
    CO_TRY(co_partition_cut(&s->parts, s->base, s->first + 1, options));
    if (!s->parts)
        return CO_OK;
    for (int r = 0; r < s->ranks; r++)
        s->first[r + 1] += s->first[r];
    if (co_mul_size(&table, s->steps + 1, (size_t)s->ranks) != 0)
        return co_fail(CO_E_NOMEM, "out of memory");
    s->taken = co_calloc(table, sizeof(*s->taken));
    if (!s->taken)
        return CO_E_NOMEM;
    sampler_share(s);
    return CO_OK;
}

co_status co_sampler_create(co_sampler **out, const co_sampler_options *options)
{
    co_sampler *s;
    co_status st = CO_OK;

    CO_TRY(sampler_check(options));
    s = co_calloc(1, sizeof(*s));
    if (!s)
        return CO_E_NOMEM;
    s->count = options->count;
    s->batch = options->batch;
    s->steps = s->count / s->batch + (s->count % s->batch != 0);
    s->seed = options->seed;
    s->ranks = options->ranks;
    s->sequential = options->sequential;
    s->epoch = SAMPLER_NO_EPOCH;
    s->order = co_calloc(s->count, sizeof(*s->order));
    if (!s->order)
        st = CO_E_NOMEM;
    if (st == CO_OK && options->partition)
        st = sampler_cut(s, options);
    if (st != CO_OK) {
        co_sampler_destroy(s);
        return st;
    }
    *out = s;
    return CO_OK;
}

void co_sampler_destroy(co_sampler *sampler)
{
    if (!sampler)
        return;
    co_free(sampler->taken);
    co_free(sampler->first);
    co_free(sampler->base);
    co_free(sampler->order);
    co_free(sampler);
}

uint64_t co_sampler_steps(const co_sampler *sampler)
{
    return sampler->steps;
}

uint64_t co_sampler_global(const co_sampler *sampler, uint64_t step)
{
    if (step >= sampler->steps)
        return 0;
    return step + 1 < sampler->steps ? sampler->batch : sampler->count - step * sampler->batch;
}

/* Where the samples of a rank at a step begin in `order`, and how many there are. */
static uint64_t sampler_span(uint64_t *n, const co_sampler *s, uint64_t step, int rank)
{
    const uint64_t batch = co_sampler_global(s, step);
    const uint64_t ranks = (uint64_t)s->ranks, r = (uint64_t)rank;
    const uint64_t whole = batch / ranks, rest = batch % ranks; /* the first `rest` get one more */

    if (s->parts) {
        const uint32_t *before = s->taken + step * ranks + r;

        *n = before[ranks] - before[0];
        return s->first[r] + before[0];
    }
    *n = whole + (r < rest);
    return step * s->batch + r * whole + (r < rest ? r : rest);
}

uint64_t co_sampler_local(const co_sampler *sampler, uint64_t step, int rank)
{
    uint64_t n = 0;

    if (step < sampler->steps && rank >= 0 && rank < sampler->ranks)
        (void)sampler_span(&n, sampler, step, rank);
    return n;
}

uint64_t co_sampler_local_max(const co_sampler *sampler, int rank)
{
    uint64_t max = 0;

    for (uint64_t step = 0; step < sampler->steps; step++) {
        uint64_t n = co_sampler_local(sampler, step, rank);

        if (n > max)
            max = n;
    }
    return max;
}

uint64_t co_sampler_part(const co_sampler *sampler, int rank)
{
    const uint64_t last = sampler->steps - 1;

    if (sampler->parts && rank >= 0 && rank < sampler->ranks)
        return sampler->first[rank + 1] - sampler->first[rank];
    return last * co_sampler_local(sampler, 0, rank) + co_sampler_local(sampler, last, rank);
}

/* One permutation of the whole set, or one of each part. */
static void sampler_permute(co_sampler *s, uint64_t epoch)
{
    const int pieces = s->parts ? s->ranks : 1;

    for (int piece = 0; piece < pieces; piece++) {
        const co_rng rng = {s->seed, CO_RNG_SHUFFLE, (uint32_t)epoch, (uint32_t)piece};
        const uint64_t begin = s->parts ? s->first[piece] : 0;
        const uint64_t end = s->parts ? s->first[piece + 1] : s->count;
        uint32_t *order = s->order + begin;

        if (s->sequential)
            for (uint64_t i = 0; i < end - begin; i++)
                order[i] = (uint32_t)i;
        else
            co_rng_shuffle(order, (uint32_t)(end - begin), &rng);
        for (uint64_t i = 0; s->parts && i < end - begin; i++)
            order[i] = s->base[begin + order[i]];
    }
    s->epoch = epoch;
}

co_status co_sampler_indices(co_sampler *sampler, uint32_t *out, uint64_t epoch, uint64_t step,
                             int rank)
{
    uint64_t begin, n;

    if (step >= sampler->steps || rank < 0 || rank >= sampler->ranks)
        return co_fail(CO_E_USAGE, "step %llu of rank %d: an epoch has %llu steps, %d ranks",
                       (unsigned long long)step, rank, (unsigned long long)sampler->steps,
                       sampler->ranks);
    if (sampler->epoch != epoch)
        sampler_permute(sampler, epoch);
    begin = sampler_span(&n, sampler, step, rank);
    memcpy(out, sampler->order + begin, n * sizeof(*out));
    return CO_OK;
}
