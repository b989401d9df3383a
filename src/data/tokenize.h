/* tokenize.h - makes a text file a folder for the data set "tokens". */
#ifndef CO_DATA_TOKENIZE_H
#define CO_DATA_TOKENIZE_H

#include "text/tokenizer.h"

typedef struct co_tokenize_options {
    const char *source, *target; /* a text file; a folder that does not exist */
    co_tokenizer_kind tokenizer;
    int64_t vocabulary; /* bpe: tokens to train, from 256 */
    const char *merges; /* bpe: a file of them instead, perhaps with vocab.json beside it;
                           NULL: trained on the source */
    /* Called now and then; a failure ends the work. */
    co_status (*check)(void *arg);
    void *arg;
} co_tokenize_options;

typedef struct co_tokenized {
    uint64_t bytes, tokens;
    uint32_t vocabulary;
} co_tokenized;

/* Write TARGET/tokens.bin in llm.c's layout, u16 where the vocabulary allows it, else u32, and the
   tokenizer's files beside it. On failure there is no TARGET. */
co_status co_tokenize(co_tokenized *out, const co_tokenize_options *options);

#endif
