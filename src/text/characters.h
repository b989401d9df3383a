/* characters.h - a text as its characters: the code points of UTF-8 that occur in it, in ascending
 * order, are numbered from 0. */
#ifndef CO_TEXT_CHARACTERS_H
#define CO_TEXT_CHARACTERS_H

#include <cohort/status.h>

#include "core/utf8.h"

#define CO_CHARACTERS_NONE UINT32_MAX

/* Zero is empty. */
typedef struct co_characters {
    uint32_t *id; /* owned: (CO_UTF8_CODES) number of a code point; CO_CHARACTERS_NONE: not there */
    uint32_t *code; /* owned: (n) ascending; set by co_characters_number */
    uint32_t n;
    uint64_t total;        /* characters seen so far */
    uint64_t lines, bytes; /* ended lines, and bytes, seen so far */
} co_characters;

/* No character yet. */
co_status co_characters_open(co_characters *out);
/* See the next piece of a text, which does not end inside a character. CO_E_DATA: no UTF-8; names
   the text `name`, with line and byte. */
co_status co_characters_see(co_characters *characters, const uint8_t *text, size_t size,
                            const char *name);
/* Number the characters seen. */
co_status co_characters_number(co_characters *characters);
void co_characters_close(co_characters *characters);

#endif
