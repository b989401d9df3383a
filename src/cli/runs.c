/* runs.c - `cohort runs`: the runs in a folder side by side. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/cli.h"
#include "core/mem.h"
#include "core/plural.h"
#include "core/text.h"
#include "core/utf8.h"
#include "report/run_list.h"
#include "telemetry/format.h"

#define RUNS_KEYS  6  /* keys of configs that the table shows without --all */
#define RUNS_VALUE 32 /* characters of a value, before "..." */
#define RUNS_CELL  160
#define RUNS_FIXED 7 /* columns that every table has */

typedef struct runs_options {
    const char *sort;
    bool json, all;
} runs_options;

static const cli_argument runs_arguments[] = {
    {"DIR", true, "a folder of run directories; default: runs"},
    {NULL, false, NULL},
};

static const cli_option runs_option_table[] = {
    {"sort", 0, CLI_TEXT, offsetof(runs_options, sort), "BY", 0, 0,
     "name, accuracy (best first), loss (lowest first), time or date; default: name"},
    {"all", 'a', CLI_FLAG, offsetof(runs_options, all), NULL, 0, 0,
     "show every key of the configs that differs"},
    {"json", 0, CLI_FLAG, offsetof(runs_options, json), NULL, 0, 0,
     "print one JSON object instead of a table"},
    CLI_OPTIONS_END,
};

/* Rows in the order that is printed. */
typedef struct runs_row {
    const co_run_entry *run;
    char *const *value; /* (n_key) */
    double key;         /* what rows are sorted by: the lowest first, NaN last */
    size_t place;       /* by name */
} runs_row;

