/*
 * test_pages.c - docs against the program's tables: docs/configuration.md has every key once, with
 * its default, and no others; docs/checkpoints.md says for each what a resume does with a change.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/data.h"
#include "data/partition.h"
#include "image/augment.h"
#include "models/models.h"
#include "ops/ops.h"
#include "optim/optim.h"
#include "strategy/compress.h"
#include "strategy/strategy.h"
#include "train/resume.h"
#include "train/spec.h"

#define PAGES_CELLS 8
#define PAGES_ROWS  256
#define PAGES_CELL  1024

static const char *pages_source = "";

/* A row of a table with a column `key`; `owner` also applies to the rows below. */
typedef struct pages_row {
    char owner[PAGES_CELL], key[PAGES_CELL], fallback[PAGES_CELL];
    int found; /* number of its keys that the program has */
} pages_row;

typedef struct pages_section {
    pages_row row[PAGES_ROWS];
    int n;
} pages_section;

static char *pages_read(const char *name)
{
    char path[4096], *text = calloc(1, 1 << 20);
    FILE *file;

    assert_non_null(text);
    snprintf(path, sizeof(path), "%s/docs/%s", pages_source, name);
    file = fopen(path, "r");
    if (!file)
        fail_msg("cannot read %s", path);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

static void pages_trim(char *cell)
{
    size_t n;

    memmove(cell, cell + strspn(cell, " "), strlen(cell + strspn(cell, " ")) + 1);
    for (n = strlen(cell); n && cell[n - 1] == ' '; n--)
        cell[n - 1] = '\0';
}

/* Splits "| a | b |" into cells; returns their number. */
static int pages_cut(char (*cell)[PAGES_CELL], const char *line)
{
    int n = 0;

    for (const char *at = line + 1; n < PAGES_CELLS && *at && *at != '\n'; n++) {
        size_t length = strcspn(at, "|\n");

        snprintf(cell[n], PAGES_CELL, "%.*s", (int)length, at);
        pages_trim(cell[n]);
        at += length + (at[length] == '|');
    }
    return n;
}

static int pages_column(char (*cell)[PAGES_CELL], int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(cell[i], name) == 0)
            return i;
    return -1;
}

/* Collects the rows of tables with keys between this heading and the next. */
static void pages_take(pages_section *out, const char *page, const char *heading)
{
    char cell[PAGES_CELLS][PAGES_CELL], mark[128], owner[PAGES_CELL] = "every";
    int key = -1, fallback = -1;
    const char *at;

    memset(out, 0, sizeof(*out));
    snprintf(mark, sizeof(mark), "\n%s\n", heading);
    at = strstr(page, mark);
    if (!at) {
        fail_msg("docs/configuration.md has no %s", heading);
        return;
    }
    for (at += strlen(mark); *at && strncmp(at, "## ", 3) != 0 && strncmp(at, "### ", 4) != 0;
         at += strcspn(at, "\n"), at += *at == '\n') {
        int n = *at == '|' ? pages_cut(cell, at) : 0;

        if (n == 0) {
            key = -1;
        } else if (key < 0) {
            key = pages_column(cell, n, "key");
            fallback = pages_column(cell, n, "default");
            snprintf(owner, sizeof(owner), "every");
        } else if (key < n && fallback >= 0 && fallback < n && strncmp(cell[0], "---", 3) != 0) {
            pages_row *row = &out->row[out->n++];

            assert_true(out->n < PAGES_ROWS);
            if (key > 0 && cell[0][0])
                snprintf(owner, sizeof(owner), "%s", cell[0]);
            snprintf(row->owner, sizeof(row->owner), "%s", owner);
            snprintf(row->key, sizeof(row->key), "%s", cell[key]);
            snprintf(row->fallback, sizeof(row->fallback), "%s", cell[fallback]);
        }
    }
}

/* Whether a cell has `name` in backticks, alone or before a colon. */
static bool pages_has(const char *cell, const char *name)
{
    char quoted[128];
    const char *at = cell;
    size_t n;

    snprintf(quoted, sizeof(quoted), "`%s", name);
    n = strlen(quoted);
    for (; (at = strstr(at, quoted)); at++)
        if ((at == cell || at[-1] != ':') && (at[n] == '`' || at[n] == ':'))
            return true;
    return false;
}

