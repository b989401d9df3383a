/* search.c - races between candidates, axis by axis. */
#include <math.h>
#include <string.h>

#include "tune/search_internal.h"

#define SEARCH_LOOKS  8                    /* at a candidate, at most; a whole measurement in all */
#define SEARCH_LOOK   (1.0 / SEARCH_LOOKS) /* effort of one */
#define SEARCH_DOUBT  0.45 /* up to here below the best a first look is taken twice */
#define SEARCH_FINAL  2    /* candidates of an axis that get further looks */
#define SEARCH_WORSE  2    /* steps of a walk in a row that end it */
#define SEARCH_PASSES 3    /* over all axes, while something changes */
#define SEARCH_PATIENT                                                                             \
    5 /* whole measurements; then candidates get few looks: how many near ones                     \
         there are, and how long they stay near, is chance */
#define SEARCH_FEW  2
#define SEARCH_RACE (CO_TUNE_MAX_VALUES + 1)

/* How far below the best a candidate is out, after so many looks. */
static const double search_slack[SEARCH_LOOKS] = {0.2, 0.15, 0.1, 0.08, 0.06, 0.05, 0.05, 0.05};

/* Candidates of a race; the first one holds the place. */
typedef struct search_race {
    co_tune_point point[SEARCH_RACE];
    int n;
} search_race;

/* Looks at a candidate, of `most`. */
static int search_looks(const co_tune *t, int most)
{
    return t->done < SEARCH_PATIENT || most < SEARCH_FEW ? most : SEARCH_FEW;
}

/* One more look at a point that has had fewer than `n`. */
static co_status search_look(co_tune *t, const co_tune_point *point, int n)
{
    const co_tune_entry *e = co_tune_find(t, point);

    return e && (e->failed || e->n >= n) ? CO_OK : co_tune_measure(t, point, SEARCH_LOOK);
}

co_status co_tune_look(co_tune *tune, const co_tune_point *point)
{
    return search_look(tune, point, 1);
}

/* ---- a race ---- */

static void search_add(search_race *race, const co_tune *t, const co_tune_point *point)
{
    for (int i = 0; i < race->n; i++)
        if (co_tune_same(t, &race->point[i], point))
            return;
    if (race->n < SEARCH_RACE)
        race->point[race->n++] = *point;
}

static double search_best(const co_tune *t, const search_race *race)
{
    double best = 0;

    for (int i = 0; i < race->n; i++)
        best = fmax(best, co_tune_rate(t, &race->point[i]));
    return best;
}

/* After `looks`: those that are near the best, and of them the fastest; later, only those that
   are not below the first one, which stays. */
static void search_cut(search_race *race, const co_tune *t, int looks)
{
    const double least = fmax((1 - search_slack[looks - 1]) * search_best(t, race),
                              looks > SEARCH_LOOKS / 2 ? co_tune_rate(t, &race->point[0]) : 0);
    search_race kept = {.n = 1, .point = {race->point[0]}};

    for (int i = 1; i < race->n; i++) {
        const double rate = co_tune_rate(t, &race->point[i]);
        int faster = 0;

        for (int k = 1; k < race->n; k++)
            faster += co_tune_rate(t, &race->point[k]) > rate;
        if (rate > 0 && rate >= least && faster < SEARCH_FINAL)
            kept.point[kept.n++] = race->point[i];
    }
    *race = kept;
}

/* A look at each that has had fewer than `n`, every second time backward. The first one is the only
   one that may be far behind: it needs no second look then. */
static co_status search_round(co_tune *t, const search_race *race, int n)
{
    const double best = search_best(t, race);

    for (int i = 0; i < race->n; i++) {
        const co_tune_point *point = &race->point[n % 2 ? i : race->n - 1 - i];

        if (n == 1 || co_tune_rate(t, point) > (1 - SEARCH_DOUBT) * best)
            CO_TRY(search_look(t, point, n));
    }
    return CO_OK;
}

/* A second look at those whose first one may have been disturbed. */
static co_status search_doubt(co_tune *t, const search_race *race)
{
    const double best = search_best(t, race);

    for (int i = 0; i < race->n; i++) {
        const double rate = co_tune_rate(t, &race->point[i]);

        if (rate < (1 - search_slack[0]) * best && rate > (1 - SEARCH_DOUBT) * best)
            CO_TRY(search_look(t, &race->point[i], 2));
    }
    return CO_OK;
}

