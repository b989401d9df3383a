/* loader_expect.c - says to the data set which samples the batches to come have, so that one that
   fetches them can do so in time. */
#include "data/loader_internal.h"

#include "core/mem.h"

#define LOADER_EXPECT 4096 /* samples */

co_status loader_expect_begin(co_loader *l, uint64_t most)
{
    if (l->labels || !co_dataset_expects(l->dataset))
        return CO_OK;
    l->expect_most = most ? most : 1;
    l->expect_sample = co_calloc((size_t)l->expect_most, sizeof(*l->expect_sample));
    l->expects = l->expect_sample != NULL;
    return l->expects ? CO_OK : CO_E_NOMEM;
}

static bool loader_expect_step(co_loader *l, uint64_t step)
{
    uint64_t n = 0;

    for (int rank = l->rank; rank < l->rank + l->shards; rank++) {
        if (co_sampler_indices(l->sampler, l->expect_sample + n, l->epoch, step, rank) != CO_OK)
            return false;
        n += co_sampler_local(l->sampler, step, rank);
    }
    return n == 0 || co_dataset_expect(l->dataset, l->expect_sample, n);
}

void loader_expect(co_loader *l)
{
    const uint64_t steps = co_sampler_steps(l->sampler);

    if (!l->expects)
        return;
    if (l->expect_epoch != l->epoch || l->expect_end < l->step) {
        l->expect_epoch = l->epoch;
        l->expect_end = l->step;
    }
    while (l->expects && l->expect_end < steps &&
           (l->expect_end - l->step) * l->expect_most < LOADER_EXPECT)
        l->expects = loader_expect_step(l, l->expect_end++);
}

void loader_expect_end(co_loader *l)
{
    if (l->expect_sample)
        (void)co_dataset_expect(l->dataset, NULL, 0);
    co_free(l->expect_sample);
}
