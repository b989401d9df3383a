/* manifest_internal.h - the fields of a manifest, for its writer and its reader. */
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

/* SHA-256 of a manifest without the member that holds it: a digit that has changed is found. */
co_status manifest_seal(char out[65], json_t *root, const char *where);

#endif
