/*
 * step.c - a step of N ranks: the rank's own work, the exchange as far as the backward pass does
 * not hide it, what readers cannot deliver in time, and the wait for the slowest.
 *
 * Knows no statistics: what a batch or a strategy does to the loss is another question.
 */
#include "plan/step.h"

#include <math.h>

#include "plan/exchange.h"
#include "strategy/bucket.h"

#define STEP_PARTS_MIN  8388608.0 /* weights; as in src/strategy/sync.c */
#define STEP_MIB        4         /* of a bucket among ranks of a host, and of compressors */
#define STEP_ACROSS_MIB 1

const char *const co_plan_terms[] = {"compute", "exchange", "loading", "stragglers"};

/* Seconds of a rank's own work. */
typedef struct step_own {
    double before;   /* forward, and backward of all micro-batches but the last */
    double backward; /* of the last */
    double after;    /* update, and the rest of the loop */
    double each;     /* times as long as measured: samples, speed, shared cores */
    bool full;       /* all cores compute, so what MPI does takes their time */
} step_own;

int64_t co_plan_ranks_per_node(const co_cluster *c, int threads)
{
    const double fit = floor(c->cores / (threads > 0 ? threads : 1));

    if (c->ranks_per_node)
        return c->ranks_per_node;
    return c->gpus ? c->gpus : fit > 1 ? (int64_t)fit : 1;
}

/* Who shares the update with how many. */
static double step_update_share(const plan_layout *l)
{
    const bool large = (double)l->work->n >= STEP_PARTS_MIN;

    if (l->choice->kind != CO_CHOICE_SYNC || l->choice->update == CO_CHOICE_EACH)
        return 1;
    if (l->choice->update == CO_CHOICE_ZERO)
        return l->ranks;
    return l->choice->update == CO_CHOICE_PARTS || (large && !l->cluster->gpus) ? l->each : 1;
}

static step_own step_own_of(const plan_layout *l, double batch)
{
    const co_plan_work *w = l->work;
    const double want = l->each * w->threads;
    const double shared =
        l->cluster->gpus || want <= l->cluster->cores ? 1 : want / l->cluster->cores;
    const double each = shared / l->cluster->speed,
                 kernels = each * (w->fixed + (1 - w->fixed) * batch / w->batch);
    step_own own = {.full = !l->cluster->gpus && want >= l->cluster->cores, .each = each};

    own.backward = kernels * w->backward / w->accumulate;
    own.before = kernels * (w->forward + w->backward) - own.backward;
    own.after = each * (w->rest + w->update / step_update_share(l));
    if (own.full && !w->full)
        own.before += each * batch * w->read; /* readers have no core of their own any more */
    return own;
}

static double step_own_sum(const step_own *own)
{
    return own->before + own->backward + own->after;
}

/* ---- buckets over the backward pass ---- */

typedef struct step_timeline {
    double computed; /* when the backward pass ends */
    double arrived;  /* when the last bucket is there; no earlier */
    double wire;     /* seconds that the node's link is busy */
    double bytes;
} step_timeline;

static size_t step_bucket(const plan_layout *l)
{
    const double given =
        l->choice->bucket_mib > 0 ? l->choice->bucket_mib : l->cluster->bucket / (1 << 20);

    if (given > 0)
        return co_bucket_elements(given);
    return co_bucket_elements(
        l->nodes > 1 && l->choice->compress == CO_CHOICE_WHOLE ? STEP_ACROSS_MIB : STEP_MIB);
}

/* Of a bucket's gradients: with `update: zero` half an all-reduce, the other half comes after. */
static plan_exchange step_bucket_exchange(const plan_layout *l, size_t n)
{
    plan_exchange x = plan_exchange_of(l, 4 * (double)n);

    if (l->choice->update == CO_CHOICE_ZERO && l->choice->compress == CO_CHOICE_WHOLE) {
        x.own /= 2;
        x.wire /= 2;
        x.latency /= 2;
        x.bytes /= 2;
    }
    return x;
}

/* Each bucket starts when its gradients are final and the link is free. A rank whose core has
   nothing else sums in time of its own; where all cores compute, that delays the backward pass. */
