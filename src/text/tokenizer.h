/*
 * tokenizer.h - text to tokens and back: characters, bytes, or pairs of bytes. It is kept as files
 * in a folder:
 *
 *   characters.txt          all characters, in the order of their tokens
 *   bytes.bin               the 256 bytes
 *   merges.txt, vocab.json  pairs, as Hugging Face's tokenizers write them; the second may be
 * absent
 */
#ifndef CO_TEXT_TOKENIZER_H
#define CO_TEXT_TOKENIZER_H

#include "text/bpe.h"
#include "text/characters.h"

#define CO_TOKENIZER_BYTES_FILE "bytes.bin"

typedef enum co_tokenizer_kind {
    CO_TOKENIZER_CHAR,
    CO_TOKENIZER_BYTES,
    CO_TOKENIZER_BPE
} co_tokenizer_kind;

/* Whoever makes one without co_tokenizer_load fills in `kind` and what it needs. */
typedef struct co_tokenizer {
    co_tokenizer_kind kind;
    co_characters characters; /* owned; of characters: numbered */
    co_bpe *bpe;              /* owned; of pairs; else NULL */
    uint32_t *token;          /* owned: (room) of the last text */
    size_t room;
} co_tokenizer;

/* Whether the folder has the files of one. */
bool co_tokenizer_is_in(const char *folder);
/* CO_E_DATA: there is none, or a damaged one. Caller closes. */
co_status co_tokenizer_load(co_tokenizer *out, const char *folder);
/* Merges from a file, and a vocab.json beside it. Caller closes. */
co_status co_tokenizer_load_merges(co_tokenizer *out, const char *path);
/* The folder is made if it is missing. */
co_status co_tokenizer_save(const co_tokenizer *tokenizer, const char *folder);
void co_tokenizer_close(co_tokenizer *tokenizer);

uint32_t co_tokenizer_tokens(const co_tokenizer *tokenizer);
/* Whether each token of one is the same text in the other. */
bool co_tokenizer_same(const co_tokenizer *a, const co_tokenizer *b);
/* Whether a token stands for no text, such as <|endoftext|>. */
bool co_tokenizer_is_special(const co_tokenizer *tokenizer, uint32_t token);
/* Tokens of one word (words.h); `out` is borrowed until the next call. CO_E_DATA: a character that
   it has no token for. */
co_status co_tokenizer_word(const uint32_t **out, size_t *n, co_tokenizer *tokenizer,
                            const uint8_t *word, size_t size);
/* Tokens of a text; caller frees *out with co_free. */
co_status co_tokenizer_encode(uint32_t **out, size_t *n, co_tokenizer *tokenizer,
                              const uint8_t *text, size_t size);
/* Bytes of a token below co_tokenizer_tokens: borrowed, or in `room`. */
const uint8_t *co_tokenizer_piece(size_t *n, uint8_t room[CO_UTF8_MAX],
                                  const co_tokenizer *tokenizer, uint32_t token);

#endif
