/*
 * set.c - the metrics of a run together: read from its config, their sums in one array.
 */
#include <math.h>
#include <string.h>

#include "metrics/metrics.h"

bool co_metric_better(const co_metric *metric, double value, double than)
{
    if (isnan(value) || isnan(than))
        return !isnan(value);
    return metric->lower ? value < than : value > than;
}

size_t co_metric_class(const float *logit, size_t classes)
{
    size_t best = 0;

    while (best < classes && isnan(logit[best]))
        best++;
    for (size_t c = best + 1; c < classes; c++)
        if (logit[c] > logit[best])
            best = c;
    return best;
}

static co_status set_add_name(co_metric_set *set, const co_value *item)
{
    const co_metric *metric;

    if (item->kind != CO_VALUE_SCALAR)
        return co_value_fail(item, "metrics: expected a list of names, such as [mae, r2]");
    metric = co_metric_find(item->text);
    if (!metric)
        return co_plugin_unknown(&co_metric_plugins, item->text, item, NULL);
    if (!metric->accumulate || co_metric_set_find(set, metric->name) >= 0)
        return CO_OK;
    if (set->n == CO_METRICS_MAX)
        return co_value_fail(item, "metrics: at most %d of them", CO_METRICS_MAX);
    set->metric[set->n++] = metric;
    return CO_OK;
}

co_status co_metric_set_read(co_metric_set *out, const co_value *value)
{
    *out = (co_metric_set){.n = 0};
    if (!value)
        return CO_OK;
    if (value->kind != CO_VALUE_LIST)
        return set_add_name(out, value);
    for (size_t i = 0; i < value->n; i++)
        CO_TRY(set_add_name(out, value->item[i]));
    return CO_OK;
}

static const char *set_kind(co_target target)
{
    return target == CO_TARGET_LABEL    ? "classes"
           : target == CO_TARGET_BINARY ? "labels that are there or not"
                                        : "values";
}

bool co_metric_is_defined(const co_metric *metric, const co_metric_form *form)
{
    if (metric == &co_metric_accuracy_top5 && form->outputs <= CO_METRIC_FEW_CLASSES)
        return false;
    return (metric->targets & CO_METRIC_OF(form->target)) &&
           (form->positions || !metric->sequences) && (form->bytes_per_token > 0 || !metric->text);
}

/* What is measured of sequences whatever a config asks for. */
static void set_add_always(co_metric_set *set, const co_metric_form *form)
{
    for (const co_metric *const *m = co_metrics; *m && form->positions; m++)
        if ((*m)->sequences && co_metric_is_defined(*m, form))
            (void)co_metric_set_include(set, *m);
}

/* Names of what is measured anyway are in no set. */
static co_status set_check_name(const co_value *item, const co_metric_form *form)
{
    const co_metric *metric = co_metric_find(item->text);

    if (!metric || metric->accumulate || co_metric_is_defined(metric, form))
        return CO_OK;
    return co_value_fail(item,
                         "metrics: such a network, of %zu outputs, has no %s; `cohort list "
                         "metrics` says what each is",
                         form->outputs, metric->name);
}

static co_status set_check_names(const co_value *value, const co_metric_form *form)
{
    if (!value || value->kind == CO_VALUE_SCALAR)
        return value ? set_check_name(value, form) : CO_OK;
    for (size_t i = 0; i < value->n; i++)
        CO_TRY(set_check_name(value->item[i], form));
    return CO_OK;
}

co_status co_metric_set_fit(co_metric_set *set, const co_metric_form *form, const co_value *value)
{
    CO_TRY(set_check_names(value, form));
    set_add_always(set, form);
    set->form = *form;
    set->n_sum = 0;
    for (int i = 0; i < set->n; i++) {
        const co_metric *metric = set->metric[i];

        if (!co_metric_is_defined(metric, form))
            return co_value_fail(
                value,
                "metrics: %s is not defined for a network that learns %s%s; `cohort "
                "list metrics` says what each is",
                metric->name, set_kind(form->target),
                metric->text ? " of tokens of which the bytes are not known" : "");
        set->begin[i] = set->n_sum;
        if (metric->sums_per_output &&
            form->outputs > CO_METRICS_MAX_SUMS / metric->sums_per_output)
            return co_value_fail(value, "metrics: %s counts each of %zu outputs; at most %zu",
                                 metric->name, form->outputs,
                                 (CO_METRICS_MAX_SUMS - metric->sums) / metric->sums_per_output);
        set->n_sum += metric->sums + metric->sums_per_output * form->outputs;
        if (set->n_sum > CO_METRICS_MAX_SUMS)
            return co_value_fail(value,
                                 "metrics: with %s they keep more than %d sums for the network's "
                                 "%zu outputs; leave one out",
                                 metric->name, CO_METRICS_MAX_SUMS, form->outputs);
    }
    return CO_OK;
}

int co_metric_set_include(co_metric_set *set, const co_metric *metric)
{
    const int at = co_metric_set_find(set, metric->name);

    if (at >= 0 || set->n == CO_METRICS_MAX)
        return at;
    set->metric[set->n] = metric;
    return set->n++;
}

int co_metric_set_find(const co_metric_set *set, const char *name)
{
    for (int i = 0; i < set->n; i++)
        if (strcmp(set->metric[i]->name, name) == 0)
            return i;
    return -1;
}

void co_metric_set_accumulate(const co_metric_set *set, co_sum *sums, const co_metric_batch *batch)
{
    for (int i = 0; i < set->n; i++)
        set->metric[i]->accumulate(sums + set->begin[i], batch);
}

void co_metric_set_add(const co_metric_set *set, co_sum *sum, const co_sum *part)
{
    for (size_t i = 0; i < set->n_sum; i++)
        co_sum_join(&sum[i], &part[i]);
}

void co_metric_set_finish(double *value, const co_metric_set *set, const co_metric_form *form,
                          const co_sum *sums)
{
    for (int i = 0; i < set->n; i++)
        value[i] = set->metric[i]->finish(sums + set->begin[i], form);
}
