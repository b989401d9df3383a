/*
 * compress.h - sums the gradients of all ranks with fewer bytes, by a compressor (ext/compress.h),
 * as their ranges become final.
 *
 * Used instead of the reducer (reduce.h) from step `start` on.
 */
#ifndef CO_STRATEGY_COMPRESS_H
#define CO_STRATEGY_COMPRESS_H

#include <cohort/ext/comm.h>
#include <cohort/ext/compress.h>
#include <cohort/ext/strategy.h>

#include "core/plugin.h"

typedef struct co_compress co_compress;

extern const co_compressor_ops *const co_compressors[]; /* NULL-ended */
extern const co_plugins co_compressor_plugins;
extern const co_compressor_ops co_compressor_topk, co_compressor_powersgd;
extern const co_compressor_ops co_compressor_bf16, co_compressor_fp16;
extern const co_key co_compressor_common_keys[];

/* Create from the config value (a name or {name, keys}). *out is NULL for a null value and for
   "none". CO_E_USAGE also if the strategy has a tree, because what is sent depends on the number of
   ranks. */
co_status co_compress_create(co_compress **out, const co_value *value, const co_strategy *strategy,
                             double bucket_mib);
/* Takes NULL. If pieces are in flight, this rank has failed, and the others are notified. */
void co_compress_destroy(co_compress *compress);

/* Whether this step compresses; false for NULL. */
bool co_compress_is_on(const co_compress *compress);
/* [begin, end) is final: post complete pieces and make progress. */
co_status co_compress_ready(co_compress *compress, size_t begin, size_t end);
/* All is final: post the rest and wait until the gradient is the sum. */
co_status co_compress_finish(co_compress *compress);
/* The step is over; or the next one is `step`. Take NULL. */
void co_compress_next(co_compress *compress);
void co_compress_resume(co_compress *compress, uint64_t step);

/* Like co_strategy_ops.rescale; takes NULL. */
void co_compress_rescale(co_compress *compress, double factor);
/* Like co_strategy_ops.persistent; the memory, if there is one, comes first. Take NULL. */
float *co_compress_persistent(const co_compress *compress, size_t i);
bool co_compress_is_partial_sum(const co_compress *compress, size_t i);
/* (2): size of the gradients of this rank's steps so far, and bytes sent for them. */
const uint64_t *co_compress_bytes(const co_compress *compress);

/* --- for compressors --- */

/* Start an operation on the store's queue, which it is to wait for by co_request_order. */
co_status co_compress_send(co_request **request, const co_compressor *compressor,
                           co_coll_args args);

#endif
