/* decode.h - a language model that decodes: co_model_decode and co_model_next (cohort/train.h). */
#ifndef CO_MODEL_DECODE_H
#define CO_MODEL_DECODE_H

#include "model/model.h"

/* Positions that a model which decodes knows. */
int64_t co_model_length(const co_model *model);
/* The first layer whose result depends on later positions; NULL: there is none. */
const co_node *co_model_looks_ahead(const co_model *model);
/* Of co_model_destroy. */
void co_model_drop_kept(co_model *model);

#endif
