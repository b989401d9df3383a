/*
 * partition_dirichlet.c - samples of each label divided by weights drawn from Dirichlet(alpha).
 *
 * The usual model of non-IID data (Hsu, Qi, Brown, arXiv:1909.06335): a large alpha gives all ranks
 * the same mix of labels, a small one gives most of a label to one rank.
 */
#include <math.h>

#include "core/fs.h"
#include "core/mem.h"
#include "core/rng.h"
#include "data/data.h"
#include "data/partition.h"

typedef struct partition_dirichlet {
    double alpha;
    int64_t seed;
} partition_dirichlet;

static const co_key partition_dirichlet_keys[] = {
    {"alpha", CO_KEY_REAL, offsetof(partition_dirichlet, alpha), "0.5", 1e-3, 1e6, NULL,
     "concentration: large for equal ranks, small for ranks of few labels"},
    {"seed", CO_KEY_INT, offsetof(partition_dirichlet, seed), "-1", -1, 9e15, NULL,
     "of the weights and the choice of samples; -1: the run's"},
    CO_KEYS_END,
};

/* State of the cut. */
typedef struct dirichlet_shares {
    size_t ranks, classes;
    uint64_t *end;   /* owned: (classes, ranks) where a rank's samples of a label end */
    uint64_t *taken; /* owned: (classes) samples of a label assigned so far */
    uint32_t *rank;  /* owned: (classes) rank that gets the next sample of a label */
    uint32_t *order; /* owned: (count) the set, shuffled */
} dirichlet_shares;

/* Uniform in (0, 1]. */
static double dirichlet_unit(uint32_t word)
{
    return ((double)word + 1.0) / 4294967296.0;
}

/*
 * Logarithm of a gamma variate of shape alpha, since those of small shapes underflow. Marsaglia and
 * Tsang, "A simple method for generating gamma variables" (2000), at shape alpha + 1, times
 * U^(1 / alpha). Each attempt takes one block of random words of `place`.
 */
static double dirichlet_log_gamma(double alpha, const co_rng *place)
{
    const double d = alpha + 1 - 1.0 / 3, c = 1 / sqrt(9 * d);

    for (uint32_t attempt = 0;; attempt++) {
        uint32_t word[4];
        double x, v;

        co_rng_block(word, place, attempt);
        x = sqrt(-2 * log(dirichlet_unit(word[0]))) *
            cos(6.283185307179586 * dirichlet_unit(word[1]));
        v = 1 + c * x;
        v = v * v * v;
        if (v > 0 && log(dirichlet_unit(word[2])) < 0.5 * x * x + d - d * v + d * log(v))
            return log(d * v) + log(dirichlet_unit(word[3])) / alpha;
    }
}

/* Draw the weights of the ranks for one label; they add up to 1. */
static void dirichlet_draw(double *weight, size_t ranks, double alpha, uint64_t seed, size_t label)
{
    double most = -INFINITY, sum = 0;

    for (size_t r = 0; r < ranks; r++) {
        const co_rng place = {seed, CO_RNG_PARTITION, (uint32_t)label, (uint32_t)r};

        weight[r] = dirichlet_log_gamma(alpha, &place);
        most = fmax(most, weight[r]);
    }
    for (size_t r = 0; r < ranks; r++)
        sum += weight[r] = exp(weight[r] - most);
    for (size_t r = 0; r < ranks; r++)
        weight[r] /= sum;
}

/* Where each rank's samples end among the `count` of a label: cumulative weights, rounded. */
static void dirichlet_cut_label(uint64_t *end, const double *weight, size_t ranks, uint64_t count)
{
    double sum = 0;

    for (size_t r = 0; r < ranks; r++) {
        const uint64_t at = (uint64_t)((sum += weight[r]) * (double)count + 0.5);

        end[r] = at < count && r + 1 < ranks ? at : count;
    }
}

/* Count the samples of each label. */
static co_status dirichlet_count(dirichlet_shares *s, const co_sampler_options *options)
{
    for (uint64_t i = 0; i < options->count; i++) {
        int32_t label;

        CO_TRY(co_dataset_take_label(&label, options->dataset, i));
        s->taken[label]++;
    }
    return CO_OK;
}

static co_status dirichlet_open(dirichlet_shares *s, const partition_dirichlet *self, uint64_t seed,
                                const co_sampler_options *options)
{
    const co_rng place = {seed, CO_RNG_PARTITION, UINT32_MAX, 0};
    size_t table;
    double *weight;
    co_status st;

    s->ranks = (size_t)options->ranks;
    s->classes = (size_t)co_dataset_classes(options->dataset);
    if (co_mul_size(&table, s->classes, s->ranks) != 0)
        return co_fail(CO_E_NOMEM, "out of memory");
    s->end = co_calloc(table, sizeof(*s->end));
    s->taken = co_calloc(s->classes, sizeof(*s->taken));
    s->rank = co_calloc(s->classes, sizeof(*s->rank));
    s->order = co_calloc(options->count, sizeof(*s->order));
    weight = co_calloc(s->ranks, sizeof(*weight));
    if (!s->end || !s->taken || !s->rank || !s->order || !weight) {
        co_free(weight);
        return CO_E_NOMEM;
    }
    co_rng_shuffle(s->order, (uint32_t)options->count, &place);
    st = dirichlet_count(s, options);
    for (size_t c = 0; c < s->classes && st == CO_OK; c++) {
        dirichlet_draw(weight, s->ranks, self->alpha, seed, c);
        dirichlet_cut_label(s->end + c * s->ranks, weight, s->ranks, s->taken[c]);
        s->taken[c] = 0;
    }
    co_free(weight);
    return st;
}

static uint32_t dirichlet_take(dirichlet_shares *s, size_t label)
{
    const uint64_t *end = s->end + label * s->ranks;

    while (s->taken[label] >= end[s->rank[label]])
        s->rank[label]++;
    s->taken[label]++;
    return s->rank[label];
}

static co_status partition_dirichlet_cut(co_parts *out, const void *state,
                                         const co_sampler_options *options)
{
    const partition_dirichlet *self = state;
    const uint64_t seed = self->seed < 0 ? options->seed : (uint64_t)self->seed;
    dirichlet_shares s = {.end = NULL};
    uint32_t *owner;
    co_status st;

    CO_TRY(co_partition_needs_labels("dirichlet", options));
    owner = co_calloc(options->count, sizeof(*owner));
    st = owner ? dirichlet_open(&s, self, seed, options) : CO_E_NOMEM;
    for (uint64_t i = 0; i < options->count && st == CO_OK; i++)
        owner[s.order[i]] =
            dirichlet_take(&s, (size_t)co_dataset_label(options->dataset, s.order[i]));
    if (st == CO_OK)
        co_parts_group(out, owner, options);
    co_free(s.order);
    co_free(s.rank);
    co_free(s.taken);
    co_free(s.end);
    co_free(owner);
    return st;
}

const co_partition_ops co_partition_dirichlet = {
    .name = "dirichlet",
    .summary = "the samples of each label shared by weights drawn from Dirichlet(alpha)",
    .keys = partition_dirichlet_keys,
    .self_size = sizeof(partition_dirichlet),
    .cut = partition_dirichlet_cut,
    .any_ranks = true,
};
