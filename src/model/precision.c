/*
 * precision.c - the config key `precision`, read and checked.
 *
 * The levels O0 to O3, what is scaled, what stays in fp32 and which combinations are rejected
 * follow NVIDIA's Apex (apex.amp). Does not know kernels or the training loop.
 */
#include "model/precision.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"
#include "core/number.h"

#define PRECISION_FIRST_SCALE 65536.0
#define PRECISION_MAX_SCALE   0x1p60 /* a gradient times this still fits in a float */

typedef enum precision_level {
    PRECISION_FP32,
    PRECISION_BF16,
    PRECISION_O0,
    PRECISION_O1,
    PRECISION_O2,
    PRECISION_O3
} precision_level;

/* Values of the keys dtype, keep_batchnorm_fp32 and rounding, in the order of their names below. */
enum { PRECISION_TYPE_AUTO, PRECISION_TYPE_FP16, PRECISION_TYPE_BF16 };
enum { PRECISION_KEEP_AUTO, PRECISION_KEEP_TRUE, PRECISION_KEEP_FALSE };
enum { PRECISION_ROUND_AUTO, PRECISION_ROUND_NEAREST, PRECISION_ROUND_STOCHASTIC };

static const char *const precision_levels[] = {"fp32", "bf16", "O0", "O1", "O2", "O3", NULL};
static const char *const precision_types[] = {"auto", "fp16", "bf16", NULL};
static const char *const precision_keep[] = {"auto", "true", "false", NULL};
static const char *const precision_roundings[] = {"auto", "nearest", "stochastic", NULL};

typedef struct precision_values {
    int level, type, keep_norm, rounding;
    const char *loss_scale;
    int64_t window;
    double min_scale, max_scale;
} precision_values;

#define VALUE(field) offsetof(precision_values, field)

const co_key co_precision_keys[] = {
    {"level", CO_KEY_CHOICE, VALUE(level), "fp32", 0, 0, precision_levels,
     "fp32, bf16, or one of Apex's O0, O1, O2, O3"},
    {"dtype", CO_KEY_CHOICE, VALUE(type), "auto", 0, 0, precision_types,
     "the 16-bit type of O1 to O3: fp16 (auto) or bf16"},
    {"loss_scale", CO_KEY_STRING, VALUE(loss_scale), "auto", 0, 0, NULL,
     "a number, or dynamic; auto: dynamic for O1 and O2 in fp16, else 1"},
    {"keep_batchnorm_fp32", CO_KEY_CHOICE, VALUE(keep_norm), "auto", 0, 0, precision_keep,
     "scales and shifts of batch norm in fp32; auto: except with O3"},
    {"rounding", CO_KEY_CHOICE, VALUE(rounding), "auto", 0, 0, precision_roundings,
     "of O3's weights after a step; auto: stochastic in bf16, nearest in fp16"},
    {"loss_scale_window", CO_KEY_INT, VALUE(window), "2000", 1, 1e9, NULL,
     "steps without overflow after which a dynamic loss scale is doubled"},
    {"min_loss_scale", CO_KEY_REAL, VALUE(min_scale), "0", 0, PRECISION_MAX_SCALE, NULL,
     "minimum dynamic loss scale; 0: no limit"},
    {"max_loss_scale", CO_KEY_REAL, VALUE(max_scale), "16777216", 1, PRECISION_MAX_SCALE, NULL,
     "maximum dynamic loss scale"},
    CO_KEYS_END,
};

/* Each level's defaults for the other keys. */
static const struct {
    co_dtype low;
    bool everything, keep_norm, round_weights; /* round_weights: there are no fp32 weights */
} precision_table[] = {
    [PRECISION_FP32] = {CO_F32, false, true, false},
    [PRECISION_BF16] = {CO_BF16, false, true, false},
    [PRECISION_O0] = {CO_F32, false, true, false},
    [PRECISION_O1] = {CO_F16, false, true, false},
    [PRECISION_O2] = {CO_F16, true, true, false},
    [PRECISION_O3] = {CO_F16, true, false, true},
};

