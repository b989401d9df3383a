/* tokenize.h - makes a text file a folder for the data set "tokens". */
#ifndef CO_DATA_TOKENIZE_H
#define CO_DATA_TOKENIZE_H

#include <cohort/status.h>

#include <stdint.h>

typedef enum co_tokenizer { CO_TOKENIZER_CHAR, CO_TOKENIZER_BYTES, CO_TOKENIZER_BPE } co_tokenizer;

typedef struct co_tokenize_options {
    const char *source, *target; /* a text file; a folder that does not exist */
    co_tokenizer tokenizer;
    int64_t vocabulary; /* bpe: tokens to train, from 256 */
    const char *merges; /* bpe: a file of them instead; NULL: trained on the source */
    /* Called now and then; a failure ends the work. */
    co_status (*check)(void *arg);
    void *arg;
} co_tokenize_options;

typedef struct co_tokenized {
    uint64_t bytes, tokens;
    uint32_t vocabulary;
} co_tokenized;

/* Write TARGET/tokens.bin in llm.c's layout, u16 where the vocabulary allows it, else u32, and
   TARGET/merges.txt (bpe) or TARGET/characters.txt (char: all characters, in the order of their
   tokens). On failure there is no tokens.bin. */
co_status co_tokenize(co_tokenized *out, const co_tokenize_options *options);

#endif
