/* compare_plan.c - plans the cells of a comparison and finds those that are already done. */
#include <ctype.h>
#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/compare.h"
#include "cli/lists.h"
#include "cli/machine.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/plural.h"
#include "core/text.h"
#include "core/thread.h"

#define PLAN_MAX_NAME  64 /* of a folder name, without the number of ranks */
#define PLAN_MAX_TABLE ((size_t)16 << 20)

/* A strategy of the list, in its different spellings. */
typedef struct plan_strategy {
    const char *title;  /* "local period=16" */
    const char *folder; /* "local-period-16" */
    const char *set;    /* "strategy={name: local, period: 16}" */
} plan_strategy;

/* ---- strategies ---- */

/* Replace runs of characters that a shell would need quotes for with one '-'. */
static char *plan_folder(co_arena *arena, const char *title)
{
    char *out = co_arena_alloc(arena, PLAN_MAX_NAME + 1, 1);
    size_t n = 0;

    for (; out && *title && n < PLAN_MAX_NAME; title++) {
        bool plain = isalnum((unsigned char)*title) || *title == '.' || *title == '_';

        if (plain || (n > 0 && out[n - 1] != '-'))
            out[n++] = plain ? *title : '-';
    }
    while (n > 0 && out[n - 1] == '-')
        out[--n] = '\0';
    return out;
}

static co_status plan_name_strategy(plan_strategy *all, size_t i, const compare_plan *plan,
                                    const co_value *item)
{
    const co_spec spec = {.config = plan->config};
    co_arena *arena = co_config_arena(plan->config);
    const char *text;

    CO_TRY(cli_strategy_check(item, arena));
    CO_TRY(cli_strategy_title(&all[i].title, plan->config, item));
    CO_TRY(co_spec_text(&text, &spec, item));
    all[i].folder = plan_folder(arena, all[i].title);
    all[i].set = co_arena_printf(arena, "strategy=%s", text);
    if (!all[i].folder || !all[i].set)
        return CO_E_NOMEM;
    for (size_t k = 0; k < i; k++) {
        if (strcmp(all[k].title, all[i].title) == 0)
            return co_value_fail(item, "strategy '%s' is given twice", all[i].title);
        if (strcmp(all[k].folder, all[i].folder) == 0)
            all[i].folder = co_arena_printf(arena, "%s.%zu", all[i].folder, i);
        if (!all[i].folder)
            return CO_E_NOMEM;
    }
    return CO_OK;
}

/* ---- cells ---- */

/* Add a cell with seeds[seed], or with the config's seed if there are none. */
static co_status plan_add(compare_plan *plan, const plan_strategy *strategy, int64_t ranks,
                          const co_ints *seeds, size_t seed)
{
    co_arena *arena = co_config_arena(plan->config);
    co_report *report = &plan->report;
    const size_t i = report->n_cell;
    const char *dir, *text = NULL;

    if (seeds->n) {
        text = co_arena_printf(arena, "%" PRId64, seeds->v[seed]);
        dir = text ? co_arena_printf(arena, "%s/%s-%" PRId64 "-seed-%s", plan->dir,
                                     strategy->folder, ranks, text)
                   : NULL;
        plan->seed[i] = text ? co_arena_printf(arena, "seed=%s", text) : NULL;
        if (!plan->seed[i])
            return CO_E_NOMEM;
    } else {
        dir = co_arena_printf(arena, "%s/%s-%" PRId64, plan->dir, strategy->folder, ranks);
    }
    if (!dir)
        return CO_E_NOMEM;
    plan->strategy[i] = strategy->set;
    co_cell_init(&report->cell[i], strategy->title, (int)ranks, dir);
    report->cell[i].seed = text;
    report->n_cell++;
    return CO_OK;
}

