/* manifest_internal.h - fields of a manifest, shared by its writer and its reader. */
#ifndef CO_CHECKPOINT_MANIFEST_INTERNAL_H
#define CO_CHECKPOINT_MANIFEST_INTERNAL_H

#include <jansson.h>

#include "checkpoint/manifest.h"

#define MANIFEST_FORMAT "cohort-checkpoint"

typedef struct manifest_text {
    const char *name; /* NULL ends the list */
    size_t offset;    /* of a char[CO_MANIFEST_MAX_TEXT] */
} manifest_text;

extern const manifest_text manifest_texts[];
extern const co_number manifest_numbers[];

/* SHA-256 of a manifest without its member `seal`, which is removed: detects any change. */
co_status manifest_seal(char out[65], json_t *root, const char *where);

#endif
