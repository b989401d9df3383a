/*
 * resume_config.c - compares the config of a checkpoint with the current one.
 *
 * A key must not change if the run would be another one: other data, another model, other random
 * numbers. Changes that only affect how it continues are allowed and reported.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/mem.h"
#include "launch/root.h"
#include "optim/optim.h"
#include "strategy/strategy.h"
#include "train/resume.h"

typedef enum resume_rule {
    RESUME_SAME,     /* the whole value */
    RESUME_NAME,     /* the plugin's name; its keys may change */
    RESUME_PATH,     /* all but where it is */
    RESUME_GIVEN,    /* whether it is given */
    RESUME_REPORTED, /* may change; reported */
    RESUME_SILENT    /* may change: does not affect the result, or is checked elsewhere */
} resume_rule;

/* Keys that are not listed may change, and are reported. */
static const struct {
    const char *key;
    resume_rule rule;
    const char *otherwise; /* RESUME_NAME: default name */
} resume_rules[] = {
    {"model", RESUME_SAME, NULL},
    {"layers", RESUME_SAME, NULL},
    {"loss", RESUME_SAME, NULL},
    {"data", RESUME_PATH, NULL},
    {"partition", RESUME_SAME, NULL},
    {"accumulate", RESUME_SAME, NULL},
    {"shards", RESUME_SAME, NULL},
    {"precision", RESUME_SAME, NULL},
    {"seed", RESUME_SAME, NULL},
    {"metrics", RESUME_SAME, NULL},
    {"optimizer", RESUME_NAME, CO_OPTIM_DEFAULT},
    {"strategy", RESUME_NAME, CO_STRATEGY_DEFAULT},
    {"ema", RESUME_GIVEN, NULL},
    {"ranks", RESUME_SILENT, NULL},
    {"test_partition", RESUME_SILENT, NULL},
    {"log", RESUME_SILENT, NULL},
    {"log_every", RESUME_SILENT, NULL},
    {"tensorboard", RESUME_SILENT, NULL},
    {"timeout", RESUME_SILENT, NULL},
    {"recompute", RESUME_SILENT, NULL},
    {"threads", RESUME_SILENT, NULL},
    {"loader", RESUME_SILENT, NULL},
    {"checkpoint", RESUME_SILENT, NULL},
    {"init", RESUME_SILENT, NULL},
    {"plugins", RESUME_SILENT, NULL},
};

/* Index in the table; -1: not found. */
static int resume_find_rule(const char *key)
{
    for (size_t i = 0; i < sizeof(resume_rules) / sizeof(resume_rules[0]); i++)
        if (strcmp(key, resume_rules[i].key) == 0)
            return (int)i;
    return -1;
}

static resume_rule resume_rule_of(const char *key)
{
    const int i = resume_find_rule(key);

    return i < 0 ? RESUME_REPORTED : resume_rules[i].rule;
}

const char *co_resume_rule_text(const char *key)
{
    static const char *const texts[] = {
        [RESUME_SAME] = "must be the same",
        [RESUME_NAME] = "must have the same name; its keys may change",
        [RESUME_PATH] = "must be the same but for `path` and `characters`",
        [RESUME_GIVEN] = "must be given or left out as before; its keys may change",
        [RESUME_REPORTED] = "may change, and is reported",
        [RESUME_SILENT] = "may change",
    };

    return texts[resume_rule_of(key)];
}

static const co_value *resume_get(const co_value *value, const char *key)
{
    return value && value->kind == CO_VALUE_MAP ? co_value_get(value, key) : NULL;
}

static bool resume_equal(const co_value *a, const co_value *b, bool moves);

/* Where data are, not what they are: the characters of a text are compared with those of the run.
 */
static bool resume_is_place(const char *key)
{
    return strcmp(key, "path") == 0 || strcmp(key, "characters") == 0;
}

/* Whether every key of `a`, with `moves` except places, is in `b` with an equal value. */
static bool resume_covers(const co_value *a, const co_value *b, bool moves)
{
    for (size_t i = 0; i < a->n; i++)
        if (!(moves && resume_is_place(a->key[i])) &&
            !resume_equal(a->item[i], resume_get(b, a->key[i]), false))
            return false;
    return true;
}

static bool resume_is_none(const co_value *value)
{
    return !value || value->kind == CO_VALUE_NULL;
}

/* `scalar` is short for {name: scalar}. */
static bool resume_is_name_of(const co_value *scalar, const co_value *map, bool moves)
{
    const co_value *name = co_value_get(map, "name");
    size_t rest = 0;

    for (size_t i = 0; i < map->n; i++)
        rest += strcmp(map->key[i], "name") != 0 && !(moves && resume_is_place(map->key[i]));
    return rest == 0 && name && name->kind == CO_VALUE_SCALAR &&
           strcmp(name->text, scalar->text) == 0;
}

