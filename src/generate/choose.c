/* choose.c - temperature, top-k and top-p (Holtzman et al., arXiv:1904.09751). */
#include "generate/choose.h"

#include <math.h>
#include <stdlib.h>

#include "core/mem.h"

typedef struct choose_entry {
    float logit;
    uint32_t token;
    double p; /* not divided by the sum */
} choose_entry;

struct co_chooser {
    co_choose_rule rule;
    uint32_t n;
    choose_entry entry[]; /* (n) */
};

co_status co_chooser_create(co_chooser **out, const co_choose_rule *rule, uint32_t tokens)
{
    co_chooser *chooser = co_calloc(1, sizeof(*chooser) + tokens * sizeof(chooser->entry[0]));

    if (!chooser)
        return CO_E_NOMEM;
    chooser->rule = *rule;
    chooser->n = tokens;
    *out = chooser;
    return CO_OK;
}

void co_chooser_destroy(co_chooser *chooser)
{
    co_free(chooser);
}

/* Likeliest first. */
static int choose_compare(const void *left, const void *right)
{
    const choose_entry *a = left, *b = right;

    if (a->logit != b->logit)
        return a->logit > b->logit ? -1 : 1;
    return (a->token > b->token) - (a->token < b->token);
}

/* How many of the sorted entries may be drawn; *sum is that of their p. */
static uint32_t choose_keep(double *sum, co_chooser *chooser)
{
    const co_choose_rule *rule = &chooser->rule;
    const uint32_t most = rule->top_k && rule->top_k < chooser->n ? rule->top_k : chooser->n;
    double all = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < most; i++) {
        choose_entry *entry = &chooser->entry[i];

        entry->p =
            exp(((double)entry->logit - (double)chooser->entry[0].logit) / rule->temperature);
        all += entry->p;
    }
    *sum = 0;
    while (n < most && (n == 0 || *sum < rule->top_p * all))
        *sum += chooser->entry[n++].p;
    return n;
}

co_status co_chooser_draw(uint32_t *out, co_chooser *chooser, const float *logits, double unit)
{
    uint32_t n, at = 0;
    double sum, passed;

    for (uint32_t t = 0; t < chooser->n; t++) {
        if (!isfinite(logits[t]))
            return co_fail(CO_E_DATA, "the logit of token %u is not a finite number", t);
        chooser->entry[t] = (choose_entry){.logit = logits[t], .token = t};
    }
    qsort(chooser->entry, chooser->n, sizeof(chooser->entry[0]), choose_compare);
    *out = chooser->entry[0].token;
    if (chooser->rule.temperature <= 0)
        return CO_OK;
    n = choose_keep(&sum, chooser);
    passed = chooser->entry[0].p;
    while (at + 1 < n && passed <= unit * sum)
        passed += chooser->entry[++at].p;
    *out = chooser->entry[at].token;
    return CO_OK;
}
