/* normalize.h - from bytes to what a network gets: (x / 255 - mean) / std per channel. */
#ifndef CO_IMAGE_NORMALIZE_H
#define CO_IMAGE_NORMALIZE_H

#include "core/config.h"
#include "image/lookup_table.h"

typedef struct co_normalize {
    co_reals mean, std;
    const co_value *value; /* where they are, or NULL */
} co_normalize;

/* From `normalize: NAME` or {mean: ..., std: ...}; NULL: bytes / 255. */
co_status co_normalize_read(co_normalize *out, const co_value *value, co_config *config);
/* (channels): what each byte becomes; the caller frees it. */
co_status co_normalize_table(co_lookup_table **out, const co_normalize *normalize, size_t channels);

#endif
