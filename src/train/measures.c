/* measures.c - see measures.h. Does not know any particular metric. */
#include "train/measures.h"

#include <stdio.h>
#include <string.h>

#include "core/mem.h"

co_status co_measures_open(co_measures *out, const co_metric_set *set, co_comm *comm,
                           const co_tree *tree)
{
    const size_t slots = (size_t)(tree ? tree->leaves : co_comm_size(comm));

    *out = (co_measures){
        .set = set, .form = set->form, .comm = comm, .shards = tree ? tree->leaves : 0};
    if (set->n == 0)
        return CO_OK;
    out->sum = co_calloc(set->n_sum, sizeof(*out->sum));
    out->slot = co_calloc(slots * set->n_sum, sizeof(*out->slot));
    if (out->sum && out->slot)
        return CO_OK;
    co_measures_close(out);
    return CO_E_NOMEM;
}

void co_measures_close(co_measures *measures)
{
    co_free(measures->sum);
    co_free(measures->slot);
    measures->sum = measures->slot = NULL;
}

void co_measures_take(co_measures *measures, const co_model *model, int shard)
{
    const co_metric_set *set = measures->set;
    co_sum *to = measures->shards ? measures->slot + (size_t)shard * set->n_sum : measures->sum;

    if (set->n)
        co_metric_set_add(set, to, model->metric_sums);
}

_Static_assert(CO_METRICS_MAX <= CO_MAX_METRICS, "a program gets all of them");

/* Reduce `n` parts, each set on one rank and zero on the others, and add them to `sum` in order.
   `sum` NULL: this rank needs no result. */
static co_status measures_add_up(co_sum *sum, co_measures *measures, int n)
{
    const size_t n_sum = measures->set->n_sum, slots = (size_t)n * n_sum;
    double *part = &measures->slot->high;

    /* exact, because all but one of the addends are zero */
    CO_TRY(co_comm_allreduce(measures->comm, part, part, 2 * slots, CO_F64, CO_SUM));
    for (int s = 0; s < n && sum; s++)
        co_metric_set_add(measures->set, sum, measures->slot + (size_t)s * n_sum);
    memset(measures->slot, 0, slots * sizeof(*measures->slot));
    return CO_OK;
}

co_status co_measures_join(co_measures *measures)
{
    const bool root = co_comm_rank(measures->comm) == 0;

    if (measures->set->n == 0 || !measures->shards)
        return CO_OK;
    return measures_add_up(root ? measures->sum : NULL, measures, measures->shards);
}

co_status co_measures_finish(double *value, co_measures *measures)
{
    const co_metric_set *set = measures->set;
    const size_t n_sum = set->n_sum, rank = (size_t)co_comm_rank(measures->comm);
    co_sum all[CO_METRICS_MAX_SUMS];

    if (set->n == 0)
        return CO_OK;
    memset(all, 0, n_sum * sizeof(*all));
    memcpy(measures->slot + rank * n_sum, measures->sum, n_sum * sizeof(*all));
    CO_TRY(measures_add_up(all, measures, co_comm_size(measures->comm)));
    co_metric_set_finish(value, set, &measures->form, all);
    return CO_OK;
}

size_t co_measures_name(co_metric_value *out, const co_metric_set *set, const double *value)
{
    for (int i = 0; i < set->n; i++) {
        snprintf(out[i].name, sizeof(out[i].name), "%s", set->metric[i]->name);
        out[i].value = value[i];
    }
    return (size_t)set->n;
}

void co_measures_save(co_sum *out, const co_measures *measures)
{
    if (measures->sum)
        memcpy(out, measures->sum, measures->set->n_sum * sizeof(*out));
}

void co_measures_restore(co_measures *measures, const co_sum *from)
{
    if (measures->sum)
        memcpy(measures->sum, from, measures->set->n_sum * sizeof(*from));
}

void co_measures_clear(co_measures *measures)
{
    if (measures->sum)
        memset(measures->sum, 0, measures->set->n_sum * sizeof(*measures->sum));
}
