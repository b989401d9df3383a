/*
 * metrics.h - what is measured besides the loss, by name: each metric is sums over samples, and one
 * value of them.
 *
 * Sums add up over batches, shards and ranks, so a metric is that of all samples however they were
 * split, and never a mean of batches. Who adds them, and when, is settled elsewhere; so is what
 * becomes of the value. Independent of networks, runs and communicators.
 */
#ifndef CO_METRICS_METRICS_H
#define CO_METRICS_METRICS_H

#include <cohort/ext/metric.h>
#include <cohort/ext/plugin.h>

#include "core/plugin.h"

#define CO_METRICS_MAX      16  /* of a run */
#define CO_METRICS_MAX_SUMS 512 /* of all of them together */

#define CO_METRIC_OF(target) (1u << (target))

typedef struct co_metric {
    const char *name; /* in a config, and after train_ and test_ in files */
    const char *summary;
    const co_key *keys; /* NULL */
    size_t self_size;   /* 0 */
    unsigned targets;   /* CO_METRIC_OF those that it is defined for */
    bool sequences;     /* only of labels for each position; and then always measured */
    bool text;          /* only where the bytes of a token are known */
    bool lower;         /* lower is better; else higher */
    /* What it adds up: so many sums, and so many more for each output. */
    size_t sums, sums_per_output;
    /* Add a batch to the sums. NULL: every event has this figure, whatever a config asks for. */
    void (*accumulate)(co_sum *sums, const co_metric_batch *batch);
    /* NaN where it is not defined, as over no samples. */
    double (*finish)(const co_sum *sums, const co_metric_form *form);
} co_metric;

/* NULL-ended, in the order that `cohort list metrics` prints. */
extern const co_metric *const co_metrics[];
extern const co_plugins co_metric_plugins;
/* NULL if unknown. */
static inline const co_metric *co_metric_find(const char *name)
{
    return co_plugin_find(&co_metric_plugins, name);
}

/* `accumulate` of sequences: two sums, the loss of all positions and their number. */
void co_metric_accumulate_positions(co_sum *sums, const co_metric_batch *batch);
/* The mean loss of a position; NaN over none. */
double co_metric_position_loss(const co_sum *sums);

/* With so many classes or fewer, any is among the five likeliest. */
#define CO_METRIC_FEW_CLASSES 5

/* Whether a network of this form has the metric. */
bool co_metric_is_defined(const co_metric *metric, const co_metric_form *form);
/* Whether `value` is better than `than`; any number is better than NaN, which is better than
   nothing. */
bool co_metric_better(const co_metric *metric, double value, double than);

/* Of one row of logits: the class with the highest, of equal ones the lowest class; `classes` where
   all are NaN. */
size_t co_metric_class(const float *logit, size_t classes);
/* Of labels that are there or not: whether logit and target agree; a NaN agrees with nothing. */
static inline bool co_metric_agrees(float logit, float target)
{
    return logit == logit && (logit > 0) == (target >= 0.5f);
}

/* The metrics that a run asks for, and where the sums of each begin in one array. */
typedef struct co_metric_set {
    int n;
    const co_metric *metric[CO_METRICS_MAX];
    size_t begin[CO_METRICS_MAX];
    size_t n_sum;
    co_metric_form form;
} co_metric_set;

/* From the config key `metrics`: a name, a list of them, or NULL. What every event has anyhow is
   known, and is not in the set. */
co_status co_metric_set_read(co_metric_set *out, const co_value *value);
/* For such a network, which may add some that are always measured of it. CO_E_USAGE at `value`
   where a metric is not defined for it, or it has too many outputs. */
co_status co_metric_set_fit(co_metric_set *set, const co_metric_form *form, const co_value *value);
/* Its number in the set, -1: it is not there. */
int co_metric_set_find(const co_metric_set *set, const char *name);
/* The same, put into the set if it is not there; -1: the set is full. */
int co_metric_set_include(co_metric_set *set, const co_metric *metric);
/* `sums`: (n_sum). */
void co_metric_set_accumulate(const co_metric_set *set, co_sum *sums, const co_metric_batch *batch);
void co_metric_set_add(const co_metric_set *set, co_sum *sum, const co_sum *part);
/* The value of each, (n); `form` is set->form, or that of another split. */
void co_metric_set_finish(double *value, const co_metric_set *set, const co_metric_form *form,
                          const co_sum *sums);

#define METRIC(name) extern const co_metric co_metric_##name;
#include "metrics/list.h"
#undef METRIC

#endif
