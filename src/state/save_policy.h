/* save_policy.h - the config key `checkpoint`: when to make checkpoints and which to keep. */
#ifndef CO_STATE_SAVE_POLICY_H
#define CO_STATE_SAVE_POLICY_H

#include "core/config.h"

typedef enum co_saver_unit {
    CO_SAVER_OFF,
    CO_SAVER_EPOCHS,
    CO_SAVER_STEPS,
    CO_SAVER_SECONDS
} co_saver_unit;

typedef struct co_saver_policy {
    const char *every_text; /* "1 epoch" */
    co_saver_unit unit;
    uint64_t every; /* in units; > 0 unless off */
    int64_t keep;
    const char *best_text;
    bool best;               /* decoded from best_text */
    const char *best_metric; /* likewise: the metric; NULL: accuracy, or loss */
    int on_error;            /* co_saver_on_error */
} co_saver_policy;

/* What to do when a checkpoint cannot be written. */
typedef enum co_saver_on_error { CO_SAVER_GO_ON, CO_SAVER_STOP } co_saver_on_error;

extern const co_key co_saver_policy_keys[];

/* Read NULL, a map of the keys, a time such as `1 epoch`, or `off`. */
co_status co_saver_policy_read(co_saver_policy *out, const co_value *value, co_arena *arena);

#endif
