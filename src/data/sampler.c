/*
 * sampler.c - the plan of an epoch: which rank takes which samples at which step.
 *
 * A pure function of the options and the epoch: ranks agree without communication, and resuming
 * needs one number.
 */
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/rng.h"
#include "core/sized.h"
#include "data/data.h"
#include "data/feistel.h"
#include "data/partition.h"
#include "data/torch_random.h"

#define SAMPLER_NO_EPOCH UINT64_MAX

/* A rank's part, shuffled for an epoch; only for ranks whose samples were requested. */
typedef struct sampler_own {
    uint64_t epoch;  /* of `order` */
    uint32_t *order; /* owned: (samples of the part); NULL: not requested yet */
} sampler_own;

struct co_sampler {
    uint64_t count; /* samples of the set */
    uint64_t total; /* samples per epoch */
    uint64_t batch, steps, seed;
    int ranks;
    bool sequential;
    uint64_t epoch;  /* of `order` */
    uint32_t *order; /* owned: (count) the epoch's order of the whole set; NULL if not stored */
    co_parts parts;  /* owned; order (total), NULL without parts */
    /* with parts.fixed: */
    uint64_t *first;  /* owned: (ranks + 1) where parts begin */
    uint32_t *taken;  /* owned: (steps + 1, ranks) of a part, before a step; NULL if parts.equal */
    sampler_own *own; /* owned: (ranks) parts that are shuffled separately */
};

typedef struct partition_global {
    int shuffle;
} partition_global;

static const char *const partition_global_shuffles[] = {"fisher-yates", "feistel", NULL};

static const co_key partition_global_keys[] = {
    {"shuffle", CO_KEY_CHOICE, offsetof(partition_global, shuffle), "fisher-yates", 0, 0,
     partition_global_shuffles,
     "how an epoch's order is drawn: kept, 4 bytes a sample on each rank; or computed sample by "
     "sample, for sets of 10^8 and more"},
    CO_KEYS_END,
};

static void partition_global_describe(co_parts *out, const void *state)
{
    out->computed = ((const partition_global *)state)->shuffle == 1;
}

const co_partition_ops co_partition_global = {
    .name = "global",
    .summary = "no parts: every global batch is drawn from the whole set and shared",
    .keys = partition_global_keys,
    .self_size = sizeof(partition_global),
    .describe = partition_global_describe,
    .independent_of_ranks = true,
};

static uint64_t sampler_ceil(uint64_t n, uint64_t by)
{
    return n / by + (n % by != 0);
}

static co_status sampler_check(const co_sampler_options *o)
{
    if (o->count == 0)
        return co_fail(CO_E_USAGE, "the data set has no samples");
    if (o->count > UINT32_MAX)
        return co_fail(CO_E_USAGE, "%llu samples are more than a data set may have (%u)",
                       (unsigned long long)o->count, UINT32_MAX);
    if (o->dataset && o->count > co_dataset_count(o->dataset))
        return co_fail(CO_E_USAGE, "sampler: %llu samples; the data set has %llu",
                       (unsigned long long)o->count,
                       (unsigned long long)co_dataset_count(o->dataset));
    if (o->batch == 0)
        return co_fail(CO_E_USAGE, "batch: expected at least 1");
    if (o->ranks < 1)
        return co_fail(CO_E_USAGE, "ranks: expected at least 1");
    if (!o->partition && !o->sequential && (uint64_t)o->ranks > o->count)
        return co_partition_too_many_ranks(o);
    return CO_OK;
}

/* The rank furthest below its due once `all` samples are taken. */
static int sampler_neediest(const co_sampler *s, const uint32_t *taken, uint64_t all)
{
    double most = -1;
    int neediest = 0;

    for (int r = 0; r < s->ranks; r++) {
        const uint64_t part = s->parts.size[r];
        const double lag = (double)part / (double)s->total * (double)all - taken[r];

        if (lag > most && taken[r] < part) {
            most = lag;
            neediest = r;
        }
    }
    return neediest;
}

/*
 * Divide every global batch in proportion to the parts. Once `all` samples are taken, rank r is due
 * part[r] * all / total. Each batch first gives every rank the whole samples of its share, and then
 * the rest one by one to the rank furthest below its due. So no rank gets a whole sample ahead, and
 * all parts end with the epoch.
 */
static co_status sampler_share(co_sampler *s)
{
    uint64_t all = 0;
    size_t table;

    s->steps = sampler_ceil(s->total, s->batch);
    if (co_mul_size(&table, s->steps + 1, (size_t)s->ranks) != 0)
        return co_fail(CO_E_NOMEM, "out of memory");
    s->taken = co_calloc(table, sizeof(*s->taken));
    if (!s->taken)
        return CO_E_NOMEM;
    for (uint64_t step = 0; step < s->steps; step++) {
        const uint64_t batch = co_sampler_global(s, step);
        const uint32_t *before = s->taken + step * (uint64_t)s->ranks;
        uint32_t *after = s->taken + (step + 1) * (uint64_t)s->ranks;
        uint64_t left = batch;

        all += batch;
        for (int r = 0; r < s->ranks; r++) {
            uint64_t whole = batch * s->parts.size[r] / s->total;

            after[r] = before[r] + (uint32_t)whole;
            left -= whole;
        }
        for (; left; left--)
            after[sampler_neediest(s, after, all)]++;
    }
    return CO_OK;
}

