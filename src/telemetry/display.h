/*
 * display.h - what a run can show besides figures: weights, images, its network, its config.
 */
#ifndef CO_TELEMETRY_DISPLAY_H
#define CO_TELEMETRY_DISPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum co_display_kind {
    CO_DISPLAY_VALUES, /* many numbers, of which the distribution is of interest */
    CO_DISPLAY_IMAGE,
    CO_DISPLAY_NETWORK,
    CO_DISPLAY_CONFIG
} co_display_kind;

/* A tensor of the network: an input, if it has no op. */
typedef struct co_display_node {
    const char *name, *op;
    const char *const *in; /* (n_in): names of others */
    int n_in;
    const int64_t *dim; /* (n_dim): of one sample, dim[0] is 1 */
    int n_dim;
} co_display_node;

typedef struct co_display_key {
    const char *name; /* "optimizer.lr" */
    const char *text;
} co_display_key;

/* Borrowed for the call. */
typedef struct co_display {
    co_display_kind kind;
    uint64_t step;
    const char *name;   /* VALUES, IMAGE: "weights/conv1.weight" */
    const float *value; /* VALUES: (n) */
    size_t n;           /* of values, nodes or keys */
    const uint8_t *png; /* IMAGE: a file of `size` bytes */
    size_t size;
    int64_t channels, height, width; /* IMAGE */
    const co_display_node *node;     /* NETWORK: (n) */
    const co_display_key *key;       /* CONFIG: (n) */
} co_display;

#endif
