/* utf8_stream.c - holds bytes back until they are a character. */
#include "generate/utf8_stream.h"

#include <stdbool.h>
#include <string.h>

static const uint8_t utf8_replacement[] = {0xef, 0xbf, 0xbd};

/* Whether the bytes may be the beginning of a character. */
static bool utf8_may_continue(const uint8_t *at, size_t n)
{
    uint8_t whole[CO_UTF8_MAX];
    uint32_t code;

    if (n >= CO_UTF8_MAX)
        return false;
    /* completed by the lowest and by the highest bytes that can follow */
    for (int high = 0; high < 2; high++)
        for (size_t size = n + 1; size <= CO_UTF8_MAX; size++) {
            memset(whole, high ? 0xbf : 0x80, sizeof(whole));
            memcpy(whole, at, n);
            if (co_utf8_decode(&code, whole, size) == size)
                return true;
        }
    return false;
}

static bool utf8_is_control(uint32_t code)
{
    return (code < ' ' && code != '\n' && code != '\t' && code != '\r') ||
           (code >= 0x7f && code < 0xa0);
}

static co_status utf8_replace(co_utf8_stream *stream)
{
    return stream->write(stream->arg, utf8_replacement, sizeof(utf8_replacement));
}

/* Pass on what is decided of the held bytes. */
static co_status utf8_pass(co_utf8_stream *stream)
{
    while (stream->n_held > 0) {
        uint32_t code;
        size_t n = co_utf8_decode(&code, stream->held, stream->n_held);

        if (n == 0 && utf8_may_continue(stream->held, stream->n_held))
            return CO_OK;
        if (n > 0 && !utf8_is_control(code))
            CO_TRY(stream->write(stream->arg, stream->held, n));
        else
            CO_TRY(utf8_replace(stream));
        n += n == 0;
        stream->n_held -= n;
        memmove(stream->held, stream->held + n, stream->n_held);
    }
    return CO_OK;
}

co_status co_utf8_stream_put(co_utf8_stream *stream, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        stream->held[stream->n_held++] = bytes[i];
        CO_TRY(utf8_pass(stream));
    }
    return CO_OK;
}

co_status co_utf8_stream_end(co_utf8_stream *stream)
{
    const bool cut = stream->n_held > 0;

    stream->n_held = 0;
    return cut ? utf8_replace(stream) : CO_OK;
}