static step_timeline step_buckets(const plan_layout *l, const step_own *own)
{
    const co_plan_work *w = l->work;
    const size_t full = step_bucket(l);
    const double cpu = l->cluster->across.cpu * own->each,
                 /* of the last micro-batch */
        scale = w->backward > 0 ? own->backward / w->backward : 0;
    double ready = own->before, stretch = 0, link_free = 0, burst = l->cluster->across.burst;
    step_timeline t = {0};
    size_t segment = 0;

    for (size_t begin = 0; begin < w->n;) {
        const size_t end = co_bucket_end(begin, w->n, full);
        const plan_exchange x = step_bucket_exchange(l, end - begin);
        const double spared = fmin(burst, x.bytes) * (x.bytes > 0 ? x.wire / x.bytes : 0);
        const double work = cpu * x.bytes / l->each;
        double start;

        while (segment < w->n_segment && (segment == 0 || w->segment[segment - 1].end < end))
            ready += scale * w->segment[segment++].seconds;
        start = fmax(ready + stretch, link_free);
        link_free = start + fmax(x.wire - spared, work);
        stretch += x.own * own->each;
        if (own->full && start < own->before + own->backward + stretch)
            stretch += work;
        t.arrived = fmax(t.arrived, link_free + x.latency);
        t.wire += x.wire;
        t.bytes += x.bytes;
        burst -= fmin(burst, x.bytes);
        begin = end;
    }
    t.computed = own->before + own->backward + stretch;
    t.arrived = fmax(t.arrived, t.computed);
    return t;
}

/* ---- the exchange of each strategy: seconds that a step takes longer ----
   However much a token bucket lets through at once, it has to fill again: no step, no period of
   `local`, is shorter than the wire is busy. */

static double step_sync(const plan_layout *l, const step_own *own, co_prediction *out)
{
    const plan_exchange late = plan_exchange_late(l);
    const double own_work = own->before + own->backward;
    const double computing = l->choice->post + l->choice->take;
    step_timeline t = step_buckets(l, own);
    double more =
        t.arrived - own_work + late.own + late.wire + late.latency + computing * own->each;

    if (l->choice->update == CO_CHOICE_ZERO) {
        const plan_exchange gather = plan_exchange_whole(l, 4 * (double)l->work->n);

        more += (gather.own + gather.wire + gather.latency) / 2;
        t.wire += gather.wire / 2;
        t.bytes += gather.bytes / 2;
    }
    out->wire = t.bytes + late.bytes;
    t.wire += late.wire;
    return fmax(more, t.wire - own_work - own->after);
}

static double step_stale(const plan_layout *l, const step_own *own, co_prediction *out)
{
    const step_timeline t = step_buckets(l, own);
    const double busy = own->before + own->backward;

    out->wire = t.bytes;
    return fmax(t.computed - busy, t.wire - busy - own->after);
}

static double step_local(const plan_layout *l, const step_own *own, co_prediction *out)
{
    const double bytes = 4 * (double)(l->work->n + l->work->n_buffer);
    const plan_exchange x = plan_exchange_whole(l, bytes);
    const double cpu = own->each * l->cluster->across.cpu * x.bytes / l->each;
    const double burst = fmin(l->cluster->across.burst, x.bytes);
    const double wire = x.bytes > 0 ? x.wire * (1 - burst / x.bytes) : 0;
    const double more = x.own * own->each + fmax(wire, cpu) + x.latency;

    out->wire = x.bytes / l->choice->period;
    return fmax(more, x.wire - l->choice->period * step_own_sum(own)) / l->choice->period;
}

static double step_exchange(const plan_layout *l, const step_own *own, co_prediction *out)
{
    if (l->ranks <= 1)
        return l->choice->compress ? (l->choice->post + l->choice->take) * own->each : 0;
    switch (l->choice->kind) {
    case CO_CHOICE_SYNC:
        return step_sync(l, own, out);
    case CO_CHOICE_STALE:
        return step_stale(l, own, out);
    case CO_CHOICE_LOCAL:
        return step_local(l, own, out);
    default:
        return 0;
    }
}

