/* json.h - add members to JSON objects, with error checks. */
#ifndef CO_TELEMETRY_JSON_H
#define CO_TELEMETRY_JSON_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "telemetry/telemetry.h"

/* Each returns 0, or -1 if out of memory, so that results can be or-ed together. */
static inline int json_put_text(json_t *object, const char *key, const char *text)
{
    return json_object_set_new(object, key, json_string(text));
}

static inline int json_put_count(json_t *object, const char *key, uint64_t n)
{
    return json_object_set_new(object, key, json_integer((json_int_t)n));
}

/* JSON has no NaN and no infinity: they become null. */
static inline int json_put_real(json_t *object, const char *key, double value)
{
    return json_object_set_new(object, key, isfinite(value) ? json_real(value) : json_null());
}

/* Samples, and of sequences tokens, in a second. */
static inline int json_put_speed(json_t *object, const co_run_info *info, double samples)
{
    int bad = json_put_real(object, "samples_per_second", samples);

    if (info->positions)
        bad |= json_put_real(object, "tokens_per_second", samples * (double)info->positions);
    return bad;
}

/* PREFIX + name for each metric of the config. */
static inline int json_put_metrics(json_t *object, const co_run_info *info, const char *prefix,
                                   const double *value)
{
    char key[64];
    int bad = 0;

    for (int i = 0; info->metrics && i < info->metrics->n; i++) {
        snprintf(key, sizeof(key), "%s%s", prefix, info->metrics->metric[i]->name);
        bad |= json_put_real(object, key, value[i]);
    }
    return bad;
}

/* The results of an event; those of the test split only if there are any. */
static inline int json_put_results(json_t *object, const co_run_info *info, const co_event *event)
{
    int bad = json_put_real(object, "train_loss", event->train_loss) |
              json_put_real(object, "train_accuracy", event->train_accuracy);

    if (!(event->train_accuracy_top5 < 0))
        bad |= json_put_real(object, "train_accuracy_top5", event->train_accuracy_top5);
    if (event->kind != CO_EVENT_STEP)
        bad |= json_put_metrics(object, info, "train_", event->train_metric);
    if (event->has_test) {
        bad |= json_put_real(object, "test_loss", event->test_loss);
        bad |= json_put_real(object, "test_accuracy", event->test_accuracy);
        if (!(event->test_accuracy_top5 < 0))
            bad |= json_put_real(object, "test_accuracy_top5", event->test_accuracy_top5);
        bad |= json_put_metrics(object, info, "test_", event->test_metric);
    }
    return bad;
}

/* Absent if there is no loss scale. */
static inline int json_put_loss_scale(json_t *object, const co_event *event)
{
    if (event->loss_scale <= 0)
        return 0;
    return json_put_real(object, "loss_scale", event->loss_scale) |
           json_put_count(object, "skipped_steps", event->skipped_steps);
}

#define JSON_STYLE (JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER)

#endif
