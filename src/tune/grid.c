/* grid.c - all combinations, for comparison with the search. */
#include <string.h>

#include "tune/search_internal.h"

/* The next combination of open values; false: that was the last. */
static bool grid_next(co_tune_point *point, const co_tune *t)
{
    for (int a = t->problem.n_axis - 1; a >= 0; a--) {
        do
            point->value[a]++;
        while (point->value[a] < t->problem.axis[a].n && !t->problem.axis[a].open[point->value[a]]);
        if (point->value[a] < t->problem.axis[a].n)
            return true;
        for (point->value[a] = 0; !t->problem.axis[a].open[point->value[a]];)
            point->value[a]++;
    }
    return false;
}

static bool grid_is_normal(const co_tune *t, const co_tune_point *point)
{
    const co_tune_point normal = co_tune_normal(t, point);

    return memcmp(&normal, point, sizeof(normal)) == 0;
}

co_status co_tune_grid(co_tune_point *at, co_tune *tune)
{
    const co_tune_problem *p = &tune->problem;
    co_tune_point first = {{0}}, point;
    double best = 0;

    for (int a = 0; a < p->n_axis; a++)
        while (!p->axis[a].open[first.value[a]])
            if (++first.value[a] == p->axis[a].n)
                return CO_OK;
    tune->left = 0;
    point = first;
    do
        tune->left += grid_is_normal(tune, &point);
    while (grid_next(&point, tune));
    point = first;
    do {
        const co_tune_entry *e = co_tune_find(tune, &point);

        if (!e || (e->effort < 1 && !e->failed))
            CO_TRY(co_tune_measure(tune, &point, 1));
        if (co_tune_rate(tune, &point) > best) {
            best = co_tune_rate(tune, &point);
            *at = point;
        }
    } while (grid_next(&point, tune));
    return CO_OK;
}
