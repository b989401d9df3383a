/*
 * cifar.h - CIFAR files. Binary version: records of one or two labels and a 32x32 image. Python
 * version: pickled lists of labels and an array of images.
 */
#ifndef CO_DATA_CIFAR_H
#define CO_DATA_CIFAR_H

#include "data/file.h"

#define CO_CIFAR_SIDE       32
#define CO_CIFAR_IMAGE      ((size_t)3 * CO_CIFAR_SIDE * CO_CIFAR_SIDE) /* (C, H, W) */
#define CO_CIFAR_MAX_LABELS 2
#define CO_CIFAR_MAX_FILES  5 /* per split */

/* The files of both versions. A binary record is its labels, a byte each, then the image. */
typedef struct co_cifar_layout {
    const char *dataset;                      /* name of the data set, for messages */
    size_t labels;                            /* per record: 1 or 2 */
    const char *kind[CO_CIFAR_MAX_LABELS];    /* name of each in messages: "coarse label" */
    int32_t classes[CO_CIFAR_MAX_LABELS];     /* values of each label */
    const char *names[CO_CIFAR_MAX_LABELS];   /* files with the class names */
    const char *files[2][CO_CIFAR_MAX_FILES]; /* by split; unused ones are NULL */
    const char *folder;                       /* created by unpacking the archive */
    const char *archive;                      /* of the binary version */
    struct {
        const char *files[2][CO_CIFAR_MAX_FILES];
        const char *folder, *archive;
        const char *meta;                        /* file with the class names */
        const char *labels[CO_CIFAR_MAX_LABELS]; /* dictionary key of each label, */
        const char *names[CO_CIFAR_MAX_LABELS];  /* and of its class names in `meta` */
    } python;
} co_cifar_layout;

extern const co_cifar_layout co_cifar10_layout, co_cifar100_layout;

/* An open file; zero is closed. */
typedef struct co_cifar {
    co_file file;
    size_t count;                  /* records */
    const uint8_t *label;          /* of the first record: layout->labels bytes */
    const uint8_t *image;          /* of the first record: CO_CIFAR_IMAGE bytes */
    size_t label_step, image_step; /* bytes from one record to the next */
    uint8_t *labels, *transposed;  /* owned, or NULL: copies made of a pickle */
} co_cifar;

/* Map a file of either version, plain or gzip, and check its length and every label. CO_E_DATA,
   with a message that begins with the path, if it is anything else. */
co_status co_cifar_open(co_cifar *out, const char *path, const co_cifar_layout *layout);
/* The same from memory, which must outlive `out`; messages call it `name`. */
co_status co_cifar_parse(co_cifar *out, const uint8_t *bytes, size_t size,
                         const co_cifar_layout *layout, const char *name);
void co_cifar_close(co_cifar *cifar);

/* ---- cifar_python.c ---- */

bool co_cifar_is_pickle(const uint8_t *bytes, size_t size);
/* Fill in count, labels and images from cifar->file. Does not check labels against the classes. The
   caller closes `cifar` on failure, too. */
co_status co_cifar_take_pickle(co_cifar *cifar, const co_cifar_layout *layout, const char *name);
/* The strings in list `key` of a pickled dictionary, one per line; free with co_free. NULL unless
   there are exactly `classes` of them. CO_E_DATA if `bytes` is not such a pickle. */
co_status co_cifar_python_names(char **out, const uint8_t *bytes, size_t size, const char *key,
                                size_t classes, const char *name);

#endif