static co_status plan_fill(compare_plan *plan, const plan_strategy *strategies, size_t n,
                           const co_ints *ranks, const co_ints *seeds)
{
    co_arena *arena = co_config_arena(plan->config);
    co_report *report = &plan->report;
    const size_t n_seed = seeds->n ? seeds->n : 1, cells = n * ranks->n * n_seed;

    report->config = plan->path;
    report->n_seed = seeds->n;
    report->cell = co_arena_alloc(arena, cells, sizeof(*report->cell));
    plan->strategy = co_arena_alloc(arena, cells, sizeof(*plan->strategy));
    plan->seed = co_arena_alloc(arena, cells, sizeof(*plan->seed));
    if (!report->cell || !plan->strategy || !plan->seed)
        return CO_E_NOMEM;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < ranks->n; k++)
            for (size_t s = 0; s < n_seed; s++)
                CO_TRY(plan_add(plan, &strategies[i], ranks->v[k], seeds, s));
    return CO_OK;
}

/* "1, 2, 3", or the config's seed: for the titles of plots. */
static co_status plan_name_seeds(compare_plan *plan, const co_ints *seeds, int64_t own)
{
    co_arena *arena = co_config_arena(plan->config);
    const char *text = seeds->n ? "" : co_arena_printf(arena, "%" PRId64, own);

    for (size_t i = 0; i < seeds->n && text; i++)
        text = co_arena_printf(arena, "%s%s%" PRId64, text, i ? ", " : "", seeds->v[i]);
    plan->report.seeds = text;
    return text ? CO_OK : CO_E_NOMEM;
}

static co_status plan_name_machine(compare_plan *plan)
{
    const int cores = co_thread_cores();
    char cpu[128];

    machine_cpu_name(cpu, sizeof(cpu));
    plan->report.machine =
        co_arena_printf(co_config_arena(plan->config), "%s, %d core%s",
                        cpu[0] ? cpu : "unknown processor", cores, co_plural((uint64_t)cores));
    return plan->report.machine ? CO_OK : CO_E_NOMEM;
}

static co_status plan_default_dir(compare_plan *plan)
{
    char path[256];

    CO_TRY(co_fs_make_dated(path, sizeof(path), "runs/compare"));
    plan->dir = co_arena_strdup(co_config_arena(plan->config), path);
    plan->made = true;
    return plan->dir ? CO_OK : CO_E_NOMEM;
}

/* The resolved config of cell `i`, its seed and its metrics, with the kernels that a run by it has
   measured; `ran` NULL: none has. The caller frees *out with free. */
static co_status plan_resolve(char **out, int64_t *seed, co_metric_set *metrics,
                              const compare_plan *plan, size_t i, const char *ran)
{
    const char *set[CLI_MAX_LIST + 3] = {NULL};
    const co_train_options options = {
        .config_path = plan->path, .set = set, .ranks = plan->report.cell[i].ranks};
    size_t size = 0;
    co_spec spec;
    FILE *stream;
    co_status st = CO_OK;
    bool taken;

    *out = NULL;
    memcpy(set, plan->set->text, (size_t)plan->set->n * sizeof(*set));
    set[plan->set->n] = plan->strategy[i];
    set[plan->set->n + 1] = plan->seed[i];
    CO_TRY(co_spec_load(&spec, &options));
    *seed = spec.seed;
    *metrics = spec.metrics;
    if (ran)
        st = co_spec_take_kernels(&taken, &spec, ran);
    stream = open_memstream(out, &size);
    if (stream && st == CO_OK)
        st = co_keys_write(stream, &spec, co_spec_keys, 0);
    if ((!stream || fclose(stream) != 0) && st == CO_OK)
        st = co_fail(CO_E_NOMEM, "out of memory");
    co_spec_unload(&spec);
    return st;
}