static bool resume_equal(const co_value *a, const co_value *b, bool moves)
{
    if (resume_is_none(a) || resume_is_none(b))
        return resume_is_none(a) && resume_is_none(b);
    if (a->kind == CO_VALUE_SCALAR && b->kind == CO_VALUE_SCALAR)
        return strcmp(a->text, b->text) == 0;
    if (a->kind == CO_VALUE_SCALAR && b->kind == CO_VALUE_MAP)
        return resume_is_name_of(a, b, moves);
    if (a->kind == CO_VALUE_MAP && b->kind == CO_VALUE_SCALAR)
        return resume_is_name_of(b, a, moves);
    if (a->kind != b->kind)
        return false;
    if (a->kind == CO_VALUE_MAP)
        return resume_covers(a, b, moves) && resume_covers(b, a, moves);
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!resume_equal(a->item[i], b->item[i], false))
            return false;
    return true;
}

/* A key's value as text; the caller frees it with free. NULL: out of memory. */
static char *resume_text(const co_spec *spec, const co_key *key)
{
    const co_key one[] = {*key, CO_KEYS_END};
    char *text = NULL;
    size_t size = 0, skip = strlen(key->name) + 2;
    FILE *stream = open_memstream(&text, &size);
    co_status st;

    if (!stream)
        return NULL;
    st = co_keys_write(stream, spec, one, 0);
    if (fclose(stream) != 0 || st != CO_OK || size < skip + 1) {
        free(text);
        return NULL;
    }
    memmove(text, text + skip, size - skip);
    text[size - skip - 1] = '\0'; /* drop the newline */
    return text;
}

static const co_value *resume_value(const co_spec *spec, const co_key *key)
{
    return *(const co_value *const *)(const void *)((const char *)spec + key->offset);
}

static bool resume_same(const co_spec *then, const co_spec *now, const co_key *key,
                        resume_rule rule, const char *before, const char *after)
{
    const co_value *a, *b;

    if (key->type != CO_KEY_VALUE)
        return strcmp(before, after) == 0;
    a = resume_value(then, key);
    b = resume_value(now, key);
    if (rule == RESUME_NAME) {
        const char *otherwise = resume_rules[resume_find_rule(key->name)].otherwise;

        return strcmp(co_spec_plugin_name(a, otherwise), co_spec_plugin_name(b, otherwise)) == 0;
    }
    if (rule == RESUME_GIVEN)
        return resume_is_none(a) == resume_is_none(b);
    return resume_equal(a, b, rule == RESUME_PATH);
}

typedef struct resume_report {
    char refused[1200];
    size_t used;
} resume_report;

static void resume_refuse(resume_report *report, const char *key, const char *before,
                          const char *after)
{
    int n = snprintf(report->refused + report->used, sizeof(report->refused) - report->used,
                     "%s%s: %s -> %s", report->used ? ", " : "", key, before, after);

    if (n > 0)
        report->used += (size_t)n;
    if (report->used >= sizeof(report->refused))
        report->used = sizeof(report->refused) - 1;
}

static co_status resume_compare_key(resume_report *report, const co_spec *then, const co_spec *now,
                                    const co_key *key)
{
    char *before = resume_text(then, key), *after = resume_text(now, key);
    const resume_rule rule = resume_rule_of(key->name);

    if (!before || !after) {
        free(before);
        free(after);
        return co_fail(CO_E_NOMEM, "out of memory");
    }
    if (rule < RESUME_REPORTED && !resume_same(then, now, key, rule, before, after))
        resume_refuse(report, key->name, before, after);
    else if (rule != RESUME_SILENT && co_launch_is_root() &&
             !resume_same(then, now, key, RESUME_SAME, before, after))
        co_log(CO_LOG_INFO, "the config has changed: %s: %s -> %s", key->name, before, after);
    free(before);
    free(after);
    return CO_OK;
}

co_status co_resume_compare(const co_spec *now, const char *config, const char *folder)
{
    const co_train_options options = {.config_text = config};
    resume_report report = {.used = 0};
    co_spec then;
    co_status st = co_spec_load(&then, &options);

    if (st != CO_OK)
        return co_fail(CO_E_DATA, "%s: the config in it cannot be read: %s", folder,
                       co_error_message());
    for (const co_key *key = co_spec_keys; key->name && st == CO_OK; key++)
        st = resume_compare_key(&report, &then, now, key);
    co_spec_unload(&then);
    if (st != CO_OK || report.used == 0)
        return st;
    return co_fail(CO_E_USAGE,
                   "%s: the run cannot continue with another config (%s); give it the one that it "
                   "was started with, which is config.yaml in its directory",
                   folder, report.refused);
}
