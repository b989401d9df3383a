/*
 * run_config.c - the configs of runs, compared.
 *
 * A run writes its config one key a line. Lines that are the same in all runs are never parsed as
 * YAML, which is what a table of hundreds of runs would otherwise take its time for.
 */
#include "report/run_config.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/text.h"

#define RUN_CONFIG_MAX_PATH 4096

/* A key and its value in one run. */
typedef struct run_config_item {
    char *key, *value; /* owned */
    size_t run;
} run_config_item;

typedef struct run_config_items {
    run_config_item *item; /* owned: (n) */
    size_t n, room;
} run_config_items;

static int run_config_by_key(const void *a, const void *b)
{
    return strcmp(((const co_run_line *)a)->key, ((const co_run_line *)b)->key);
}

/* The text of a string that is written in quotes, without them, in place; what needs them to be
 * read keeps them. */
static char *run_config_unquote(char *value)
{
    const size_t n = strlen(value);

    if (n < 3 || value[0] != '"' || value[n - 1] != '"' || value[1] == '{' ||
        strcspn(value + 1, "\\\"") != n - 2)
        return value;
    value[n - 1] = '\0';
    return value + 1;
}

/* Cut the text into lines of `key: value`; a line that begins with a blank belongs to the one
   before. */
static void run_config_cut(co_run_entry *run)
{
    for (char *at = run->text, *next; *at; at = next) {
        const size_t n = strcspn(at, "\n");
        char *colon = memchr(at, ':', n);
        const bool more = isspace((unsigned char)*at) || *at == '#' || *at == '-';

        next = at + n + (at[n] == '\n');
        if (more || !colon || colon == at)
            continue;
        if (run->n_line)
            at[-1] = '\0';
        *colon = '\0';
        run->line[run->n_line++] = (co_run_line){at, colon + 1 + strspn(colon + 1, " ")};
    }
    for (size_t i = 0; i < run->n_line; i++)
        run->line[i].value = run_config_unquote(run->line[i].value);
    if (run->n_line)
        qsort(run->line, run->n_line, sizeof(*run->line), run_config_by_key);
}

static size_t run_config_count(const char *text)
{
    size_t n = 1;

    for (; *text; text++)
        n += *text == '\n';
    return n;
}

co_status co_run_config_read(co_run_entry *run)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true, .max = CO_CONFIG_MAX_BYTES};
    char path[RUN_CONFIG_MAX_PATH];
    uint8_t *text = NULL;
    size_t size = 0;
    co_status st;

    snprintf(path, sizeof(path), "%s/config.yaml", run->dir);
    st = co_fs_read_as(&text, &size, path, &rule);
    if (st != CO_OK)
        return st == CO_E_NOMEM ? st : CO_OK;
    while (size > 0 && text[size - 1] == '\n')
        text[--size] = '\0';
    run->text = (char *)text;
    run->line = co_calloc(run_config_count(run->text), sizeof(*run->line));
    if (!run->line)
        return CO_E_NOMEM;
    run_config_cut(run);
    return CO_OK;
}

static const char *run_config_find(const co_run_entry *run, const char *key)
{
    const co_run_line wanted = {.key = (char *)key};
    const co_run_line *line = run->n_line ? bsearch(&wanted, run->line, run->n_line,
                                                    sizeof(*run->line), run_config_by_key)
                                          : NULL;

    return line ? line->value : NULL;
}

static bool run_config_same(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Whether not all runs have the same line of this key. */
static bool run_config_differs(const co_run_list *list, const char *key)
{
    const co_run_entry *first = NULL;

    for (size_t i = 0; i < list->n; i++) {
        const co_run_entry *run = &list->run[i];

        if (run->n_line == 0) /* without a config that can be read */
            continue;
        if (!first)
            first = run;
        if (!run_config_same(run_config_find(first, key), run_config_find(run, key)))
            return true;
    }
    return false;
}

/* Takes ownership of `value`. */
static co_status run_config_push(run_config_items *items, const char *key, char *value, size_t run)
{
    char *name = co_strdup(key);

    if (items->n == items->room && name && value) {
        const size_t room = items->room ? 2 * items->room : 256;
        run_config_item *grown = co_realloc(items->item, room, sizeof(*grown));

        if (grown) {
            items->item = grown;
            items->room = room;
        }
    }
    if (!name || !value || items->n == items->room) {
        co_free(name);
        co_free(value);
        return CO_E_NOMEM;
    }
    items->item[items->n++] = (run_config_item){name, value, run};
    return CO_OK;
}

static co_status run_config_print(char **out, const co_value *value)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    if (!stream)
        return co_fail(CO_E_NOMEM, "out of memory");
    return co_text_take(out, stream, &text, co_value_write(stream, value));
}

