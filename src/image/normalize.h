/* normalize.h - normalisation of bytes: (x / 255 - mean) / std per channel. */
#ifndef CO_IMAGE_NORMALIZE_H
#define CO_IMAGE_NORMALIZE_H

#include "core/config.h"
#include "image/lookup_table.h"

typedef struct co_normalize {
    co_reals mean, std;
    const co_value *value; /* for the position in messages; may be NULL */
} co_normalize;

/* From `normalize: NAME` or {mean: ..., std: ...}; NULL: bytes / 255. */
co_status co_normalize_read(co_normalize *out, const co_value *value, co_config *config);
/* Tables from bytes to floats, (channels); free with co_free. */
co_status co_normalize_table(co_lookup_table **out, const co_normalize *normalize, size_t channels);

#endif
