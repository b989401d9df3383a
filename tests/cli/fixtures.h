/* fixtures.h - small configs and data sets in the scratch folder. */
#ifndef TESTS_CLI_FIXTURES_H
#define TESTS_CLI_FIXTURES_H

#include <stddef.h>
#include <stdint.h>

/* A config that trains quickly on synthetic images: 256 of (1, 8, 8), 4 classes. */
#define FIXTURES_CONFIG                                                                            \
    "model: {name: mlp, hidden: [16]}\n"                                                           \
    "data: {name: synthetic, shape: [1, 8, 8], classes: 4, samples: 256}\n"                        \
    "batch: 32\n"                                                                                  \
    "epochs: 2\n"                                                                                  \
    "optimizer: {name: sgd, lr: 0.1, momentum: 0.9}\n"

/* The same network on the IDX files of a folder. */
#define FIXTURES_IDX_CONFIG                                                                        \
    "model: {name: mlp, hidden: [16]}\n"                                                           \
    "data: {name: mnist, path: %s}\n"                                                              \
    "batch: 16\n"                                                                                  \
    "epochs: 1\n"

/* Damage to the training images in a folder of IDX files. */
typedef enum fixtures_damage {
    FIXTURES_SOUND,
    FIXTURES_MISSING,      /* no such file */
    FIXTURES_EMPTY,        /* zero bytes */
    FIXTURES_CUT_HEADER,   /* ends within the header */
    FIXTURES_CUT,          /* ends within the last image */
    FIXTURES_LONG,         /* one extra byte */
    FIXTURES_OTHER_MAGIC,  /* the magic number of labels */
    FIXTURES_OTHER_TYPE,   /* elements of another type */
    FIXTURES_NOT_IDX,      /* a web page */
    FIXTURES_HUGE_COUNT,   /* the header claims 2^32 - 1 images */
    FIXTURES_HUGE_IMAGE,   /* ... of 2^32 - 1 by 2^32 - 1 pixels */
    FIXTURES_FEWER_LABELS, /* 10 labels for 64 images */
    FIXTURES_BAD_LABEL,    /* a label of 10 */
    FIXTURES_GZIP,         /* none: valid, compressed */
    FIXTURES_GZIP_CUT,     /* compressed, last 20 bytes missing */
    FIXTURES_GZIP_DAMAGED, /* compressed, one byte changed */
    FIXTURES_GZIP_LYING,   /* compressed; the trailer claims 4 GiB */
    FIXTURES_FOLDER        /* a folder of that name */
} fixtures_damage;

/* Create `folder` with four IDX files: 64 training and 32 test images of 28 x 28. */
void fixtures_make_idx(const char *folder, fixtures_damage damage);

#endif
