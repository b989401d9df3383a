/*
 * bpe.h - byte-level pair encoding, as GPT-2's: a text is cut into words (words.h), the tokens of a
 * word are first its bytes, and then the pair with the earliest merge becomes one token, again and
 * again. Any bytes can be encoded, and decoded to themselves.
 *
 * Tokens 0 to 255 are the bytes, in GPT-2's order; each merge makes the next one, unless there is a
 * token of the same bytes, which is then the one it makes.
 */
#ifndef CO_TEXT_BPE_H
#define CO_TEXT_BPE_H

#include <cohort/status.h>

#include "text/pairs.h"

#define CO_BPE_BYTES     256
#define CO_BPE_MAX       (1u << 20) /* tokens */
#define CO_BPE_MAX_TOKEN (1u << 16) /* bytes of a token */

typedef struct co_bpe co_bpe;

/* Without merges: tokens are bytes. Caller destroys. */
co_status co_bpe_create(co_bpe **out);
/* Read GPT-2's vocab.bpe, or merges.txt as Hugging Face's tokenizers write it. CO_E_DATA names file
   and line. */
co_status co_bpe_load(co_bpe **out, const char *path);
/* The same from memory. */
co_status co_bpe_parse(co_bpe **out, const uint8_t *text, size_t size, const char *name);
/* Write merges.txt, and vocab.json. */
co_status co_bpe_save(const co_bpe *bpe, const char *path);
co_status co_bpe_save_vocab(const co_bpe *bpe, const char *path);
/* Read vocab.json: check that its numbers are those of the merges, and add its special tokens,
   which no text is encoded to. CO_E_DATA names the token. */
co_status co_bpe_load_vocab(co_bpe *bpe, const char *path);
co_status co_bpe_parse_vocab(co_bpe *bpe, const uint8_t *text, size_t size, const char *name);
void co_bpe_destroy(co_bpe *bpe);

/* Merge two tokens, into *out, from now on, if no word has been encoded yet; CO_E_DATA if there is
   such a merge, or too many. */
co_status co_bpe_merge(uint32_t *out, co_bpe *bpe, uint32_t left, uint32_t right);
uint32_t co_bpe_tokens(const co_bpe *bpe);
/* Whether a token is one of those that vocab.json has added. */
bool co_bpe_is_special(const co_bpe *bpe, uint32_t token);
/* Bytes of a token, borrowed. */
const uint8_t *co_bpe_piece(const co_bpe *bpe, size_t *n, uint32_t token);

/* Tokens of one word, of any bytes; `out` is borrowed until the next call. Not thread-safe: it
   keeps the tokens of recent words. CO_E_NOMEM. */
co_status co_bpe_word(const uint32_t **out, size_t *n, co_bpe *bpe, const uint8_t *word,
                      size_t size);

#endif
