/* loader_setup.c - sets up samplers and loaders from a config. */
#include "train/loader_setup.h"

#include <stdio.h>
#include <string.h>

#include "core/thread.h"
#include "data/partition.h"
#include "device/device.h"

/* Evaluation keeps no gradients, so larger batches need little memory. */
#define FEED_TEST_BATCH_PER_RANK 250
/* With shards the batch is the same for any number of ranks; one rank may have to hold all of
   it. */
#define FEED_TEST_BATCH_PER_SHARD 64
#define FEED_TEST_BATCH_MOST      1024
/* Samples that stay on a device take at most this part of what is free without them. */
#define FEED_DEVICE_SHARE 4

static uint64_t feed_test_batch(const co_spec *spec, int ranks)
{
    const uint64_t shards = (uint64_t)spec->shards;
    uint64_t batch = shards * FEED_TEST_BATCH_PER_SHARD;

    if (!shards)
        return FEED_TEST_BATCH_PER_RANK * (uint64_t)ranks;
    if (batch > FEED_TEST_BATCH_MOST)
        batch = FEED_TEST_BATCH_MOST;
    return batch < FEED_TEST_BATCH_PER_RANK ? FEED_TEST_BATCH_PER_RANK : batch;
}

uint64_t co_feed_test_rows(const co_spec *spec)
{
    const uint64_t among = spec->shards ? (uint64_t)spec->shards : 1;

    return (feed_test_batch(spec, 1) + among - 1) / among;
}

co_status co_feed_options(co_sampler_options *out, const co_spec *spec, const co_dataset *dataset,
                          int ranks, co_split split)
{
    *out = (co_sampler_options){.count = co_dataset_count(dataset),
                                .batch = co_spec_batch(spec, ranks),
                                .ranks = spec->shards ? (int)spec->shards : ranks,
                                .seed = (uint64_t)spec->seed,
                                .dataset = dataset};
    if (split == CO_SPLIT_TRAIN)
        return co_spec_text(&out->partition, spec, spec->partition);
    out->batch = feed_test_batch(spec, ranks);
    out->sequential = true;
    return co_spec_text(&out->partition, spec, spec->test_partition);
}

static co_status feed_check_partition(const co_spec *spec, const co_value *partition, int ranks)
{
    const char *text;

    CO_TRY(co_spec_text(&text, spec, partition));
    return text ? co_value_place(co_partition_check(text, ranks), partition) : CO_OK;
}

co_status co_feed_check(const co_spec *spec, int ranks)
{
    const int parts = spec->shards ? (int)spec->shards : ranks;

    CO_TRY(feed_check_partition(spec, spec->partition, parts));
    return spec->evaluate ? feed_check_partition(spec, spec->test_partition, parts) : CO_OK;
}

/* `pad` repeats samples and `file` may omit some; totals must count each exactly once. */
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
    if (split == CO_SPLIT_TRAIN && (uint64_t)spec->shards > sampling.count)
        return co_fail(CO_E_USAGE, "shards: %lld are more than the %llu samples to train on",
                       (long long)spec->shards, (unsigned long long)sampling.count);
    CO_TRY(co_sampler_create(out, &sampling));
    if (split == CO_SPLIT_TRAIN)
        return CO_OK;
    st = feed_check_test(*out, sampling.count, sampling.ranks);
    if (st != CO_OK) {
        co_sampler_destroy(*out);
        *out = NULL;
    }
    return st;
}

/* To the sampler each shard is a rank; this rank loads the shards that it computes. */
static co_status feed_share_shards(co_tree **out, co_loader_options *loading, const co_spec *spec,
                                   const co_comm *comm)
{
    const int rank = co_comm_rank(comm);

    if (!spec->shards)
        return CO_OK;
    CO_TRY(co_spec_check_ranks(spec, co_comm_size(comm)));
    CO_TRY(co_tree_create(out, (int)spec->shards, co_comm_size(comm)));
    loading->rank = co_tree_first(*out, rank);
    loading->shards = co_tree_first(*out, rank + 1) - loading->rank;
    return CO_OK;
}

int co_feed_readers(const co_dataset *dataset, int cores, bool on_device)
{
    const co_dataset_info *stored = co_dataset_stored(dataset);

    if (stored->encoded)
        return cores;
    return stored->in_memory && cores == 1 && !on_device ? 0 : 1;
}

