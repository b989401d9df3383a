/* initial_weights.h - the config's `init`: weights that training starts from. */
#ifndef CO_MODEL_INITIAL_WEIGHTS_H
#define CO_MODEL_INITIAL_WEIGHTS_H

#include "model/model.h"

/* Keys of `init` when it is a map. */
extern const co_key co_init_keys[];

/* Whether the parameter is of a layer that `value` skips. */
bool co_init_skips(const co_value *value, const co_param *param);
/* Load the weights that `value`, the config's `init`, names. NULL: do nothing. */
co_status co_init_load(co_model *model, const co_value *value, co_config *config);

#endif