/* The same text without backticks, or the same number. */
static bool pages_equal(const char *cell, const char *fallback)
{
    char plain[PAGES_CELL], *end, *other;
    size_t n = 0;
    double a, b;

    for (; *cell; cell++)
        if (*cell != '`')
            plain[n++] = *cell;
    plain[n] = '\0';
    if (strcmp(plain, fallback) == 0)
        return true;
    a = strtod(plain, &end);
    b = strtod(fallback, &other);
    return end != plain && !*end && other != fallback && !*other && a == b;
}

/* Whether a default that has no literal value is described in the expected words. */
static bool pages_in_words(const co_key *key, const char *cell)
{
    if (!key->fallback)
        return strcmp(cell, "must be given") == 0;
    if (strcmp(cell, "the kernel") == 0)
        return strcmp(key->name, "stride") == 0;
    if (strncmp(cell, "as `", 4) == 0)
        return true;
    if (strcmp(key->fallback, "~") == 0)
        return strcmp(cell, "must be given") != 0;
    return key->type == CO_KEY_STRING && strcmp(cell, "MNIST's names") == 0;
}

static void pages_check_key(pages_section *s, const char *heading, const char *owner,
                            const co_key *key)
{
    const bool every = strcmp(owner, "every") == 0;
    int n = 0;

    for (int i = 0; i < s->n; i++) {
        pages_row *row = &s->row[i];
        const bool mine =
            every ? strncmp(row->owner, "every", 5) == 0 || strcmp(row->owner, "all") == 0
                  : pages_has(row->owner, owner);

        if (!mine || !pages_has(row->key, key->name))
            continue;
        n++;
        row->found++;
        if (!(key->fallback && pages_equal(row->fallback, key->fallback)) &&
            !pages_in_words(key, row->fallback))
            fail_msg("docs/configuration.md, %s: %s: `%s`: the default is %s, the page has %s",
                     heading, owner, key->name, key->fallback ? key->fallback : "(must be given)",
                     row->fallback);
    }
    if (n != 1)
        fail_msg("docs/configuration.md, %s: %s: `%s` is in %d rows, not in one", heading, owner,
                 key->name, n);
}

static void pages_check(pages_section *s, const char *heading, const char *owner,
                        const co_key *keys)
{
    for (const co_key *key = keys; key && key->name; key++)
        if (strcmp(key->name, "kind") != 0)
            pages_check_key(s, heading, owner, key);
}

/* Rows that name keys which the program does not have. */
static void pages_check_rest(const pages_section *s, const char *heading)
{
    for (int i = 0; i < s->n; i++)
        if (s->row[i].key[0] && s->row[i].found == 0)
            fail_msg("docs/configuration.md, %s: the program knows no %s of %s", heading,
                     s->row[i].key, s->row[i].owner);
}

static void one_map(const char *page, const char *heading, const char *owner, const co_key *keys)
{
    static pages_section s;

    pages_take(&s, page, heading);
    pages_check(&s, heading, owner, keys);
    if (strcmp(owner, "every") == 0)
        pages_check_rest(&s, heading);
}

static void configuration_page_has_keys_of_maps(void **state)
{
    char *page = pages_read("configuration.md");

    (void)state;
    one_map(page, "## The top level", "every", co_spec_keys);
    for (const co_spec_map *map = co_spec_maps; map->name; map++)
        if (strcmp(map->name, "init") == 0)
            one_map(page, "## Weights to start from", "every", map->keys);
        else if (strcmp(map->name, "ema") == 0)
            one_map(page, "## Moving average", "every", map->keys);
        else if (strcmp(map->name, "kernels") == 0)
            one_map(page, "## Kernels", "every", map->keys);
        else if (strcmp(map->name, "precision") == 0)
            one_map(page, "## Precision", "every", map->keys);
        else if (strcmp(map->name, "checkpoint") == 0)
            one_map(page, "## Checkpoints", "every", map->keys);
        else
            one_map(page, "### Small maps", map->name, map->keys);
    free(page);
}

