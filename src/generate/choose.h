/* choose.h - draws the next token from logits. */
#ifndef CO_GENERATE_CHOOSE_H
#define CO_GENERATE_CHOOSE_H

#include <cohort/status.h>

#include <stdint.h>

typedef struct co_choose_rule {
    double temperature; /* logits are divided by it; 0: always the likeliest token */
    uint32_t top_k;     /* only so many of the likeliest; 0: all */
    double top_p;       /* only the likeliest that together have at least this probability */
} co_choose_rule;

typedef struct co_chooser co_chooser;

/* For `tokens` tokens; logits after these are never drawn. */
co_status co_chooser_create(co_chooser **out, const co_choose_rule *rule, uint32_t tokens);
void co_chooser_destroy(co_chooser *chooser);
/* The token for `unit`, a uniform number from 0 to below 1. Of equal logits the lower token comes
   first. CO_E_DATA: a logit is not a finite number. */
co_status co_chooser_draw(uint32_t *out, co_chooser *chooser, const float *logits, double unit);

#endif
