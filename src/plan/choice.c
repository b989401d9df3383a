/* choice.c - a strategy's keys, as far as times depend on them. The strategy itself has checked
   them. */
#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "plan/step.h"

/* `threads` is sync in memory that ranks share, with the update divided. */
static const struct {
    const char *name;
    co_choice_kind kind;
    bool one_host;
    const char *update; /* without the key */
} choice_kinds[] = {
    {"sync", CO_CHOICE_SYNC, false, "auto"},     {"stale", CO_CHOICE_STALE, false, "auto"},
    {"local", CO_CHOICE_LOCAL, false, "auto"},   {"one-shot", CO_CHOICE_ONE_SHOT, false, "auto"},
    {"hogwild", CO_CHOICE_SHARED, true, "auto"}, {"ssp", CO_CHOICE_SHARED, true, "auto"},
    {"threads", CO_CHOICE_SYNC, true, "parts"},
};

static const struct {
    const char *name;
    co_choice_compress compress;
} choice_compressors[] = {
    {"none", CO_CHOICE_WHOLE}, {"bf16", CO_CHOICE_HALF},         {"fp16", CO_CHOICE_HALF},
    {"topk", CO_CHOICE_TOPK},  {"powersgd", CO_CHOICE_POWERSGD},
};

static const char *choice_text(const co_value *map, const char *key, const char *otherwise)
{
    const co_value *value = map && map->kind == CO_VALUE_MAP ? co_value_get(map, key) : NULL;

    return value && value->kind == CO_VALUE_SCALAR ? value->text : otherwise;
}

static double choice_number(const co_value *map, const char *key, double otherwise)
{
    const char *text = choice_text(map, key, NULL);
    char *end;
    double value;

    if (!text)
        return otherwise;
    value = co_number_parse(text, &end);
    return end != text && value > 0 ? value : otherwise; /* "auto" is 0 */
}

static co_status choice_read_compress(co_choice *out, const co_value *value)
{
    const co_value *map = NULL;
    const char *name = "none";

    if (!value || value->kind == CO_VALUE_NULL)
        return CO_OK;
    CO_TRY(co_value_plugin(&name, &map, value, "compress"));
    for (size_t i = 0; i < sizeof(choice_compressors) / sizeof(choice_compressors[0]); i++)
        if (strcmp(choice_compressors[i].name, name) == 0) {
            out->compress = choice_compressors[i].compress;
            out->ratio = choice_number(map, "ratio", 0.01);
            out->rank = choice_number(map, "rank", 2);
            out->min_compression = choice_number(map, "min_compression", 2);
            out->error_feedback = strcmp(choice_text(map, "error_feedback", "true"), "false") != 0;
            return CO_OK;
        }
    return co_value_fail(value,
                         "compress: what '%s' sends is not known here; plan with none, bf16, "
                         "fp16, topk or powersgd",
                         name);
}

co_status co_choice_read(co_choice *out, const co_value *value)
{
    const co_value *map = NULL;
    const char *name = "sync", *update;

    *out = (co_choice){.title = name, .period = 1};
    if (value)
        CO_TRY(co_value_plugin(&name, &map, value, "strategy"));
    out->title = name;
    for (size_t i = 0; i < sizeof(choice_kinds) / sizeof(choice_kinds[0]); i++)
        if (strcmp(choice_kinds[i].name, name) == 0) {
            out->kind = choice_kinds[i].kind;
            out->one_host = choice_kinds[i].one_host;
            if (out->kind == CO_CHOICE_LOCAL)
                out->period = choice_number(map, "period", 16);
            out->bucket_mib = choice_number(map, "bucket_mib", 0);
            update = choice_text(map, "update", choice_kinds[i].update);
            out->update = strcmp(update, "whole") == 0   ? CO_CHOICE_EACH
                          : strcmp(update, "parts") == 0 ? CO_CHOICE_PARTS
                          : strcmp(update, "zero") == 0  ? CO_CHOICE_ZERO
                                                         : CO_CHOICE_AUTO;
            CO_TRY(choice_read_compress(out, map ? co_value_get(map, "compress") : NULL));
            out->measured = out->compress == CO_CHOICE_WHOLE && out->kind != CO_CHOICE_SHARED;
            return CO_OK;
        }
    return value ? co_value_fail(value,
                                 "strategy: when ranks of '%s' wait is not known here; plan "
                                 "with one of `cohort list strategies`",
                                 name)
                 : CO_OK;
}