static co_status plan_build(compare_plan *plan, const compare_options *options)
{
    const co_value *list;
    plan_strategy *strategies;
    co_ints ranks, seeds = {0};
    char *text = NULL;
    int64_t seed = 0;
    co_status st;

    CO_TRY(cli_read_list(&list, plan->config, "--strategies", options->strategies));
    CO_TRY(cli_read_numbers(&ranks, plan->config, "--ranks", options->ranks, 1, 1024));
    if (options->seeds)
        CO_TRY(
            cli_read_numbers(&seeds, plan->config, "--seeds", options->seeds, 0, 9000000000000000));
    if (seeds.n > CO_REPORT_MAX_SEEDS)
        return co_fail(CO_E_USAGE, "--seeds takes up to %d seeds, not %zu", CO_REPORT_MAX_SEEDS,
                       seeds.n);
    strategies = co_arena_alloc(co_config_arena(plan->config), list->n, sizeof(*strategies));
    if (!strategies)
        return CO_E_NOMEM;
    for (size_t i = 0; i < list->n; i++)
        CO_TRY(plan_name_strategy(strategies, i, plan, list->item[i]));
    plan->dir = options->out;
    if (!plan->dir)
        CO_TRY(plan_default_dir(plan));
    CO_TRY(plan_fill(plan, strategies, list->n, &ranks, &seeds));
    /* Report a config that cannot be read here, not once per cell. */
    st = plan_resolve(&text, &seed, &plan->metrics, plan, 0, NULL);
    free(text);
    CO_TRY(st);
    plan->report.metrics = &plan->metrics;
    for (size_t i = 0; i < plan->report.n_cell; i++)
        plan->report.cell[i].metrics = &plan->metrics;
    CO_TRY(plan_name_machine(plan));
    return plan_name_seeds(plan, &seeds, seed);
}

co_status compare_plan_open(compare_plan *out, const char *path, const compare_options *options)
{
    co_status st;

    *out = (compare_plan){.path = path, .set = &options->set, .plugins = &options->plugins};
    CO_TRY(co_config_parse(&out->config, "{}", 2, "compare"));
    st = plan_build(out, options);
    if (st != CO_OK)
        compare_plan_close(out);
    return st;
}

void compare_plan_close(compare_plan *plan)
{
    for (size_t i = 0; i < plan->report.n_cell; i++)
        co_cell_fini(&plan->report.cell[i]);
    if (plan->made) /* rmdir removes it only if nothing was written to it */
        (void)rmdir(plan->dir);
    co_config_destroy(plan->config);
    *plan = (compare_plan){0};
}

/* ---- earlier results ---- */

static bool plan_has(const co_cell *cell, const char *file)
{
    char path[4352];
    int n = snprintf(path, sizeof(path), "%s/%s", cell->dir, file);

    return n > 0 && (size_t)n < sizeof(path) && co_fs_exists(path);
}

/* Whether a finished cell used this config. */
static co_status plan_check_config(const compare_plan *plan, size_t i)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true, .max = CO_CONFIG_MAX_BYTES};
    const co_cell *cell = &plan->report.cell[i];
    const char *path = co_arena_printf(co_config_arena(plan->config), "%s/config.yaml", cell->dir);
    uint8_t *found = NULL;
    char *wanted = NULL;
    co_metric_set metrics;
    int64_t seed;
    size_t size = 0;
    co_status st = path ? co_fs_read_as(&found, &size, path, &rule) : CO_E_NOMEM;

    if (st == CO_OK)
        st = plan_resolve(&wanted, &seed, &metrics, plan, i, (const char *)found);
    if (st == CO_OK && (size != strlen(wanted) || memcmp(found, wanted, size) != 0))
        st = co_fail(CO_E_USAGE,
                     "%s is finished, but with another config than now; remove it, or give another "
                     "--out",
                     cell->dir);
    free(wanted);
    co_free(found);
    return st;
}

/* The cells in table.json of an earlier comparison, for json_decref; NULL: there are none. */
static json_t *plan_earlier_cells(const compare_plan *plan)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true, .max = PLAN_MAX_TABLE};
    const char *path = co_arena_printf(co_config_arena(plan->config), "%s/table.json", plan->dir);
    uint8_t *text = NULL;
    json_t *table, *cells;
    size_t size;

    if (!path || co_fs_read_as(&text, &size, path, &rule) != CO_OK)
        return NULL;
    table = json_loadb((const char *)text, size, 0, NULL);
    cells = json_incref(json_object_get(table, "cells"));
    json_decref(table);
    co_free(text);
    return cells;
}