/* One candidate is left, and the place is not its own by far more than measurements vary. */
static bool search_is_clear(const search_race *race, const co_tune *t, int looks)
{
    return race->n == 1 ||
           (race->n == 2 && co_tune_rate(t, &race->point[0]) <
                                (1 - search_slack[looks - 1]) * co_tune_rate(t, &race->point[1]));
}

/* `at` is in the race, and stays unless another one is faster by the margin. */
static co_status search_run(co_tune_point *at, co_tune *t, search_race *race, int looks)
{
    double best;

    CO_TRY(search_round(t, race, 1));
    if (looks > 1)
        CO_TRY(search_doubt(t, race));
    for (int n = 1; n < search_looks(t, looks); n++) {
        search_cut(race, t, n);
        if (search_is_clear(race, t, n))
            break;
        CO_TRY(search_round(t, race, n + 1));
    }
    best = (1 + CO_TUNE_MARGIN) * co_tune_rate(t, &race->point[0]);
    for (int i = 1; i < race->n; i++)
        if (co_tune_rate(t, &race->point[i]) > best) {
            best = co_tune_rate(t, &race->point[i]);
            *at = race->point[i];
        }
    return CO_OK;
}

/* ---- axis by axis ---- */

/* Open values of an axis that are worth a measurement. */
static void search_shortlist(bool *take, const co_tune *t, const co_tune_point *at, int axis)
{
    memcpy(take, t->problem.axis[axis].open, CO_TUNE_MAX_VALUES * sizeof(*take));
    if (t->problem.shortlist)
        t->problem.shortlist(take, t->problem.arg, at, axis);
}

static double search_expect(const co_tune *t, int from)
{
    double efforts = 0;

    for (int a = from; a < t->problem.n_axis; a++) {
        int n = 0;

        for (int v = 0; v < t->problem.axis[a].n; v++)
            n += t->problem.axis[a].open[v];
        efforts += n > 1 ? SEARCH_LOOK * (n + SEARCH_LOOKS) : 0;
    }
    return efforts;
}

/* The next value up or down from one; -1: none. */
static int search_next_size(const co_tune_axis *axis, const bool *take, int from, int direction)
{
    int next = -1;

    for (int v = 0; v < axis->n; v++)
        if (take[v] && direction * (axis->size[v] - axis->size[from]) > 0 &&
            (next < 0 || direction * (axis->size[next] - axis->size[v]) > 0))
            next = v;
    return next;
}

/* Candidates from `base` up and down an axis, each way until it gets worse. */
static co_status search_walk(search_race *race, co_tune *t, const co_tune_point *base, int axis)
{
    bool take[CO_TUNE_MAX_VALUES];

    CO_TRY(search_look(t, base, 1));
    search_shortlist(take, t, base, axis);
    for (int direction = 1; direction >= -1; direction -= 2) {
        double best = co_tune_rate(t, base);
        int v = base->value[axis];

        for (int worse = 0; worse < SEARCH_WORSE;) {
            co_tune_point point = *base;

            v = search_next_size(&t->problem.axis[axis], take, v, direction);
            if (v < 0)
                break;
            point.value[axis] = v;
            search_add(race, t, &point);
            CO_TRY(search_look(t, &point, 1));
            worse = co_tune_rate(t, &point) > best ? 0 : worse + 1;
            best = fmax(best, co_tune_rate(t, &point));
        }
    }
    return CO_OK;
}

/* Values of the first axis, with the others as they are by default, as what the start has set badly
   must not decide here, and each with its best value of the ordered axes. */
static co_status search_first(co_tune_point *at, co_tune *t)
{
    const co_tune_problem *p = &t->problem;
    const co_tune_point start = *at;
    bool take[CO_TUNE_MAX_VALUES];

    t->left = search_expect(t, 0);
    search_shortlist(take, t, at, 0);
    for (int v = 0; v < p->axis[0].n; v++) {
        search_race race = {.n = 1, .point = {*at}};
        co_tune_point point = start;

        if (!take[v])
            continue;
        point.value[0] = v;
        for (int a = 1; a < p->n_axis; a++)
            if (p->axis[a].usual >= 0 && p->axis[a].open[p->axis[a].usual])
                point.value[a] = p->axis[a].usual;
        point = co_tune_normal(t, &point);
        search_add(&race, t, &point);
        for (int a = 1; a < p->n_axis; a++)
            if (p->axis[a].ordered)
                CO_TRY(search_walk(&race, t, &point, a));
        CO_TRY(search_run(at, t, &race, 2));
    }
    return CO_OK;
}

