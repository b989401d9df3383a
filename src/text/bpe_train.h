/* bpe_train.h - merges found in a text: the pair that occurs most often becomes a token, again and
 * again. */
#ifndef CO_TEXT_BPE_TRAIN_H
#define CO_TEXT_BPE_TRAIN_H

#include "text/bpe.h"

typedef struct co_bpe_trainer co_bpe_trainer;

co_status co_bpe_trainer_create(co_bpe_trainer **out);
void co_bpe_trainer_destroy(co_bpe_trainer *trainer);
/* Count a word. Of a long one its pieces of 64 bytes are counted. Memory is bounded: where there
   are too many different words, those that came once are forgotten. */
co_status co_bpe_trainer_word(co_bpe_trainer *trainer, const uint8_t *word, size_t size);
/* Merge pairs that occur twice or more until there are `tokens` tokens. Of pairs that occur as
   often, the one of lower tokens comes first. */
co_status co_bpe_train(co_bpe **out, co_bpe_trainer *trainer, uint32_t tokens);

#endif
