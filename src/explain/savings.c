/*
 * savings.c - what a profiled run would save most time by.
 *
 * Estimates, each by itself: what is saved at one place another may hide.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/text.h"
#include "explain/explain.h"

#define SAVINGS_LEAST 0.01 /* of the wall time */

typedef struct savings {
    co_saving *at;
    int n;
    double least;
} savings;

static co_saving *savings_add(savings *s, double seconds)
{
    co_saving *to = &s->at[s->n];

    if (!(seconds >= s->least) || s->n == CO_SAVINGS_MAX)
        return NULL;
    s->n++;
    *to = (co_saving){.seconds = seconds};
    return to;
}

#define SAVINGS_SAY(s, seconds, ...)                                                               \
    do {                                                                                           \
        co_saving *const to_ = savings_add(s, seconds);                                            \
        if (to_)                                                                                   \
            snprintf(to_->what, sizeof(to_->what), __VA_ARGS__);                                   \
    } while (0)

/* A kernel at the machine's limit takes the fraction of its time that it reaches of that. */
static void savings_layers(savings *s, const co_evidence_profile *p, double compute)
{
    for (size_t i = 0; i < p->n; i++) {
        const co_evidence_layer *l = &p->at[i];
        const double seconds = compute * l->seconds / p->step;

        if (!l->op[0] || !(l->limit > 0))
            continue;
        SAVINGS_SAY(
            s, seconds - compute * fmin(l->limit, l->seconds) / p->step,
            "a faster kernel for %.40s (%.20s), at most: it reaches %.0f%% of the machine's "
            "limit; `cohort bench ops`, precision: bf16",
            CO_SHOW(l->name), l->op, 100 * l->limit / l->seconds);
    }
}

/* What a step has whatever its batch: the update, and what is between kernels. */
static double savings_fixed(const co_evidence_profile *p)
{
    double fixed = 0;

    for (size_t i = 0; i < p->n; i++)
        if (!p->at[i].op[0] && strcmp(p->at[i].name, "copy the batch") != 0 &&
            strcmp(p->at[i].name, "loss and accuracy") != 0)
            fixed += p->at[i].seconds;
    return fixed / p->step;
}

static void savings_ranks(savings *s, const co_evidence *e, const co_rank_times *t)
{
    const co_evidence_profile *p = &e->profile;
    const double now = t->exchange + t->wait;

    if (e->run.ranks < 2)
        return;
    if (strcmp(co_spec_strategy_name(&e->spec), "sync") == 0 && !isnan(p->late))
        SAVINGS_SAY(s, now - t->exchange / CO_EVIDENCE_PERIOD - t->compute * p->late_local,
                    "strategy: {name: local, period: %d}; of the time in the strategy %.0f%% is "
                    "that steps of ranks differ by chance",
                    CO_EVIDENCE_PERIOD, 100 * fmin(t->compute * p->late / fmax(now, 1e-9), 1));
    else
        SAVINGS_SAY(s, now, "no exchange and no waiting for other ranks, at most");
}

static int savings_compare(const void *a, const void *b)
{
    const co_saving *x = a, *y = b;

    return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

int co_explain_savings(co_saving out[CO_SAVINGS_MAX], const co_evidence *e)
{
    const co_rank_times *t = e->run.times;
    savings s = {.at = out, .least = SAVINGS_LEAST * e->run.wall_seconds};

    if (!e->profile.known || !e->run.has_times)
        return 0;
    SAVINGS_SAY(&s, t->data, "no waiting for samples: loader.threads, or `cohort data pack`");
    SAVINGS_SAY(&s, t->checkpoint, "no waiting for checkpoints: checkpoint.every");
    savings_ranks(&s, e, t);
    SAVINGS_SAY(&s, t->compute * savings_fixed(&e->profile) / 2,
                "batch: twice as large, for half as many updates; with optimizer.lr as fits it");
    savings_layers(&s, &e->profile, t->compute);
    qsort(out, (size_t)s.n, sizeof(*out), savings_compare);
    return s.n;
}