/* ---- memory, stragglers ---- */

static double step_memory(const plan_layout *l, double batch)
{
    const co_plan_work *w = l->work;
    const double n = (double)w->n, share = step_update_share(l);
    double bytes = 4 * (n * 2 + n * w->n_state / share + (double)w->n_buffer);

    bytes += w->activations * batch / w->accumulate + w->depth * batch * w->sample_bytes;
    if (l->choice->compress && l->choice->error_feedback)
        bytes += 4 * n;
    if (l->choice->compress == CO_CHOICE_TOPK)
        bytes += 8 * n * l->choice->ratio * (1 + l->ranks);
    if (l->choice->compress == CO_CHOICE_HALF && l->nodes <= 1)
        bytes += 2 * n * (l->ranks <= 2 ? 1 + l->ranks : 2);
    return bytes;
}

static double step_stragglers(const plan_layout *l)
{
    const co_stragglers draws = {.variation = fmax(l->cluster->variation, 0),
                                 .count = l->cluster->variation < 0 ? l->work->n_draw : 0,
                                 .draw = l->work->draw};
    const double period = l->choice->kind == CO_CHOICE_LOCAL ? l->choice->period : 1;

    if (l->choice->kind == CO_CHOICE_ONE_SHOT || l->choice->kind == CO_CHOICE_SHARED)
        return 1;
    return co_stragglers_factor(&draws, l->ranks, period);
}

static void step_finish(co_prediction *out, const plan_layout *l, double alone)
{
    const double samples = l->work->train_samples;

    out->step = 0;
    for (int i = 0; i < CO_TERMS; i++) {
        out->step += out->term[i];
        if (out->term[i] > out->term[out->binds])
            out->binds = i;
    }
    out->samples_per_second = out->batch * l->ranks / out->step;
    out->efficiency = alone / out->step;
    out->epoch = samples / out->samples_per_second;
    out->price = out->epoch / 3600 * l->nodes * l->cluster->price;
    out->memory = step_memory(l, out->batch);
    out->fits = l->cluster->memory == 0 || out->memory * l->each <= l->cluster->memory;
}

static bool step_predict(co_prediction *out, const co_cluster *cluster, const co_plan_work *work,
                         const co_choice *choice, int64_t ranks, double batch)
{
    const int64_t each = co_plan_ranks_per_node(cluster, work->threads);
    const int64_t nodes = (ranks + each - 1) / each;
    const plan_layout l = {.cluster = cluster,
                           .work = work,
                           .choice = choice,
                           .ranks = (double)ranks,
                           .nodes = (double)nodes,
                           .each = (double)(ranks < each ? ranks : each)};
    const step_own own = step_own_of(&l, batch);
    const double alone = step_own_sum(&own), load = batch * work->read / fmax(work->readers, 1);

    *out = (co_prediction){.ranks = ranks, .nodes = nodes, .batch = batch};
    if (choice->one_host && nodes > 1)
        return false;
    out->term[CO_TERM_COMPUTE] = alone;
    out->term[CO_TERM_EXCHANGE] = step_exchange(&l, &own, out);
    out->term[CO_TERM_STRAGGLERS] = alone * (step_stragglers(&l) - 1);
    out->term[CO_TERM_LOADING] = fmax(0, load - alone - out->term[CO_TERM_EXCHANGE]);
    step_finish(out, &l, fmax(alone, load));
    return true;
}

/* The algorithm that is done first is not the best for a step that hides its latency. */
bool co_plan_predict(co_prediction *out, const co_cluster *cluster, const co_plan_work *work,
                     const co_choice *choice, int64_t ranks, double batch)
{
    co_cluster one = *cluster;
    co_prediction other;

    if (!step_predict(out, cluster, work, choice, ranks, batch))
        return false;
    if (cluster->allreduce != CO_ALLREDUCE_BEST)
        return true;
    for (one.allreduce = 0; one.allreduce < CO_ALLREDUCE_BEST; one.allreduce++)
        if (step_predict(&other, &one, work, choice, ranks, batch) && other.step < out->step)
            *out = other;
    return true;
}