/* Samples per step of a rank while its part lasts: batch / ranks, for the first ranks one more. */
static uint64_t sampler_equal_share(const co_sampler *s, int rank)
{
    const uint64_t ranks = (uint64_t)s->ranks;

    return s->batch / ranks + ((uint64_t)rank < s->batch % ranks);
}

static co_status sampler_share_equally(co_sampler *s)
{
    if (s->batch < (uint64_t)s->ranks)
        return co_fail(CO_E_USAGE,
                       "batching: equal: a batch of %llu has no sample for each of %d ranks; raise "
                       "it to %d, or use `batching: proportional`",
                       (unsigned long long)s->batch, s->ranks, s->ranks);
    s->steps = 0;
    for (int r = 0; r < s->ranks; r++) {
        const uint64_t steps = sampler_ceil(s->parts.size[r], sampler_equal_share(s, r));

        s->steps = steps > s->steps ? steps : s->steps;
    }
    return CO_OK;
}

static co_status sampler_cut(co_sampler *s, const co_sampler_options *options)
{
    const size_t n = (size_t)s->ranks;

    s->parts.order = co_calloc(s->count + n, sizeof(*s->parts.order));
    s->parts.size = co_calloc(n, sizeof(*s->parts.size));
    s->first = co_calloc(n + 1, sizeof(*s->first));
    s->own = co_calloc(n, sizeof(*s->own));
    if (!s->parts.order || !s->parts.size || !s->first || !s->own)
        return CO_E_NOMEM;
    CO_TRY(co_partition_cut(&s->parts, options));
    if (!s->parts.fixed) {
        co_free(s->parts.order);
        s->parts.order = NULL;
        return CO_OK;
    }
    for (int r = 0; r < s->ranks; r++)
        s->first[r + 1] = s->first[r] + s->parts.size[r];
    s->total = s->first[n];
    return s->parts.equal ? sampler_share_equally(s) : sampler_share(s);
}

/* Otherwise the order is sequential, computed, or separate for each part. */
static bool sampler_keeps_order(const co_sampler *s)
{
    return !s->sequential && !s->parts.computed && (!s->parts.fixed || s->parts.dealt);
}

CO_SIZED_END(co_sampler_options, dataset);

co_status co_sampler_create_sized(co_sampler **out, const co_sampler_options *given, size_t size)
{
    co_sampler_options o, *options = &o;
    co_sampler *s;
    co_status st = CO_OK;

    CO_TRY(CO_SIZED_READ(&o, given, size, co_sampler_options));
    CO_TRY(sampler_check(options));
    s = co_calloc(1, sizeof(*s));
    if (!s)
        return CO_E_NOMEM;
    s->count = s->total = options->count;
    s->batch = options->batch;
    s->steps = sampler_ceil(s->total, s->batch);
    s->seed = options->seed;
    s->ranks = options->ranks;
    s->sequential = options->sequential;
    s->epoch = SAMPLER_NO_EPOCH;
    if (options->partition)
        st = sampler_cut(s, options);
    if (st == CO_OK && sampler_keeps_order(s)) {
        s->order = co_calloc(s->count, sizeof(*s->order));
        st = s->order ? CO_OK : CO_E_NOMEM;
    }
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
    for (int r = 0; r < sampler->ranks && sampler->own; r++)
        co_free(sampler->own[r].order);
    co_free(sampler->own);
    co_free(sampler->taken);
    co_free(sampler->first);
    co_free(sampler->parts.size);
    co_free(sampler->parts.order);
    co_free(sampler->order);
    co_free(sampler);
}

co_status co_sampler_fits(const co_sampler *sampler, const co_dataset *dataset, int rank, int parts)
{
    if (rank < 0 || rank >= sampler->ranks || parts > sampler->ranks - rank)
        return co_fail(CO_E_USAGE, "loader: rank %d, parts %d; the sampler's ranks are 0 to %d",
                       rank, parts, sampler->ranks - 1);
    if (sampler->count > co_dataset_count(dataset))
        return co_fail(CO_E_USAGE, "loader: the sampler is for %llu samples, the data set has %llu",
                       (unsigned long long)sampler->count,
                       (unsigned long long)co_dataset_count(dataset));
    return CO_OK;
}

uint64_t co_sampler_steps(const co_sampler *sampler)
{
    return sampler->steps;
}

uint64_t co_sampler_global(const co_sampler *sampler, uint64_t step)
{
    uint64_t sum = 0;

    if (step >= sampler->steps)
        return 0;
    if (!sampler->parts.equal)
        return step + 1 < sampler->steps ? sampler->batch : sampler->total - step * sampler->batch;
    for (int r = 0; r < sampler->ranks; r++)
        sum += co_sampler_local(sampler, step, r);
    return sum;
}

