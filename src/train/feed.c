/*
 * feed.c - which samples a rank gets, and reading them ahead.
 */
#include <string.h>

#include "train/trainer.h"

/* Evaluation needs no gradients, so larger batches cost little memory. */
#define FEED_TEST_BATCH_PER_RANK 250

co_status co_feed_options(co_sampler_options *out, const co_spec *spec, const co_dataset *dataset,
                          int ranks, co_split split)
{
    *out = (co_sampler_options){.count = co_dataset_count(dataset),
                                .batch = co_spec_batch(spec, ranks),
                                .ranks = ranks,
                                .seed = (uint64_t)spec->seed,
                                .dataset = dataset};
    if (split == CO_SPLIT_TRAIN)
        return co_spec_text(&out->partition, spec, spec->partition);
    out->batch = FEED_TEST_BATCH_PER_RANK * (uint64_t)ranks;
    out->sequential = true;
    return co_spec_text(&out->partition, spec, spec->test_partition);
}

/* `pad` takes some samples twice, `file` may leave some out: a total must depend on neither. */
static co_status feed_check_test(const co_sampler *sampler, uint64_t count, int ranks)
{
    uint64_t taken = 0;

    for (int r = 0; r < ranks; r++)
        taken += co_sampler_part(sampler, r);
    if (taken == count)
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "test_partition: measures %llu samples, but the test split has %llu; let each "
                   "be measured once",
                   (unsigned long long)taken, (unsigned long long)count);
}

co_status co_feed_sampler(co_sampler **out, const co_spec *spec, const co_dataset *dataset,
                          int ranks, co_split split)
{
    co_sampler_options sampling;
    co_status st;

    CO_TRY(co_feed_options(&sampling, spec, dataset, ranks, split));
    CO_TRY(co_sampler_create(out, &sampling));
    if (split == CO_SPLIT_TRAIN)
        return CO_OK;
    st = feed_check_test(*out, sampling.count, ranks);
    if (st != CO_OK) {
        co_sampler_destroy(*out);
        *out = NULL;
    }
    return st;
}

co_status co_feed_open(co_feed *out, const co_spec *spec, const co_dataset *dataset,
                       const co_comm *comm, co_split split, const co_batch *first)
{
    co_loader_options loading = {.dataset = dataset,
                                 .rank = co_comm_rank(comm),
                                 .threads = (int)spec->loader_threads,
                                 .depth = (int)spec->loader_depth,
                                 .first_epoch = first ? first->epoch : 0,
                                 .first_step = first ? first->step : 0};
    co_status st;

    memset(out, 0, sizeof(*out));
    CO_TRY(co_feed_sampler(&out->sampler, spec, dataset, co_comm_size(comm), split));
    loading.sampler = out->sampler;
    st = co_loader_create(&out->loader, &loading);
    if (st != CO_OK)
        co_feed_close(out);
    return st;
}

void co_feed_close(co_feed *feed)
{
    co_loader_destroy(feed->loader);
    co_sampler_destroy(feed->sampler);
    memset(feed, 0, sizeof(*feed));
}
