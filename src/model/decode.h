/* decode.h - what a language model predicts after each token of a sequence, with keys and values of
 * earlier ones kept. */
#ifndef CO_MODEL_DECODE_H
#define CO_MODEL_DECODE_H

#include "model/model.h"

/* From now on the model is for co_model_next alone. On the host. CO_E_USAGE: it is no language
   model. */
co_status co_model_decode(co_model *model);
/* Positions that it knows. */
int64_t co_model_length(const co_model *model);
/* The logits (classes) after the last of n >= 1 tokens, which are at `position` and after it; all
   positions before have been given. Borrowed until the next call. */
co_status co_model_next(const float **logits, co_model *model, const int32_t *token, uint64_t n,
                        int64_t position);
/* Of co_model_destroy. */
void co_model_drop_kept(co_model *model);

#endif
