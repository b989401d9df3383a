/* points.c - points of a search, with what was measured at them. */
#include <math.h>
#include <string.h>

#include "core/mem.h"
#include "core/sort.h"
#include "tune/search_internal.h"

co_status co_tune_create(co_tune **out, const co_tune_problem *problem)
{
    *out = co_calloc(1, sizeof(**out));
    if (!*out)
        return CO_E_NOMEM;
    (*out)->problem = *problem;
    return CO_OK;
}

void co_tune_destroy(co_tune *tune)
{
    if (!tune)
        return;
    co_free(tune->entry);
    co_free(tune);
}

void co_tune_open(co_tune *tune, int axis, int value)
{
    tune->problem.axis[axis].open[value] = true;
}

co_tune_point co_tune_normal(const co_tune *t, const co_tune_point *point)
{
    co_tune_point normal = *point;

    for (int a = t->problem.n_axis; a < CO_TUNE_MAX_AXES; a++)
        normal.value[a] = 0;
    if (t->problem.normalize)
        t->problem.normalize(&normal, t->problem.arg);
    return normal;
}

bool co_tune_same(const co_tune *t, const co_tune_point *a, const co_tune_point *b)
{
    const co_tune_point x = co_tune_normal(t, a), y = co_tune_normal(t, b);

    return memcmp(&x, &y, sizeof(x)) == 0;
}

co_tune_entry *co_tune_find(const co_tune *t, const co_tune_point *point)
{
    const co_tune_point normal = co_tune_normal(t, point);

    for (size_t i = 0; i < t->n; i++)
        if (memcmp(&t->entry[i].point, &normal, sizeof(normal)) == 0)
            return &t->entry[i];
    return NULL;
}

static co_status points_enter(co_tune_entry **out, co_tune *t, const co_tune_point *point)
{
    *out = co_tune_find(t, point);
    if (*out)
        return CO_OK;
    if (t->n == t->room) {
        const size_t room = t->room ? 2 * t->room : 64;
        co_tune_entry *more = co_calloc(room, sizeof(*more));

        if (!more)
            return CO_E_NOMEM;
        if (t->n)
            memcpy(more, t->entry, t->n * sizeof(*more));
        co_free(t->entry);
        t->entry = more;
        t->room = room;
    }
    *out = &t->entry[t->n++];
    (*out)->point = co_tune_normal(t, point);
    return CO_OK;
}

static double points_rate(const co_tune_entry *e)
{
    double sorted[CO_TUNE_REPEATS];

    if (!e || e->failed || e->n == 0)
        return 0;
    memcpy(sorted, e->rate, (size_t)e->n * sizeof(*sorted));
    co_sort_doubles(sorted, (size_t)e->n);
    return sorted[e->n / 2]; /* of two the higher: other load only slows */
}

co_status co_tune_measure(co_tune *t, const co_tune_point *point, double effort)
{
    co_tune_entry *e;
    double rate = 0;

    CO_TRY(points_enter(&e, t, point));
    if (e->failed)
        return CO_OK;
    CO_TRY(t->problem.measure(&rate, t->problem.arg, &e->point, effort));
    e->effort += effort;
    t->done += effort;
    t->left = fmax(t->left - effort, 0);
    e->failed = !(rate > 0);
    if (e->n < CO_TUNE_REPEATS)
        e->rate[e->n++] = rate;
    return CO_OK;
}

double co_tune_rate(const co_tune *tune, const co_tune_point *point)
{
    return points_rate(co_tune_find(tune, point));
}

bool co_tune_at(co_tune_point *out, double *rate, const co_tune *tune, size_t i)
{
    if (i >= tune->n)
        return false;
    *out = tune->entry[i].point;
    *rate = points_rate(&tune->entry[i]);
    return true;
}

void co_tune_progress(double *done, double *left, const co_tune *tune)
{
    *done = tune->done;
    *left = tune->left;
}