static int feed_threads(const co_spec *spec, const co_feed_source *from)
{
    if (spec->loader_threads >= 0)
        return (int)spec->loader_threads;
    return co_feed_readers(from->dataset, co_thread_cores(), from->queue != NULL);
}

/* Whether `bytes` of samples may be in the memory of the device, beside `held`; else `why` says why
   not. */
static bool feed_fits(char why[CO_ON_DEVICE_WHY], const co_spec *spec, size_t bytes, size_t held,
                      co_device *device)
{
    const int64_t mib = spec->device.data_mib;
    const size_t room = co_device_room(device) + held, all = bytes + held;
    const size_t limit = mib < 0 ? room / FEED_DEVICE_SHARE : (size_t)mib << 20;

    if (all <= limit)
        return true;
    if (mib < 0)
        snprintf(why, CO_ON_DEVICE_WHY,
                 "%zu MiB of samples, more than a quarter of the %zu MiB that are free on the "
                 "device; `device: {data_mib: ...}` allows more",
                 (all >> 20) + 1, room >> 20);
    else
        snprintf(why, CO_ON_DEVICE_WHY, "%zu MiB of samples, and data_mib allows %lld",
                 (all >> 20) + 1, (long long)mib);
    return false;
}

/* Samples to the device, on all ranks or on none, so that all draw them in the same way. */
static co_status feed_bring(co_feed *out, const co_spec *spec, co_comm *comm,
                            const co_feed_source *from)
{
    co_device *device = co_queue_device(from->queue);
    int64_t all = !co_dataset_stays_on_host(out->why, &out->held, from->dataset, device) &&
                  feed_fits(out->why, spec, out->held, from->held, device);
    co_status st = CO_OK;

    if (all)
        st = co_dataset_to_device(&out->images, from->dataset, device, (uint64_t)spec->seed);
    if (st == CO_E_NOMEM || st == CO_E_DATA)
        snprintf(out->why, sizeof(out->why), "%s", co_error_message());
    else
        CO_TRY(st);
    all = out->images != NULL;
    CO_TRY(co_comm_allreduce(comm, &all, &all, 1, CO_I64, CO_MIN));
    if (all)
        return CO_OK;
    out->held = 0;
    if (!out->images)
        return CO_OK;
    co_images_destroy(out->images);
    out->images = NULL;
    snprintf(out->why, sizeof(out->why), "the device of another rank cannot hold them");
    return CO_OK;
}

static co_status feed_create_loader(co_feed *out, co_loader_options *loading)
{
    if (!out->images)
        return co_loader_create(&out->loader, loading);
    loading->threads = out->readers = 0;
    return co_loader_create_labels(&out->loader, loading);
}

co_status co_feed_open(co_feed *out, const co_spec *spec, co_comm *comm, const co_feed_source *from)
{
    const co_batch *first = from->first;
    co_loader_options loading = {.dataset = from->dataset,
                                 .rank = co_comm_rank(comm),
                                 .threads = feed_threads(spec, from),
                                 .depth = (int)spec->loader_depth,
                                 .seed = (uint64_t)spec->seed,
                                 .queue = from->queue,
                                 .first_epoch = first ? first->epoch : 0,
                                 .first_step = first ? first->step : 0};
    co_status st;

    memset(out, 0, sizeof(*out));
    CO_TRY(co_feed_sampler(&out->sampler, spec, from->dataset, co_comm_size(comm), from->split));
    loading.sampler = out->sampler;
    out->readers = loading.threads;
    if (loading.first_step == co_sampler_steps(out->sampler)) { /* an epoch of which only the
                                                                   evaluation is left */
        loading.first_step = 0;
        loading.first_epoch++;
    }
    st = feed_share_shards(&out->tree, &loading, spec, comm);
    if (st == CO_OK && from->queue)
        st = feed_bring(out, spec, comm, from);
    if (st == CO_OK)
        st = feed_create_loader(out, &loading);
    if (st != CO_OK)
        co_feed_close(out);
    return st;
}

void co_feed_close(co_feed *feed)
{
    co_loader_destroy(feed->loader);
    co_images_destroy(feed->images);
    co_sampler_destroy(feed->sampler);
    co_tree_destroy(feed->tree);
    memset(feed, 0, sizeof(*feed));
}