/* Samples of a rank's part taken before a step. */
static uint64_t sampler_taken(const co_sampler *s, uint64_t step, int rank)
{
    const uint64_t part = s->parts.size[rank];
    uint64_t taken;

    if (!s->parts.equal)
        return s->taken[step * (uint64_t)s->ranks + (uint64_t)rank];
    taken = step * sampler_equal_share(s, rank);
    return taken < part ? taken : part;
}

/* Where a rank's samples at a step begin in the epoch's order of the set or, with parts, of all
   parts one after another; *n: how many there are. */
static uint64_t sampler_span(uint64_t *n, const co_sampler *s, uint64_t step, int rank)
{
    const uint64_t ranks = (uint64_t)s->ranks, r = (uint64_t)rank;
    uint64_t batch, whole, rest;

    if (s->parts.fixed) {
        const uint64_t before = sampler_taken(s, step, rank);

        *n = sampler_taken(s, step + 1, rank) - before;
        return s->first[rank] + before;
    }
    batch = co_sampler_global(s, step);
    whole = batch / ranks;
    rest = batch % ranks; /* the first `rest` get one more */
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

    if (sampler->parts.fixed && rank >= 0 && rank < sampler->ranks)
        return sampler->parts.size[rank];
    return last * co_sampler_local(sampler, 0, rank) + co_sampler_local(sampler, last, rank);
}

/* Random stream of an epoch's order of one piece: a part, or the whole set (0). */
static co_rng sampler_rng(const co_sampler *s, uint64_t epoch, int piece)
{
    return (co_rng){.seed = s->parts.fixed ? s->parts.seed : s->seed,
                    .stream = CO_RNG_SHUFFLE,
                    .step = epoch,
                    .item = (uint32_t)piece};
}

/* Shuffle the whole set. */
static void sampler_permute(co_sampler *s, uint64_t epoch)
{
    const co_rng rng = sampler_rng(s, epoch, 0);

    if (s->epoch == epoch)
        return;
    if (s->parts.torch)
        co_torch_permutation(s->order, (uint32_t)s->count, s->parts.seed + epoch);
    else
        co_rng_shuffle(s->order, (uint32_t)s->count, &rng);
    s->epoch = epoch;
}

static co_status sampler_permute_part(co_sampler *s, uint64_t epoch, int rank)
{
    const co_rng rng = sampler_rng(s, epoch, rank);
    const uint64_t n = s->parts.size[rank];
    sampler_own *own = &s->own[rank];

    if (own->order && own->epoch == epoch)
        return CO_OK;
    if (!own->order)
        own->order = co_calloc(n, sizeof(*own->order));
    if (!own->order)
        return CO_E_NOMEM;
    co_rng_shuffle(own->order, (uint32_t)n, &rng);
    for (uint64_t i = 0; i < n; i++)
        own->order[i] = s->parts.order[s->first[rank] + own->order[i]];
    own->epoch = epoch;
    return CO_OK;
}

/* Elements [begin, begin + n) of the set's order. */
static void sampler_take_set(uint32_t *out, co_sampler *s, uint64_t epoch, uint64_t begin,
                             uint64_t n)
{
    const co_rng rng = sampler_rng(s, epoch, 0);

    if (s->order) {
        sampler_permute(s, epoch);
        memcpy(out, s->order + begin, n * sizeof(*out));
        return;
    }
    for (uint64_t i = 0; i < n; i++)
        out[i] = (uint32_t)(s->sequential ? begin + i : co_feistel(begin + i, s->count, &rng));
}

/* The same of all parts one after another; the range is in the part of `rank`. */
static co_status sampler_take_parts(uint32_t *out, co_sampler *s, uint64_t epoch, uint64_t begin,
                                    uint64_t n, int rank)
{
    const uint32_t *part = s->parts.order + begin;

    if (s->sequential) {
        memcpy(out, part, n * sizeof(*out));
    } else if (s->order) {
        sampler_permute(s, epoch);
        for (uint64_t i = 0; i < n; i++)
            out[i] = s->order[part[i]];
    } else {
        CO_TRY(sampler_permute_part(s, epoch, rank));
        memcpy(out, s->own[rank].order + (begin - s->first[rank]), n * sizeof(*out));
    }
    return CO_OK;
}

co_status co_sampler_indices(co_sampler *sampler, uint32_t *out, uint64_t epoch, uint64_t step,
                             int rank)
{
    uint64_t begin, n;

    if (step >= sampler->steps || rank < 0 || rank >= sampler->ranks)
        return co_fail(CO_E_USAGE, "step %llu of rank %d: an epoch has %llu steps, %d ranks",
                       (unsigned long long)step, rank, (unsigned long long)sampler->steps,
                       sampler->ranks);
    if (sampler->parts.frozen)
        epoch = 0;
    begin = sampler_span(&n, sampler, step, rank);
    if (sampler->parts.fixed)
        return sampler_take_parts(out, sampler, epoch, begin, n, rank);
    sampler_take_set(out, sampler, epoch, begin, n);
    return CO_OK;
}
