/*
 * normalize.c - the key `normalize`: mean and standard deviation, or the name of a known data set.
 */
#include "image/normalize.h"

#include <string.h>

#include "core/mem.h"
#include "core/plural.h"

#define NORMALIZE_NAMES (sizeof(normalize_known) / sizeof(normalize_known[0]))

static const co_key normalize_keys[] = {
    {"mean", CO_KEY_REALS, offsetof(co_normalize, mean), "0", -1e6, 1e6, NULL,
     "subtracted, per channel"},
    {"std", CO_KEY_REALS, offsetof(co_normalize, std), "1", 1e-6, 1e6, NULL,
     "divided by, per channel"},
    CO_KEYS_END,
};

/* Of the training splits; the values in common use. */
static const struct {
    const char *name;
    size_t channels;
    double mean[3], std[3];
} normalize_known[] = {
    {"imagenet", 3, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}},
    {"cifar10", 3, {0.4914, 0.4822, 0.4465}, {0.2470, 0.2435, 0.2616}},
    {"cifar100", 3, {0.5071, 0.4865, 0.4409}, {0.2673, 0.2564, 0.2762}},
    {"mnist", 1, {0.1307}, {0.3081}},
    {"fashion-mnist", 1, {0.2860}, {0.3530}},
};

static co_status normalize_find(co_normalize *out, const co_value *value)
{
    const char *names[NORMALIZE_NAMES];

    for (size_t i = 0; i < NORMALIZE_NAMES; i++) {
        names[i] = normalize_known[i].name;
        if (strcmp(names[i], value->text) == 0) {
            out->mean = (co_reals){normalize_known[i].channels, normalize_known[i].mean};
            out->std = (co_reals){normalize_known[i].channels, normalize_known[i].std};
            return CO_OK;
        }
    }
    return co_value_unknown(value, "normalize", value->text, names, NORMALIZE_NAMES);
}

co_status co_normalize_read(co_normalize *out, const co_value *value, co_config *config)
{
    *out = (co_normalize){0};
    CO_TRY(co_keys_read(out, normalize_keys, value && value->kind == CO_VALUE_SCALAR ? NULL : value,
                        "normalize", co_config_arena(config)));
    out->value = value;
    return value && value->kind == CO_VALUE_SCALAR ? normalize_find(out, value) : CO_OK;
}

co_status co_normalize_table(co_lookup_table **out, const co_normalize *normalize, size_t channels)
{
    const co_reals *mean = &normalize->mean, *std = &normalize->std;
    co_lookup_table *table;

    if ((mean->n != 1 && mean->n != channels) || (std->n != 1 && std->n != channels))
        return co_value_fail(normalize->value,
                             "normalize: mean has %zu numbers and std %zu, and samples have %zu "
                             "channel%s: one number each, or one for all",
                             mean->n, std->n, channels, co_plural(channels));
    table = co_calloc(channels, sizeof(*table));
    if (!table)
        return CO_E_NOMEM;
    for (size_t c = 0; c < channels; c++) {
        const float m = (float)mean->v[mean->n > 1 ? c : 0], s = (float)std->v[std->n > 1 ? c : 0];

        co_lookup_make(&table[c], m, s);
    }
    *out = table;
    return CO_OK;
}
