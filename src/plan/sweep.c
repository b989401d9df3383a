/* sweep.c - predicts a grid and finds the best of it. */
#include "plan/sweep.h"

#include "core/mem.h"

#define SWEEP_POINTS 64

static size_t sweep_ranks(int64_t out[SWEEP_POINTS], const co_sweep *s, const co_sweep_options *o)
{
    const int64_t own = s->cluster->nodes * s->each;
    const int64_t most = s->cluster->across.cost.bandwidth > 0 ? CO_SWEEP_RANKS : own;
    size_t n = 0;

    if (o->n_ranks) { /* without a link between nodes there is one node */
        for (size_t i = 0; i < o->n_ranks && n < SWEEP_POINTS; i++)
            if (o->ranks[i] <= s->each || s->cluster->across.cost.bandwidth > 0)
                out[n++] = o->ranks[i];
        return n;
    }
    if (s->each > 1)
        out[n++] = 1;
    for (int64_t ranks = s->each; ranks <= most && n + 1 < SWEEP_POINTS; ranks *= 2) {
        if (own < ranks && (n == 0 || own > out[n - 1]))
            out[n++] = own;
        out[n++] = ranks;
    }
    return n;
}

static co_status sweep_fill(co_sweep_line *line, const co_sweep *s, const co_sweep_options *o)
{
    int64_t ranks[SWEEP_POINTS];
    const size_t n = sweep_ranks(ranks, s, o);

    line->point = co_calloc(n, sizeof(*line->point));
    if (!line->point)
        return CO_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        const double batch = line->batch > 0 ? line->batch : s->global_batch / (double)ranks[i];

        if (batch >= 1 && co_plan_predict(&line->point[line->n], s->cluster, s->work, line->choice,
                                          ranks[i], batch))
            line->n++;
    }
    return CO_OK;
}

bool co_sweep_has(const co_sweep *s, const co_prediction *p)
{
    return p->nodes <= s->cluster->nodes && p->fits;
}

/* Times per sample: batches differ, an epoch's samples do not. Only a strategy whose computing is
   known takes part. */
static void sweep_choose(co_sweep *s, const co_sweep_line *line)
{
    for (size_t i = 0; i < line->n; i++) {
        const co_prediction *p = &line->point[i];
        const double cost = (double)p->nodes / p->samples_per_second;

        if (!co_sweep_has(s, p) || !line->choice->measured)
            continue;
        if (!s->fastest || p->samples_per_second > s->fastest->samples_per_second) {
            s->fastest = p;
            s->fastest_line = line;
        }
        if (!s->cheapest || cost < (double)s->cheapest->nodes / s->cheapest->samples_per_second) {
            s->cheapest = p;
            s->cheapest_line = line;
        }
    }
}

co_status co_sweep_create(co_sweep *out, const co_sweep_options *o)
{
    const size_t batches = o->global_batch > 0 ? 1 : o->n_batch;

    *out = (co_sweep){.cluster = o->cluster,
                      .work = o->work,
                      .global_batch = o->global_batch,
                      .each = co_plan_ranks_per_node(o->cluster, o->work->threads)};
    out->line = co_calloc(o->n_choice * batches, sizeof(*out->line));
    if (!out->line)
        return CO_E_NOMEM;
    for (size_t c = 0; c < o->n_choice; c++)
        for (size_t b = 0; b < batches; b++) {
            co_sweep_line *line = &out->line[out->n_line++];

            line->choice = &o->choice[c];
            line->batch = o->global_batch > 0 ? 0 : o->batch[b];
            CO_TRY(sweep_fill(line, out, o));
            sweep_choose(out, line);
        }
    return CO_OK;
}

void co_sweep_fini(co_sweep *sweep)
{
    for (size_t i = 0; i < sweep->n_line; i++)
        co_free(sweep->line[i].point);
    co_free(sweep->line);
    *sweep = (co_sweep){.n_line = 0};
}
