/*
 * search.h - finds settings that are fast by measuring few of all combinations.
 *
 * Knows no clock, no setting and no training: who asks gives the axes, and a function that measures
 * a point. Axes are searched one after another. Candidates get short measurements, "looks", in
 * turns, so that other load on the machine affects all of them, and only those that are near the
 * fastest get further ones (successive halving: Jamieson, Talwalkar, arXiv:1502.07943).
 */
#ifndef CO_TUNE_SEARCH_H
#define CO_TUNE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>

#include <cohort/status.h>

#define CO_TUNE_MAX_AXES   6
#define CO_TUNE_MAX_VALUES 24
#define CO_TUNE_MARGIN     0.02 /* that a change has to gain */

/* A combination: an index of each axis. */
typedef struct co_tune_point {
    int value[CO_TUNE_MAX_AXES];
} co_tune_point;

typedef struct co_tune_axis {
    int n;                           /* values */
    int usual;                       /* the default's index; -1: none */
    bool open[CO_TUNE_MAX_VALUES];   /* may be taken; those of the first point are anyway */
    bool ordered;                    /* rates rise and fall with the size: no need to try all */
    double size[CO_TUNE_MAX_VALUES]; /* of each value, if ordered */
} co_tune_axis;

typedef struct co_tune_problem {
    int n_axis;
    co_tune_axis axis[CO_TUNE_MAX_AXES]; /* the first one matters most for the others */
    /* Samples per second; 0: the point cannot run. `effort` is 1 for a whole measurement, less for
       one that is as much shorter. An error ends the search. */
    co_status (*measure)(double *rate, void *arg, const co_tune_point *point, double effort);
    /* Clear those of `take` (of the axis, at this point) that need no measurement; NULL: none. */
    void (*shortlist)(bool *take, void *arg, const co_tune_point *point, int axis);
    /* Points that are one and the same run get one form; NULL: all differ. */
    void (*normalize)(co_tune_point *point, void *arg);
    void *arg; /* borrowed */
} co_tune_problem;

typedef struct co_tune co_tune;

/* `problem` is copied. */
co_status co_tune_create(co_tune **out, const co_tune_problem *problem);
void co_tune_destroy(co_tune *tune);
/* Let a value be taken from now on. */
void co_tune_open(co_tune *tune, int axis, int value);

/* Measure a point briefly, unless it has been. */
co_status co_tune_look(co_tune *tune, const co_tune_point *point);
/* From *at to a point that is at least as fast, among open values. */
co_status co_tune_improve(co_tune_point *at, co_tune *tune);
/* The fastest of all combinations of open values, each measured once. */
co_status co_tune_grid(co_tune_point *at, co_tune *tune);
/* Take back each change from `from` to *at that gains less than a fiftieth; gain[axis] is what each
   of the others gains, as a fraction: what taking it back would lose. Without `measure` by what is
   known, as after a grid. */
co_status co_tune_confirm(co_tune_point *at, double gain[CO_TUNE_MAX_AXES], co_tune *tune,
                          const co_tune_point *from, bool measure);

/* The median of what was measured at a point; 0: nothing, or it cannot run. */
double co_tune_rate(const co_tune *tune, const co_tune_point *point);
/* Measured points, in the order of their first measurement; false after the last. */
bool co_tune_at(co_tune_point *out, double *rate, const co_tune *tune, size_t i);
/* Efforts so far, and how many there may still be in the present call, by now. */
void co_tune_progress(double *done, double *left, const co_tune *tune);

#endif
