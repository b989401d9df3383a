/*
 * words.h - cuts text into words, as GPT-2's pattern does, before pairs are merged within each:
 *   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * A byte that is no UTF-8 is a character that is neither letter, number nor space.
 */
#ifndef CO_TEXT_WORDS_H
#define CO_TEXT_WORDS_H

#include <stddef.h>
#include <stdint.h>

/* A longer word is cut after this many bytes (at the next character), so that reading a stream
   needs bounded memory. */
#define CO_WORD_MAX ((size_t)1 << 20)
/* What has to follow a word in memory, but at the end of the text. */
#define CO_WORD_AHEAD (CO_WORD_MAX + 16)

typedef enum co_class { CO_CLASS_OTHER, CO_CLASS_LETTER, CO_CLASS_NUMBER, CO_CLASS_SPACE } co_class;

co_class co_class_of(uint32_t code);
/* Bytes of the word at `at`; `left` >= 1 bytes may be read, CO_WORD_AHEAD or the rest of the text.
 */
size_t co_word_next(const uint8_t *at, size_t left);

#endif
