/*
 * text.h - makes text from files safe for a terminal and for one line of it.
 *
 * Names of classes, files, hosts and tensors, and texts in configs and metadata, come from files.
 * Unescaped they could break a line, move the cursor, or display as another text.
 */
#ifndef CO_CORE_TEXT_H
#define CO_CORE_TEXT_H

#include <stddef.h>
#include <stdio.h>

#include <cohort/status.h>

/* `text` with its printable UTF-8 as it is, and all else (control characters, line ends, marks that
   turn the direction, bytes that are no UTF-8) as \n, \t, \x1b, \u202e; "..." is at the end of
   what does not fit. Made so once, it stays the same. Returns `out`; `size` is at least 4. */
const char *co_text_show(char *out, size_t size, const char *text);

/* The same for an argument of printf, in room of the block that it is in. */
#define CO_TEXT_SHOWN 4096
#define CO_SHOW(text) co_text_show((char[CO_TEXT_SHOWN]){0}, CO_TEXT_SHOWN, (text))

/* For JSON, which is UTF-8 and escapes by itself: `text` as it is, but what co_text_show makes of
   it in `out` where it is no UTF-8. */
const char *co_text_utf8(char *out, size_t size, const char *text);
#define CO_UTF8(text) co_text_utf8((char[CO_TEXT_SHOWN]){0}, CO_TEXT_SHOWN, (text))

/* The end of a text that was written to a stream of open_memstream(&text, ...), which `st` is of:
   closes it, frees the text and leaves a copy in *out, the caller's; NULL on failure. */
co_status co_text_take(char **out, FILE *stream, char **text, co_status st);

#endif
