/* init.h - the config's `init`: weights that training starts from. */
#ifndef CO_TRAIN_INIT_H
#define CO_TRAIN_INIT_H

#include "train/model.h"
#include "train/spec.h"

/* Keys of `init` as a map. */
extern const co_key co_init_keys[];

/* Put the weights that `init` names into the model; nothing where the config has no `init`. */
co_status co_init_load(co_model *model, const co_spec *spec);

#endif