static co_status precision_check(const precision_values *v, const co_value *value)
{
    const char *level = precision_levels[v->level];

    if (precision_table[v->level].low == CO_F32 && v->type != PRECISION_TYPE_AUTO)
        return co_value_fail(value,
                             "precision: %s has no 16-bit type; leave dtype out, or take "
                             "O1, O2 or O3",
                             level);
    if (v->level == PRECISION_BF16 && v->type != PRECISION_TYPE_AUTO)
        return co_value_fail(value, "precision: the level bf16 says the type; leave dtype out, or "
                                    "take O1, O2 or O3");
    if (v->level != PRECISION_O2 && v->level != PRECISION_O3 && v->keep_norm != PRECISION_KEEP_AUTO)
        return co_value_fail(value,
                             "precision: keep_batchnorm_fp32 goes only with O2 and O3; with %s "
                             "batch norm computes in fp32 anyway",
                             level);
    if (!precision_table[v->level].round_weights && v->rounding != PRECISION_ROUND_AUTO)
        return co_value_fail(value,
                             "precision: rounding goes only with O3; with %s weights are fp32 "
                             "after a step",
                             level);
    if (v->min_scale > v->max_scale)
        return co_value_fail(value,
                             "precision: min_loss_scale %g is above max_loss_scale %g; lower the "
                             "first or raise the second",
                             v->min_scale, v->max_scale);
    return CO_OK;
}

/* In bf16 most updates are less than half a unit in the last place of the weight, so that rounding
   to nearest would discard them. */
static co_rounding precision_rounding(int asked, co_dtype low)
{
    if (asked == PRECISION_ROUND_AUTO)
        return low == CO_BF16 ? CO_ROUNDING_STOCHASTIC : CO_ROUNDING_NEAREST;
    return asked == PRECISION_ROUND_NEAREST ? CO_ROUNDING_NEAREST : CO_ROUNDING_STOCHASTIC;
}

static co_status precision_read_scale(co_precision *out, const precision_values *v,
                                      const co_value *value)
{
    const bool tested = v->level == PRECISION_O1 || v->level == PRECISION_O2;
    char *end;

    out->loss_scale = 1;
    if (strcmp(v->loss_scale, "auto") == 0)
        out->dynamic = tested && out->plan.low == CO_F16;
    else if (strcmp(v->loss_scale, "dynamic") == 0)
        out->dynamic = true;
    else {
        out->loss_scale = co_number_parse(v->loss_scale, &end);
        if (*end || !(out->loss_scale > 0 && out->loss_scale <= PRECISION_MAX_SCALE))
            return co_value_fail(value,
                                 "precision: loss_scale is a number above 0 and up to 2^60, or "
                                 "dynamic; got '%s'",
                                 v->loss_scale);
    }
    if (out->dynamic)
        out->loss_scale = fmax(fmin(PRECISION_FIRST_SCALE, v->max_scale), v->min_scale);
    return CO_OK;
}

co_status co_precision_read(co_precision *out, const co_value *value, co_arena *arena)
{
    const bool scalar = value && value->kind == CO_VALUE_SCALAR;
    co_value level = {.kind = CO_VALUE_SCALAR}, *item = &level;
    const char *key = "level";
    co_value map = {.kind = CO_VALUE_MAP, .n = 1, .item = &item, .key = &key};
    precision_values v;

    memset(out, 0, sizeof(*out));
    if (scalar) {
        level = *value;
        map.source = value->source;
        map.line = value->line;
        map.column = value->column;
    }
    CO_TRY(co_keys_read(&v, co_precision_keys, scalar ? &map : value, "precision", arena));
    CO_TRY(precision_check(&v, value));
    out->plan.low = precision_table[v.level].low;
    if (v.type != PRECISION_TYPE_AUTO)
        out->plan.low = v.type == PRECISION_TYPE_FP16 ? CO_F16 : CO_BF16;
    out->plan.everything = precision_table[v.level].everything;
    out->plan.norm_params = v.keep_norm == PRECISION_KEEP_AUTO
                                ? !precision_table[v.level].keep_norm
                                : v.keep_norm == PRECISION_KEEP_FALSE;
    if (precision_table[v.level].round_weights)
        out->rounding = precision_rounding(v.rounding, out->plan.low);
    out->window = (uint64_t)v.window;
    out->min_scale = v.min_scale;
    out->max_scale = v.max_scale;
    snprintf(out->name, sizeof(out->name), "%s", precision_levels[v.level]);
    if (out->plan.low != CO_F32 && v.level != PRECISION_BF16)
        snprintf(out->name, sizeof(out->name), "%s %s", precision_levels[v.level],
                 out->plan.low == CO_F16 ? "fp16" : "bf16");
    return precision_read_scale(out, &v, value);
}
