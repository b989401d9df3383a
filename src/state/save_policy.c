/*
 * save_policy.c - the config key `checkpoint`, read and checked. Does not know what a checkpoint
 * is.
 */
#include "state/save_policy.h"

#include <stdlib.h>
#include <string.h>

#define POLICY(field) offsetof(co_saver_policy, field)

static const char *const policy_on_error[] = {"go-on", "stop", NULL};

const co_key co_saver_policy_keys[] = {
    {"every", CO_KEY_STRING, POLICY(every_text), "1 epoch", 0, 0, NULL,
     "how often: `2 epochs`, `500 steps`, `10 minutes`; or off"},
    {"keep", CO_KEY_INT, POLICY(keep), "3", 1, 1e6, NULL, "how many of the latest are kept"},
    {"best", CO_KEY_STRING, POLICY(best_text), "true", 0, 0, NULL,
     "make one too whenever the evaluation is the best so far, and keep the best: true (by "
     "accuracy, "
     "or loss), false, or the metric that decides"},
    {"on_error", CO_KEY_CHOICE, POLICY(on_error), "go-on", 0, 0, policy_on_error,
     "when one cannot be written: go-on with a warning and exit with 1 in the end, or stop"},
    CO_KEYS_END,
};

static const struct {
    const char *name;
    co_saver_unit unit;
    uint64_t factor;
} policy_units[] = {
    {"epoch", CO_SAVER_EPOCHS, 1},    {"epochs", CO_SAVER_EPOCHS, 1},
    {"step", CO_SAVER_STEPS, 1},      {"steps", CO_SAVER_STEPS, 1},
    {"second", CO_SAVER_SECONDS, 1},  {"seconds", CO_SAVER_SECONDS, 1},
    {"minute", CO_SAVER_SECONDS, 60}, {"minutes", CO_SAVER_SECONDS, 60},
    {"hour", CO_SAVER_SECONDS, 3600}, {"hours", CO_SAVER_SECONDS, 3600},
};

/* "<n> <unit>" or "<unit>". */
static bool policy_parse_every(co_saver_policy *out, const char *text)
{
    char *unit = (char *)text;
    unsigned long long n = 1;

    if (strcmp(text, "off") == 0) {
        out->unit = CO_SAVER_OFF;
        return true;
    }
    if (*text >= '0' && *text <= '9')
        n = strtoull(text, &unit, 10);
    while (*unit == ' ')
        unit++;
    for (size_t i = 0; i < sizeof(policy_units) / sizeof(policy_units[0]); i++)
        if (strcmp(unit, policy_units[i].name) == 0) {
            out->unit = policy_units[i].unit;
            out->every = n * policy_units[i].factor;
            return n >= 1 && n <= 1000000000000ULL;
        }
    return false;
}

co_status co_saver_policy_read(co_saver_policy *out, const co_value *value, co_arena *arena)
{
    const bool scalar = value && value->kind == CO_VALUE_SCALAR;
    const co_value *place = value;

    CO_TRY(co_keys_read(out, co_saver_policy_keys, scalar ? NULL : value, "checkpoint", arena));
    if (scalar)
        out->every_text = value->text;
    else if (value && value->kind == CO_VALUE_MAP && co_value_get(value, "every"))
        place = co_value_get(value, "every");
    out->best = strcmp(out->best_text, "false") != 0;
    out->best_metric = out->best && strcmp(out->best_text, "true") != 0 ? out->best_text : NULL;
    if (policy_parse_every(out, out->every_text))
        return CO_OK;
    return co_value_fail(place,
                         "checkpoint: expected a time such as `1 epoch`, `500 steps` or "
                         "`10 minutes`, or off, and not '%s'",
                         out->every_text);
}
