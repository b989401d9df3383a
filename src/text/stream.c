/* stream.c - the words of a file of any size, in bounded memory. */
#include "text/stream.h"

#include <errno.h>
#include <string.h>

#include "core/mem.h"
#include "core/open.h"
#include "text/words.h"

#define STREAM_BUFFER (4 * CO_WORD_AHEAD)

static co_status stream_check(co_word_stream *s)
{
    const bool gzip = getc(s->file) == 0x1f && getc(s->file) == 0x8b;

    rewind(s->file);
    if (gzip)
        return co_fail(CO_E_DATA, "%s: is gzip: unpack it with gunzip first", s->path);
    return CO_OK;
}

co_status co_word_stream_open(co_word_stream *out, const char *path)
{
    const co_open_rule rule = {.status = CO_E_DATA, .expected = "a text file"};
    co_status st;

    *out = (co_word_stream){.path = path, .buffer = co_calloc(STREAM_BUFFER, 1)};
    if (!out->buffer)
        return CO_E_NOMEM;
    st = co_open_stream(&out->file, &out->size, path, &rule);
    if (st == CO_OK)
        st = stream_check(out);
    if (st != CO_OK)
        co_word_stream_close(out);
    return st;
}

static co_status stream_fill(co_word_stream *s)
{
    size_t n;

    s->end -= s->begin;
    memmove(s->buffer, s->buffer + s->begin, s->end);
    s->begin = 0;
    n = fread(s->buffer + s->end, 1, STREAM_BUFFER - s->end, s->file);
    if (n == 0 && ferror(s->file))
        return co_fail(CO_E_IO, "%s: cannot be read: %s", s->path, strerror(errno));
    s->end += n;
    s->over = n == 0;
    return CO_OK;
}

co_status co_word_stream_next(const uint8_t **word, size_t *n, co_word_stream *stream)
{
    while (!stream->over && stream->end - stream->begin < CO_WORD_AHEAD)
        CO_TRY(stream_fill(stream));
    *word = stream->buffer + stream->begin;
    *n = stream->end > stream->begin ? co_word_next(*word, stream->end - stream->begin) : 0;
    stream->begin += *n;
    return CO_OK;
}

void co_word_stream_close(co_word_stream *stream)
{
    if (stream->file)
        fclose(stream->file);
    co_free(stream->buffer);
    *stream = (co_word_stream){0};
}