static int runs_compare(const void *a, const void *b)
{
    const runs_row *x = a, *y = b;

    if (isnan(x->key) != isnan(y->key))
        return isnan(x->key) ? 1 : -1;
    if (x->key < y->key || x->key > y->key)
        return x->key < y->key ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static const char *const runs_orders[] = {"name", "accuracy", "loss", "time", "date"};

#define RUNS_ORDERS (sizeof(runs_orders) / sizeof(runs_orders[0]))

static co_status runs_find_order(size_t *out, const char *name)
{
    for (*out = 0; name && *out < RUNS_ORDERS; ++*out)
        if (strcmp(runs_orders[*out], name) == 0)
            return CO_OK;
    if (name)
        return co_fail(CO_E_USAGE, "--sort takes name, accuracy, loss, time or date, not '%s'",
                       name);
    *out = 0;
    return CO_OK;
}

static double runs_key(const co_run_entry *run, size_t order)
{
    switch (order) {
    case 1:
        return -run->test_accuracy;
    case 2:
        return run->test_loss;
    case 3:
        return run->wall_seconds;
    case 4:
        return run->ended;
    default:
        return 0;
    }
}

/* The name of a run below the folder that was given. */
static const char *runs_name(const co_run_entry *run, const char *dir)
{
    const size_t n = strlen(dir);

    if (strncmp(run->dir, dir, n) != 0 || !run->dir[n])
        return run->dir;
    return run->dir + n + (run->dir[n] == '/');
}

static void runs_count(char out[RUNS_CELL], double value)
{
    if (isnan(value))
        snprintf(out, RUNS_CELL, "-");
    else
        co_format_count(out, RUNS_CELL, (uint64_t)value);
}

/* Column `c` of a row; a column after the fixed ones is a key of the configs. */
static void runs_cell(char out[RUNS_CELL], const runs_row *row, const char *dir, size_t c)
{
    const co_run_entry *run = row->run;
    const char *value;

    switch (c) {
    case 0:
        co_text_show(out, RUNS_CELL, runs_name(run, dir));
        return;
    case 1:
        snprintf(out, RUNS_CELL, "%s", co_run_state_name(run->state));
        return;
    case 2:
        snprintf(out, RUNS_CELL, "%.60s", run->model[0] ? CO_SHOW(run->model) : "-");
        return;
    case 3:
        runs_count(out, run->steps);
        return;
    case 4:
        co_format_real(out, RUNS_CELL, run->test_accuracy, 4);
        return;
    case 5:
        co_format_real(out, RUNS_CELL, run->test_loss, 4);
        return;
    case 6:
        if (isnan(run->wall_seconds))
            snprintf(out, RUNS_CELL, "-");
        else
            co_format_seconds(out, RUNS_CELL, run->wall_seconds);
        return;
    default:
        value = row->value[c - RUNS_FIXED];
        co_text_show(out, RUNS_VALUE, value ? value : "-");
    }
}

static const char *runs_title(const co_run_list *list, size_t c)
{
    static const char *const titles[RUNS_FIXED] = {"run",      "state", "model", "steps",
                                                   "accuracy", "loss",  "time"};

    return c < RUNS_FIXED ? titles[c] : list->key[c - RUNS_FIXED];
}

/* Numbers are aligned at their right. */
static bool runs_is_number(size_t c)
{
    return c >= 3 && c < RUNS_FIXED;
}

static void runs_print_cell(const char *text, size_t c, int width, bool last)
{
    if (runs_is_number(c))
        printf("%*s", width, text);
    else
        cli_print_cell(text, last ? 0 : width);
    fputs(last ? "\n" : "  ", stdout);
}

static co_status runs_print(const co_run_list *list, const runs_row *row, const char *dir, bool all)
{
    const size_t keys = all || list->n_key < RUNS_KEYS ? list->n_key : RUNS_KEYS;
    const size_t n = RUNS_FIXED + keys;
    int *width = co_calloc(n, sizeof(*width));
    char cell[RUNS_CELL];

    if (!width)
        return CO_E_NOMEM;
    for (size_t c = 0; c < n; c++) {
        width[c] = (int)strlen(runs_title(list, c));
        for (size_t i = 0; i < list->n; i++) {
            runs_cell(cell, &row[i], dir, c);
            if ((int)co_utf8_count(cell) > width[c])
                width[c] = (int)co_utf8_count(cell);
        }
    }
    for (size_t c = 0; c < n; c++)
        runs_print_cell(runs_title(list, c), c, width[c], c + 1 == n);
    for (size_t i = 0; i < list->n; i++)
        for (size_t c = 0; c < n; c++) {
            runs_cell(cell, &row[i], dir, c);
            runs_print_cell(cell, c, width[c], c + 1 == n);
        }
    co_free(width);
    if (keys < list->n_key)
        printf("\n%zu more key%s of the configs differ%s: `--all` shows them\n", list->n_key - keys,
               co_plural(list->n_key - keys), list->n_key - keys == 1 ? "s" : "");
    return CO_OK;
}

static int runs_put(json_t *object, const char *key, double value)
{
    return json_object_set_new(object, key, isfinite(value) ? json_real(value) : json_null());
}

static int runs_put_count(json_t *object, const char *key, double value)
{
    return json_object_set_new(object, key,
                               isfinite(value) ? json_integer((json_int_t)value) : json_null());
}

static json_t *runs_json(const co_run_list *list, const runs_row *row)
{
    const co_run_entry *run = row->run;
    json_t *object = json_object(), *config = json_object();
    int bad = json_object_set_new(object, "run_dir", json_string(CO_UTF8(run->dir))) |
              json_object_set_new(object, "state", json_string(co_run_state_name(run->state))) |
              json_object_set_new(object, "model", json_string(CO_UTF8(run->model))) |
              json_object_set_new(object, "dataset", json_string(CO_UTF8(run->dataset))) |
              json_object_set_new(object, "strategy", json_string(CO_UTF8(run->strategy))) |
              runs_put_count(object, "ranks", run->ranks) |
              runs_put_count(object, "steps", run->steps) |
              runs_put(object, "test_accuracy", run->test_accuracy) |
              runs_put(object, "test_loss", run->test_loss) |
              runs_put(object, "train_loss", run->train_loss) |
              runs_put(object, "samples_per_second", run->samples_per_second) |
              runs_put(object, "wall_seconds", run->wall_seconds);

    for (size_t k = 0; k < list->n_key; k++)
        if (row->value[k])
            bad |= json_object_set_new(config, list->key[k], json_string(CO_UTF8(row->value[k])));
    bad |= json_object_set_new(object, "config", config);
    if (bad)
        json_decref(object);
    return bad ? NULL : object;
}

static co_status runs_print_json(const co_run_list *list, const runs_row *row)
{
    json_t *runs = json_array();
    json_t *root = json_pack("{s:o}", "runs", runs);
    int bad = !root;

    for (size_t i = 0; i < list->n && !bad; i++)
        bad = json_array_append_new(runs, runs_json(list, &row[i]));
    if (!bad)
        bad = json_dumpf(root, stdout, CLI_JSON_STYLE);
    json_decref(root);
    putchar('\n');
    return bad ? co_fail(CO_E_NOMEM, "out of memory") : CO_OK;
}

static co_status runs_show(const co_run_list *list, const runs_options *o, const char *dir,
                           size_t order)
{
    runs_row *row = co_calloc(list->n + 1, sizeof(*row));
    co_status st;

    if (!row)
        return CO_E_NOMEM;
    for (size_t i = 0; i < list->n; i++)
        row[i] = (runs_row){&list->run[i], list->value ? list->value + i * list->n_key : NULL,
                            runs_key(&list->run[i], order), i};
    qsort(row, list->n, sizeof(*row), runs_compare);
    st = o->json ? runs_print_json(list, row) : runs_print(list, row, dir, o->all);
    co_free(row);
    return st;
}

static co_status runs_run(const void *options, int n, const char *const *argument)
{
    const runs_options *o = options;
    const char *dir = n ? argument[0] : "runs";
    co_run_list list = {.n = 0};
    size_t order;
    co_status st;

    CO_TRY(runs_find_order(&order, o->sort));
    st = co_run_list_add(&list, dir);
    if (st == CO_OK && list.n == 0)
        st = co_fail(CO_E_DATA, "%s: holds no run directory", CO_SHOW(dir));
    if (st == CO_OK)
        st = co_run_list_compare(&list);
    if (st == CO_OK)
        st = runs_show(&list, o, dir, order);
    co_run_list_free(&list);
    return st;
}

const co_command co_command_runs = {
    .name = "runs",
    .summary = "list the runs in a folder: state, results, and how their configs differ",
    .about =
        "A row for each run directory in DIR and in the folders in it, as `cohort compare` makes\n"
        "them: state, steps, accuracy and loss on the test split (of a finished run those of its\n"
        "best epoch), wall time, and the keys of config.yaml that are not the same in all runs.\n"
        "States: finished; running, while a job holds the run directory's lock; stopped, which\n"
        "`cohort train --resume` continues.",
    .example = "  cohort runs\n"
               "  cohort runs runs/both --sort accuracy\n"
               "  cohort runs --json",
    .arguments = runs_arguments,
    .options = runs_option_table,
    .options_size = sizeof(runs_options),
    .run = runs_run,
};
