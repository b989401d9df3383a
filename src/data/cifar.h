/* cifar.h - CIFAR's binary files: records of one or two labels and a 32x32 image. */
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
    const char *pickled[2];                   /* folder and file of the version for Python */
} co_cifar_layout;

extern const co_cifar_layout co_cifar10_layout, co_cifar100_layout;

/* One file. */
typedef struct co_cifar {
    co_file file;
    size_t count;  /* records */
    size_t record; /* bytes of one */
} co_cifar;

/* Map a file, plain or gzip, and check its length and every label. Anything else is CO_E_DATA, with
   a message that begins with the path. */
co_status co_cifar_open(co_cifar *out, const char *path, const co_cifar_layout *layout);
/* The same from memory, which must outlive `out`; `name` stands for the path. */
co_status co_cifar_parse(co_cifar *out, const uint8_t *bytes, size_t size,
                         const co_cifar_layout *layout, const char *name);
void co_cifar_close(co_cifar *cifar);

#endif
