/*
 * pickle.h - reads the pickles of CIFAR's Python version: one dictionary of numbers, strings, lists
 * of them and arrays of bytes.
 *
 * Nothing is imported or called. The functions and classes of numpy in those files are recognised
 * by name, with the arguments that they have there; every other opcode, name or shape is an error.
 */
#ifndef CO_DATA_PICKLE_H
#define CO_DATA_PICKLE_H

#include <cohort/status.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CO_PICKLE_MAX_KEYS   16
#define CO_PICKLE_MAX_LISTS  16
#define CO_PICKLE_MAX_TUPLES 64
#define CO_PICKLE_MAX_TUPLE  8 /* values of each */
#define CO_PICKLE_MAX_ARRAYS 8
/* Limit on all values read: five times CIFAR-100's. Each takes 32 bytes, in up to two places. */
#define CO_PICKLE_MAX_VALUES ((size_t)1 << 20)

typedef enum co_pickle_kind {
    CO_PICKLE_NONE,
    CO_PICKLE_BOOL,
    CO_PICKLE_INT,
    CO_PICKLE_STRING,
    CO_PICKLE_TUPLE,
    CO_PICKLE_LIST,
    CO_PICKLE_ARRAY,
    /* only while a file is parsed: */
    CO_PICKLE_MARK,
    CO_PICKLE_GLOBAL,
    CO_PICKLE_BYTE_TYPE, /* numpy's dtype of uint8 */
    CO_PICKLE_DICT
} co_pickle_kind;

typedef struct co_pickle_value {
    co_pickle_kind kind;
    int64_t number;    /* INT, BOOL: the value; else the index of a tuple, list, array or name */
    const uint8_t *at; /* STRING, borrowed from the file */
    size_t n;
} co_pickle_value;

/* Zero is empty. */
typedef struct co_pickle_values {
    co_pickle_value *at; /* owned */
    size_t n, room;
} co_pickle_values;

typedef struct co_pickle_array {
    const uint8_t *at; /* borrowed from the file: rows * columns bytes */
    uint64_t rows, columns;
    bool fortran; /* column-major */
} co_pickle_array;

typedef struct co_pickle {
    co_pickle_values list[CO_PICKLE_MAX_LISTS];
    co_pickle_value tuple[CO_PICKLE_MAX_TUPLES][CO_PICKLE_MAX_TUPLE];
    size_t tuple_n[CO_PICKLE_MAX_TUPLES]; /* values of each */
    co_pickle_array array[CO_PICKLE_MAX_ARRAYS];
    co_pickle_value key[CO_PICKLE_MAX_KEYS], value[CO_PICKLE_MAX_KEYS];
    size_t n_list, n_tuple, n_array, n_key, n_dict;
} co_pickle;

/* Parse the dictionary in `bytes`, which must outlive `out`. Everything else is CO_E_DATA, with a
   message that begins with `name`; then there is nothing to free. */
co_status co_pickle_parse(co_pickle *out, const uint8_t *bytes, size_t size, const char *name);
void co_pickle_free(co_pickle *pickle);

/* Look up by key; NULL if the dictionary has no such list or array. Borrowed. */
const co_pickle_values *co_pickle_list(const co_pickle *pickle, const char *key);
const co_pickle_array *co_pickle_get_array(const co_pickle *pickle, const char *key);

#endif
