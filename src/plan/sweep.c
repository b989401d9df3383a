/* sweep.c - predicts a grid and finds the best of it. */
#include "plan/sweep.h"

#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

#define SWEEP_POINTS 64 /* more than there are doublings */

/* Without a link between nodes there is one node. */
static bool sweep_is_linked(const co_sweep *s)
{
    return s->cluster->across.cost.bandwidth > 0;
}

static int sweep_compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* `out` has room for SWEEP_POINTS, or for all that the options name. */
static size_t sweep_ranks(int64_t *out, const co_sweep *s, const co_sweep_options *o)
{
    const int64_t own = s->cluster->nodes * s->each;
    const int64_t most = sweep_is_linked(s) ? CO_SWEEP_RANKS : own;
    size_t n = 0;

    if (o->n_ranks) {
        memcpy(out, o->ranks, o->n_ranks * sizeof(*out));
        qsort(out, o->n_ranks, sizeof(*out), sweep_compare);
        return o->n_ranks;
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

/* One more point, if so many ranks are possible. */
static void sweep_add(co_sweep_line *line, const co_sweep *s, int64_t ranks)
{
    const double batch = line->batch > 0 ? line->batch : s->global_batch / (double)ranks;

    if (ranks > s->each && !sweep_is_linked(s))
        line->lacks = "a link between nodes, `links: across` of the cluster";
    else if (s->work->shards && (uint64_t)ranks > s->work->shards)
        line->lacks = "a shard for each rank, `shards` of the config";
    else if (batch < 1)
        line->lacks = "a sample for each rank";
    else if (co_plan_predict(&line->point[line->n], s->cluster, s->work, line->choice, ranks,
                             batch))
        line->n++;
    else
        line->lacks = "memory that all ranks share";
}

static co_status sweep_fill(co_sweep_line *line, const co_sweep *s, const co_sweep_options *o)
{
    const size_t room = o->n_ranks ? o->n_ranks : SWEEP_POINTS;
    int64_t *ranks = co_calloc(room, sizeof(*ranks));
    size_t n;

    line->point = co_calloc(room, sizeof(*line->point));
    if (!ranks || !line->point) {
        co_free(ranks);
        return CO_E_NOMEM;
    }
    n = sweep_ranks(ranks, s, o);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || ranks[i] != ranks[i - 1])
            sweep_add(line, s, ranks[i]);
    co_free(ranks);
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