/* Where the values of a run's line go. */
typedef struct run_config_target {
    run_config_items *items;
    size_t run;
} run_config_target;

static co_status run_config_take_value(void *arg, const char *name, const co_value *value)
{
    const run_config_target *to = arg;
    char *text = NULL;

    CO_TRY(run_config_print(&text, value));
    return run_config_push(to->items, name, text, to->run);
}

static co_status run_config_take(run_config_items *items, const char *key, const char *text,
                                 size_t run)
{
    run_config_target to = {items, run};
    const co_value *value;
    co_config *config;
    co_status st;

    if (text[0] != '{')
        return run_config_push(items, key, co_strdup(text), run);
    CO_TRY(co_config_parse(&config, "", 0, "config.yaml"));
    st = co_config_add_text(&value, config, text);
    if (st == CO_OK)
        st = co_value_walk(value, key, run_config_take_value, &to);
    else if (st != CO_E_NOMEM)
        st = run_config_push(items, key, co_strdup(text), run); /* damaged: as it is */
    co_config_destroy(config);
    return st;
}

static co_status run_config_take_line(run_config_items *items, const co_run_list *list,
                                      const char *key)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *text = run_config_find(&list->run[i], key);

        if (text)
            CO_TRY(run_config_take(items, key, text, i));
    }
    return CO_OK;
}

/* Each key once that any run has: a run later than the first only if those before lack it. */
static co_status run_config_gather(run_config_items *items, const co_run_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        for (size_t k = 0; k < list->run[i].n_line; k++) {
            const char *key = list->run[i].line[k].key;
            bool seen = false;

            for (size_t before = 0; before < i && !seen; before++)
                seen = run_config_find(&list->run[before], key) != NULL;
            if (!seen && run_config_differs(list, key))
                CO_TRY(run_config_take_line(items, list, key));
        }
    return CO_OK;
}

static int run_config_by_item(const void *a, const void *b)
{
    const run_config_item *x = a, *y = b;
    const int order = strcmp(x->key, y->key);

    return order ? order : x->run < y->run ? -1 : x->run > y->run;
}

static size_t run_config_group(const run_config_items *items, size_t begin)
{
    size_t end = begin + 1;

    while (end < items->n && strcmp(items->item[end].key, items->item[begin].key) == 0)
        end++;
    return end;
}

static bool run_config_group_differs(const run_config_items *items, size_t begin, size_t end,
                                     size_t runs)
{
    for (size_t i = begin + 1; i < end; i++)
        if (strcmp(items->item[i].value, items->item[begin].value) != 0)
            return true;
    return end - begin < runs;
}

/* Move keys and values that differ to the list. */
static co_status run_config_keep(co_run_list *list, run_config_items *items)
{
    size_t n = 0, runs = 0;

    for (size_t i = 0; i < list->n; i++)
        runs += list->run[i].n_line > 0;
    for (size_t begin = 0, end; begin < items->n; begin = end) {
        end = run_config_group(items, begin);
        n += run_config_group_differs(items, begin, end, runs);
    }
    list->key = co_calloc(n + 1, sizeof(*list->key));
    list->value = co_calloc(n * list->n + 1, sizeof(*list->value));
    if (!list->key || !list->value)
        return CO_E_NOMEM;
    list->n_key = n;
    n = 0;
    for (size_t begin = 0, end; begin < items->n; begin = end) {
        end = run_config_group(items, begin);
        if (!run_config_group_differs(items, begin, end, runs))
            continue;
        list->key[n] = items->item[begin].key;
        items->item[begin].key = NULL;
        for (size_t i = begin; i < end; i++) {
            char **value = &list->value[items->item[i].run * list->n_key + n];

            co_free(*value); /* of a name that a damaged config has twice */
            *value = items->item[i].value;
            items->item[i].value = NULL;
        }
        n++;
    }
    return CO_OK;
}

co_status co_run_list_compare(co_run_list *list)
{
    run_config_items items = {0};
    co_status st = list->n > 1 ? run_config_gather(&items, list) : CO_OK;

    if (st == CO_OK && items.n) {
        qsort(items.item, items.n, sizeof(*items.item), run_config_by_item);
        st = run_config_keep(list, &items);
    }
    for (size_t i = 0; i < items.n; i++) {
        co_free(items.item[i].key);
        co_free(items.item[i].value);
    }
    co_free(items.item);
    return st;
}
