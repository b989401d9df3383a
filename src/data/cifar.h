/*
 * cifar.h - CIFAR's files: of the binary version, records of one or two labels and a 32x32 image;
 * of the version for Python, pickled lists of labels and an array of images.
 */
#ifndef CO_DATA_CIFAR_H
#define CO_DATA_CIFAR_H

#include "data/file.h"

#define CO_CIFAR_SIDE       32
#define CO_CIFAR_IMAGE      ((size_t)3 * CO_CIFAR_SIDE * CO_CIFAR_SIDE) /* (C, H, W) */
#define CO_CIFAR_MAX_LABELS 2
#define CO_CIFAR_MAX_FILES  5 /* of a split */

/* What a record is: its labels, a byte each, then the image. */
typedef struct co_cifar_layout {
    const char *owner;                        /* data set, for messages */
    size_t labels;                            /* 1 or 2 */
    const char *kind[CO_CIFAR_MAX_LABELS];    /* what they are called: "coarse label" */
    int32_t classes[CO_CIFAR_MAX_LABELS];     /* of each */
    const char *names[CO_CIFAR_MAX_LABELS];   /* files with the names of the classes */
    const char *files[2][CO_CIFAR_MAX_FILES]; /* of each split; unused ones are NULL */
    const char *folder;                       /* that the archive unpacks to */
    const char *archive;                      /* of the version that is read here */
    struct {
        const char *files[2][CO_CIFAR_MAX_FILES];
        const char *folder, *archive;
        const char *meta;                        /* file with the names of the classes */
        const char *labels[CO_CIFAR_MAX_LABELS]; /* key of each label in a file, */
        const char *names[CO_CIFAR_MAX_LABELS];  /* and of its classes' names in `meta` */
    } python;
} co_cifar_layout;

extern const co_cifar_layout co_cifar10_layout, co_cifar100_layout;

/* One file. */
typedef struct co_cifar {
    co_file file;
    size_t count;                  /* records */
    const uint8_t *label;          /* of the first record: layout->labels bytes */
    const uint8_t *image;          /* of the first record: CO_CIFAR_IMAGE bytes */
    size_t label_step, image_step; /* bytes from a record to the next */
    uint8_t *labels, *turned;      /* owned, or NULL: what had to be copied of a pickle */
} co_cifar;

/* Map a file of either version, plain or gzip, and check its length and every label. Anything else
   is CO_E_DATA, with a message that begins with the path. */
co_status co_cifar_open(co_cifar *out, const char *path, const co_cifar_layout *layout);
/* The same from memory, which must outlive `out`; messages call it `name`. */
co_status co_cifar_parse(co_cifar *out, const uint8_t *bytes, size_t size,
                         const co_cifar_layout *layout, const char *name);
void co_cifar_close(co_cifar *cifar);

/* ---- cifar_python.c ---- */

bool co_cifar_is_pickle(const uint8_t *bytes, size_t size);
/* The rest of cifar from its file; labels are not held against the classes. */
co_status co_cifar_take_pickle(co_cifar *cifar, const co_cifar_layout *layout, const char *name);
/* The strings of list `key` of a pickled dictionary, a line each, for co_free; NULL where it has no
   `classes` of them. CO_E_DATA: it is no such pickle. */
co_status co_cifar_python_names(char **out, const uint8_t *bytes, size_t size, const char *key,
                                size_t classes, const char *name);

#endif
