/*
 * ema.c - an exponential moving average of the weights: one pass over the flat store.
 *
 * Every rank keeps it for itself: with equal weights the averages are equal, and no message is
 * needed. Running statistics differ from rank to rank, but the mean over ranks of their averages
 * is the average of their means. Must not know evaluation or files.
 */
#include "step/ema.h"

#include <string.h>

#include "core/mem.h"

co_status co_ema_create(co_ema **out, const co_ema_options *options, const co_store *store)
{
    co_ema *ema = co_calloc(1, sizeof(*ema));

    if (!ema)
        return CO_E_NOMEM;
    ema->options = *options;
    ema->param = co_calloc_aligned(store->n, sizeof(float));
    ema->buffer = co_calloc_aligned(store->n_buffer, sizeof(float));
    if (!ema->param || !ema->buffer) {
        co_ema_destroy(ema);
        return CO_E_NOMEM;
    }
    memcpy(ema->param, store->param, store->n * sizeof(float));
    memcpy(ema->buffer, store->buffer, store->n_buffer * sizeof(float));
    *out = ema;
    return CO_OK;
}

void co_ema_destroy(co_ema *ema)
{
    if (!ema)
        return;
    co_free(ema->buffer);
    co_free(ema->param);
    co_free(ema);
}

/* a = a + rest (v - a) */
static void ema_move(float *restrict a, const float *restrict v, size_t n, float rest)
{
    for (size_t i = 0; i < n; i++)
        a[i] += rest * (v[i] - a[i]);
}

void co_ema_update(co_ema *ema, const co_store *store, uint64_t step)
{
    const double t = (double)ema->updates, early = (1 + t) / (10 + t);
    double keep = ema->options.decay;

    if (step % (uint64_t)ema->options.every != 0)
        return;
    if (ema->options.warmup && early < keep)
        keep = early;
    ema_move(ema->param, store->param, store->n, (float)(1 - keep));
    ema_move(ema->buffer, store->buffer, store->n_buffer, (float)(1 - keep));
    ema->updates++;
}

static void ema_swap(float *restrict a, float *restrict b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float kept = a[i];

        a[i] = b[i];
        b[i] = kept;
    }
}

void co_ema_swap(co_ema *ema, co_store *store, bool param)
{
    if (param)
        ema_swap(ema->param, store->param, store->n);
    ema_swap(ema->buffer, store->buffer, store->n_buffer);
}
