/* utf8_stream.h - bytes that come a few at a time, as text for a terminal: a character is passed on
 * when it is whole. */
#ifndef CO_GENERATE_UTF8_STREAM_H
#define CO_GENERATE_UTF8_STREAM_H

#include <cohort/status.h>

#include "core/utf8.h"

typedef struct co_utf8_stream {
    /* Takes text: UTF-8 without control characters other than tab and the ends of lines. */
    co_status (*write)(void *arg, const uint8_t *text, size_t n);
    void *arg;
    uint8_t held[CO_UTF8_MAX]; /* of a character that is not whole yet */
    size_t n_held;
} co_utf8_stream;

/* Bytes that are no UTF-8, and control characters, become U+FFFD. */
co_status co_utf8_stream_put(co_utf8_stream *stream, const uint8_t *bytes, size_t n);
/* At the end, a character that is not whole is one U+FFFD. */
co_status co_utf8_stream_end(co_utf8_stream *stream);

#endif
