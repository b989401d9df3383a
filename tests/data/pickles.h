/* pickles.h - pickles of protocol 2, as Python 2's cPickle wrote CIFAR's. */
#ifndef CO_TESTS_DATA_PICKLES_H
#define CO_TESTS_DATA_PICKLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PICKLE_ROOM ((size_t)1 << 20)
#define PICKLE      "\x80\x02"

typedef struct pickle_writer {
    uint8_t *at; /* malloc'd */
    size_t n;
    unsigned memo; /* last index used */
} pickle_writer;

#define PICKLE_TEXT(w, literal) pickle_bytes(w, literal, sizeof(literal) - 1)

void pickle_bytes(pickle_writer *w, const void *from, size_t n);
void pickle_string(pickle_writer *w, const char *text);
void pickle_number(pickle_writer *w, unsigned value);
/* A list of n values written by `item`, from `first`. */
void pickle_list(pickle_writer *w, size_t first, size_t n,
                 void (*item)(pickle_writer *w, size_t i));
void pickle_label(pickle_writer *w, size_t i); /* i % 10 */
void pickle_file(pickle_writer *w, size_t i);
void pickle_class(pickle_writer *w, size_t i); /* "class 7" */
/* Images first .. first + n - 1. */
void pickle_array(pickle_writer *w, size_t first, size_t n, bool fortran);
uint8_t pickle_pixel(size_t record, size_t i);

/* Start a dictionary to be filled; end it with "u.". */
pickle_writer pickle_begin(void);
/* Samples first .. first + n - 1 in the form of data_batch_1 and train. */
pickle_writer pickle_cifar10(size_t first, size_t n, bool fortran);
pickle_writer pickle_cifar100(size_t first, size_t n);

#endif
