/* compare_page.c - the page of `cohort compare`: groups of cells, and the runs of those that are
 * done. */
#include <math.h>

#include "core/text.h"
#include "report/page.h"
#include "report/report.h"

#define COMPARE_POINTS     100000 /* of a curve, over all runs */
#define COMPARE_RUN_POINTS 200    /* of a run, at least */

static co_status compare_no_memory(void)
{
    return co_fail(CO_E_NOMEM, "out of memory");
}

/* How many cells of a group are done, and why the first of the others is not. */
static int compare_put_state(json_t *group, const co_report *report, size_t begin, size_t end)
{
    const co_cell *other = NULL;
    size_t done = 0;

    for (size_t i = begin; i < end; i++) {
        done += report->cell[i].state == CO_CELL_DONE;
        if (report->cell[i].state != CO_CELL_DONE && !other)
            other = &report->cell[i];
    }
    return json_object_set_new(group, "done", json_integer((json_int_t)done)) |
           json_object_set_new(group, "of", json_integer((json_int_t)(end - begin))) |
           json_object_set_new(
               group, "state",
               json_string(co_cell_state_name(other ? other->state : CO_CELL_DONE))) |
           json_object_set_new(group, "why", json_string(other ? CO_SHOW(other->why) : ""));
}

static json_t *compare_metrics(const co_report *report)
{
    json_t *list = json_array();

    for (int i = 0; report->metrics && i < report->metrics->n; i++)
        (void)json_array_append_new(list, json_string(report->metrics->metric[i]->name));
    return list;
}

static json_t *compare_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static co_status compare_json(json_t **out, const co_report *report)
{
    json_t *groups = co_report_groups(report);
    const co_cell *any = &report->cell[0];
    int bad = groups == NULL;

    for (size_t i = 0, end, k = 0; !bad && i < report->n_cell; i = end, k++) {
        end = co_report_group_end(report, i);
        bad = compare_put_state(json_array_get(groups, k), report, i, end);
    }
    for (size_t i = 0; i < report->n_cell && any->state != CO_CELL_DONE; i++)
        any = &report->cell[i];
    *out = bad ? NULL
               : json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:b, s:o, s:O}", "config",
                           CO_SHOW(report->config), "seeds", report->seeds ? report->seeds : "",
                           "model", CO_SHOW(any->model), "dataset", CO_SHOW(any->dataset), "batch",
                           compare_number(any->batch), "epochs", compare_number(any->epochs),
                           "has_seeds", report->n_seed > 1, "metrics", compare_metrics(report),
                           "groups", groups);
    json_decref(groups);
    return *out ? CO_OK : compare_no_memory();
}

static co_status compare_runs(json_t *runs, const co_report *report)
{
    const size_t share = COMPARE_POINTS / (report->n_cell ? report->n_cell : 1);
    const size_t most = share > CO_PAGE_MAX_POINTS   ? CO_PAGE_MAX_POINTS
                        : share < COMPARE_RUN_POINTS ? COMPARE_RUN_POINTS
                                                     : share;

    for (size_t i = 0; i < report->n_cell; i++) {
        json_t *run;

        if (report->cell[i].state != CO_CELL_DONE)
            continue;
        CO_TRY(co_page_run(&run, report->cell[i].dir, most));
        if (json_array_append_new(runs, run) != 0)
            return compare_no_memory();
    }
    return CO_OK;
}

co_status co_report_write_page(const char *path, const co_report *report)
{
    json_t *runs = json_array(), *compare = NULL;
    co_status st = runs ? compare_json(&compare, report) : compare_no_memory();

    if (st == CO_OK)
        st = compare_runs(runs, report);
    if (st == CO_OK)
        st = co_page_write(path, runs, report->machine, compare);
    json_decref(compare);
    json_decref(runs);
    return st;
}
