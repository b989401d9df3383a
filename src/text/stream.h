/* stream.h - the words of a file of any size, in bounded memory. */
#ifndef CO_TEXT_STREAM_H
#define CO_TEXT_STREAM_H

#include <cohort/status.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Zero is closed. */
typedef struct co_word_stream {
    FILE *file;        /* owned */
    uint8_t *buffer;   /* owned */
    const char *path;  /* borrowed, for messages */
    size_t begin, end; /* what is left of it */
    uint64_t size;     /* bytes of the file */
    bool over;         /* the file has been read to its end */
} co_word_stream;

/* CO_E_DATA: it cannot be read, or is gzip. */
co_status co_word_stream_open(co_word_stream *out, const char *path);
/* The next word, borrowed until the next call; *n is 0 at the end. CO_E_IO. */
co_status co_word_stream_next(const uint8_t **word, size_t *n, co_word_stream *stream);
void co_word_stream_close(co_word_stream *stream);

#endif