/* Registries are arrays of pointers to structs of different types. */
#define PAGES_REGISTRY(page, heading, type, registry, common)                                      \
    do {                                                                                           \
        static pages_section section;                                                              \
                                                                                                   \
        pages_take(&section, page, heading);                                                       \
        pages_check(&section, heading, "every", common);                                           \
        for (const type *const *p = registry; *p; p++)                                             \
            pages_check_plugin(&section, heading, (*p)->name, (*p)->keys, common);                 \
        pages_check_rest(&section, heading);                                                       \
    } while (0)

/* A plugin may override defaults of its common keys: `sgd` | `lr` | 0.01. */
static void pages_check_plugin(pages_section *s, const char *heading, const char *name,
                               const co_key *keys, const co_key *common)
{
    bool listed = false;

    pages_check(s, heading, name, keys);
    for (int i = 0; i < s->n; i++) {
        if (!pages_has(s->row[i].owner, name))
            continue;
        listed = true;
        for (const co_key *key = common; key && key->name; key++)
            s->row[i].found += pages_has(s->row[i].key, key->name);
    }
    if (!listed)
        fail_msg("docs/configuration.md, %s: there is no %s", heading, name);
}

static void configuration_page_has_keys_of_plugins(void **state)
{
    static pages_section layers;
    char *page = pages_read("configuration.md");

    (void)state;
    PAGES_REGISTRY(page, "## Models", co_model_ops, co_models, co_model_common_keys);
    PAGES_REGISTRY(page, "## Data", co_dataset_ops, co_dataset_formats, co_dataset_common_keys);
    PAGES_REGISTRY(page, "### Augmentations", co_augment_ops, co_augmentations, NULL);
    PAGES_REGISTRY(page, "## Partitions", co_partition_ops, co_partitions,
                   co_partition_common_keys);
    PAGES_REGISTRY(page, "## Optimizers", co_optimizer_ops, co_optimizers,
                   co_optimizer_common_keys);
    PAGES_REGISTRY(page, "## Schedules", co_schedule_ops, co_schedules, co_schedule_common_keys);
    PAGES_REGISTRY(page, "## Strategies", co_strategy_ops, co_strategies, NULL);
    PAGES_REGISTRY(page, "### Compressed gradients", co_compressor_ops, co_compressors,
                   co_compressor_common_keys);
    /* `residual` and `add` are not layers of one op. */
    pages_take(&layers, page, "## Layers");
    for (const co_op *const *op = co_ops; *op; op++)
        if ((*op)->keys)
            pages_check(&layers, "## Layers", (*op)->name, (*op)->keys);
    free(page);
}

/* The table of docs/checkpoints.md: keys, and what a resume does with a change of them. */
static void checkpoints_page_has_every_key(void **state)
{
    char *page = pages_read("checkpoints.md"), *from = strstr(page, "\n## Changed configs\n"), *end;
    char cell[PAGES_CELLS][PAGES_CELL];

    (void)state;
    assert_non_null(from);
    end = strstr(from + 4, "\n## ");
    if (end)
        *end = '\0';
    for (const co_key *key = co_spec_keys; key->name; key++) {
        const char *rule = co_resume_rule_text(key->name);
        int n = 0;

        for (char *at = strchr(from, '|'); at; at = strstr(at, "\n|"), at = at ? at + 1 : NULL) {
            pages_cut(cell, at);
            at++;
            if (!pages_has(cell[0], key->name))
                continue;
            n++;
            if (strcmp(cell[1], rule) != 0)
                fail_msg("docs/checkpoints.md: `%s`: the rule is \"%s\", the page says \"%s\"",
                         key->name, rule, cell[1]);
        }
        if (n != 1)
            fail_msg("docs/checkpoints.md: `%s` (%s) is in %d rows, not in one", key->name, rule,
                     n);
    }
    free(page);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configuration_page_has_keys_of_maps),
        cmocka_unit_test(configuration_page_has_keys_of_plugins),
        cmocka_unit_test(checkpoints_page_has_every_key),
    };

    if (argc > 1)
        pages_source = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