/* The best known point with each value of an axis: they may have been measured at a bad time. */
static void search_add_best(search_race *race, const co_tune *t, int axis, const bool *take)
{
    for (int v = 0; v < t->problem.axis[axis].n; v++) {
        const co_tune_entry *best = NULL;

        for (size_t i = 0; i < t->n && take[v]; i++)
            if (t->entry[i].point.value[axis] == v &&
                (!best || co_tune_rate(t, &t->entry[i].point) > co_tune_rate(t, &best->point)))
                best = &t->entry[i];
        if (best)
            search_add(race, t, &best->point);
    }
}

static co_status search_axis(co_tune_point *at, co_tune *t, int axis, int looks)
{
    const co_tune_problem *p = &t->problem;
    search_race race = {.n = 1, .point = {*at}};
    const co_tune_point base = co_tune_normal(t, at); /* without what the start has set in vain */
    bool take[CO_TUNE_MAX_VALUES];

    search_shortlist(take, t, at, axis);
    if (p->axis[axis].ordered)
        CO_TRY(search_walk(&race, t, &base, axis));
    for (int v = 0; v < p->axis[axis].n && !p->axis[axis].ordered; v++) {
        co_tune_point point = base;

        point.value[axis] = v;
        if (take[v])
            search_add(&race, t, &point);
    }
    if (axis == 0)
        search_add_best(&race, t, axis, take);
    return race.n > 1 ? search_run(at, t, &race, looks) : CO_OK;
}

co_status co_tune_improve(co_tune_point *at, co_tune *tune)
{
    CO_TRY(search_first(at, tune));
    for (int pass = 0; pass < SEARCH_PASSES; pass++) {
        const co_tune_point before = *at;

        for (int a = pass ? 0 : 1; a < tune->problem.n_axis; a++) {
            tune->left = search_expect(tune, a);
            CO_TRY(search_axis(at, tune, a, pass ? SEARCH_LOOKS : 2));
        }
        if (pass && memcmp(&before, at, sizeof(before)) == 0)
            break;
    }
    return CO_OK;
}

/* ---- what each change is worth ---- */

/* Looks in turns, until one is clearly faster. */
static co_status search_weigh(co_tune *t, const co_tune_point *at, const co_tune_point *without)
{
    for (int n = 1; n <= search_looks(t, SEARCH_LOOKS); n++) {
        const double slack = n == 1 ? SEARCH_DOUBT : search_slack[n - 1];

        CO_TRY(search_look(t, at, n));
        CO_TRY(search_look(t, without, n));
        if (co_tune_rate(t, without) < (1 - slack) * co_tune_rate(t, at))
            break;
    }
    return CO_OK;
}

/* What *at gains over `without`. */
static co_status search_gain(double *gain, co_tune *t, const co_tune_point *at,
                             const co_tune_point *without, bool measure)
{
    CO_TRY(measure ? search_weigh(t, at, without) : search_look(t, without, 1));
    *gain = co_tune_rate(t, without) > 0 ? co_tune_rate(t, at) / co_tune_rate(t, without) - 1
                                         : INFINITY;
    return CO_OK;
}

/* Take back what makes no difference to the run. */
static void search_reduce(co_tune_point *at, const co_tune *t, const co_tune_point *from)
{
    for (int a = 0; a < t->problem.n_axis; a++) {
        co_tune_point without = *at;

        without.value[a] = from->value[a];
        if (co_tune_same(t, at, &without))
            *at = without;
    }
}

co_status co_tune_confirm(co_tune_point *at, double gain[CO_TUNE_MAX_AXES], co_tune *tune,
                          const co_tune_point *from, bool measure)
{
    bool again = true;

    tune->left = 2 * SEARCH_LOOK * SEARCH_LOOKS;
    while (again) {
        again = false;
        search_reduce(at, tune, from);
        for (int a = 0; a < tune->problem.n_axis && !again; a++) {
            co_tune_point without = *at;

            without.value[a] = from->value[a];
            gain[a] = 0;
            if (at->value[a] == from->value[a])
                continue;
            CO_TRY(search_gain(&gain[a], tune, at, &without, measure));
            again = gain[a] < CO_TUNE_MARGIN;
            if (again)
                *at = without;
        }
    }
    return CO_OK;
}