/* Whether the folder holds an earlier comparison. */
static bool plan_is_ours(const compare_plan *plan)
{
    json_t *cells = plan_earlier_cells(plan);
    bool ours = json_is_array(cells);

    json_decref(cells);
    for (size_t i = 0; i < plan->report.n_cell; i++)
        ours = ours || plan_has(&plan->report.cell[i], COMPARE_LOG);
    return ours;
}

/* Whether a cell of an earlier comparison is there, and not among those to come. */
static bool plan_leaves_out(const compare_plan *plan, const char *name)
{
    const co_cell folder = {.dir = plan->dir};

    for (size_t i = 0; i < plan->report.n_cell; i++)
        if (strcmp(co_fs_name(plan->report.cell[i].dir), name) == 0)
            return false;
    return plan_has(&folder, name);
}

/* The tables would lose such a cell. */
static co_status plan_check_left_out(const compare_plan *plan)
{
    json_t *cells = plan_earlier_cells(plan), *cell;
    co_status st = CO_OK;
    size_t i;

    json_array_foreach(cells, i, cell)
    {
        const char *dir = json_string_value(json_object_get(cell, "run_dir"));

        if (st != CO_OK || !dir || !plan_leaves_out(plan, co_fs_name(dir)))
            continue;
        st = co_fail(CO_E_USAGE,
                     "%s/%s is of this comparison, whose tables would lose it: name its strategy, "
                     "ranks and seed, too (what is finished is kept), or remove it",
                     plan->dir, co_fs_name(dir));
    }
    json_decref(cells);
    return st;
}

/* Do not overwrite the user's own files. */
static co_status plan_check_owner(const compare_plan *plan, bool resume)
{
    static const char *const files[] = {"table.txt", "table.csv", "table.json", "plots.log",
                                        CO_REPORT_SCRIPT};

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const co_cell folder = {.dir = plan->dir};

        if (!plan_has(&folder, files[i]) || (resume && plan_is_ours(plan)))
            continue;
        if (resume)
            return co_fail(CO_E_USAGE,
                           "%s/%s is there, and not from a comparison, which would overwrite it; "
                           "give another --out, or move it away",
                           plan->dir, files[i]);
        return co_fail(CO_E_USAGE,
                       "%s/%s is there, and would be overwritten; continue that comparison with "
                       "--resume, or give another --out",
                       plan->dir, files[i]);
    }
    return CO_OK;
}

co_status compare_plan_take_over(compare_plan *plan, bool resume)
{
    CO_TRY(plan_check_owner(plan, resume));
    CO_TRY(plan_check_left_out(plan));
    for (size_t i = 0; i < plan->report.n_cell; i++) {
        co_cell *cell = &plan->report.cell[i];

        if (!co_fs_exists(cell->dir))
            continue;
        if (!resume)
            return co_fail(CO_E_USAGE,
                           "%s is there already; continue that comparison with --resume, or give "
                           "another --out",
                           cell->dir);
        /* Damaged cells are run again. */
        if (!plan_has(cell, "summary.json") || co_cell_read(cell) != CO_OK)
            continue;
        CO_TRY(plan_check_config(plan, i));
    }
    return CO_OK;
}

static int plan_remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)kind;
    (void)at;
    return remove(path);
}

co_status compare_plan_clear(const co_cell *cell)
{
    if (!co_fs_exists(cell->dir))
        return CO_OK;
    if (!plan_has(cell, COMPARE_LOG))
        return co_fail(CO_E_USAGE, "%s is in the way, and no comparison has made it; remove it",
                       cell->dir);
    if (nftw(cell->dir, plan_remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0)
        return co_fail(CO_E_IO, "%s: cannot remove the unfinished run: %s", cell->dir,
                       strerror(errno));
    return CO_OK;
}
