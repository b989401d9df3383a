/* tokenizers.h - what the tokens of a data set stand for. */
#ifndef CO_DATA_TOKENIZERS_H
#define CO_DATA_TOKENIZERS_H

#include "text/tokenizer.h"

/* Of the state of data set "text"; borrows from it, the caller closes nothing. */
co_tokenizer co_text_tokenizer(const void *state);
/* Of "tokens": *found is false where none is beside the files. The caller closes what is found. */
co_status co_tokens_tokenizer(co_tokenizer *out, bool *found, const void *state);
/* A file of the set, for messages; borrowed. */
const char *co_text_path(const void *state);
const char *co_tokens_path(const void *state);

#endif
