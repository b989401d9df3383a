/* search_internal.h - measured points, shared by the files of the search. */
#ifndef CO_TUNE_SEARCH_INTERNAL_H
#define CO_TUNE_SEARCH_INTERNAL_H

#include "tune/search.h"

#define CO_TUNE_REPEATS 12 /* measurements of a point that are kept */

typedef struct co_tune_entry {
    co_tune_point point;
    double rate[CO_TUNE_REPEATS];
    int n;
    double effort; /* of all */
    bool failed;   /* cannot run */
} co_tune_entry;

struct co_tune {
    co_tune_problem problem;
    co_tune_entry *entry; /* owned */
    size_t n, room;
    double done, left;
};

/* The form that points of the same run have in common. */
co_tune_point co_tune_normal(const co_tune *t, const co_tune_point *point);
bool co_tune_same(const co_tune *t, const co_tune_point *a, const co_tune_point *b);
/* NULL: it has not been measured. */
co_tune_entry *co_tune_find(const co_tune *t, const co_tune_point *point);
co_status co_tune_measure(co_tune *t, const co_tune_point *point, double effort);

#endif
