/*
 * text.c - makes text from files safe for a terminal, and for JSON.
 */
#include "core/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/utf8.h"

/* Control characters, line ends, direction marks, characters without width, and non-characters. */
static bool text_is_plain(uint32_t code)
{
    static const uint32_t ranges[][2] = {
        {0, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},
        {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfdd0, 0xfdef},
        {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xfffe, 0xffff}, {0xe0000, 0x10ffff},
    };

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (code >= ranges[i][0] && code <= ranges[i][1])
            return false;
    return true;
}

/* The escaped form of the bytes at `at`, and how many bytes it stands for. */
static size_t text_piece(char piece[16], const char *at)
{
    uint32_t code;
    const size_t n = co_utf8_decode(&code, (const uint8_t *)at, strnlen(at, CO_UTF8_MAX));

    if (n > 0 && text_is_plain(code))
        snprintf(piece, 16, "%.*s", (int)n, at);
    else if (*at == '\n' || *at == '\t' || *at == '\r')
        snprintf(piece, 16, "\\%c", *at == '\n' ? 'n' : *at == '\t' ? 't' : 'r');
    else if (n < 2)
        snprintf(piece, 16, "\\x%02x", (unsigned char)*at);
    else
        snprintf(piece, 16, "\\u%04x", (unsigned)code);
    return n ? n : 1;
}

const char *co_text_show(char *out, size_t size, const char *text)
{
    size_t used = 0, whole = 0; /* up to where "..." has room after it */
    char piece[16];

    while (*text) {
        const size_t n = text_piece(piece, text), length = strlen(piece);

        if (used + length >= size) {
            memcpy(out + whole, "...", 4);
            return out;
        }
        memcpy(out + used, piece, length);
        used += length;
        whole = used + 4 <= size ? used : whole;
        text += n;
    }
    out[used] = '\0';
    return out;
}

static bool text_is_utf8(const char *text)
{
    uint32_t code;
    size_t n = 1;

    for (; *text && n > 0; text += n)
        n = co_utf8_decode(&code, (const uint8_t *)text, strnlen(text, CO_UTF8_MAX));
    return n > 0;
}

const char *co_text_utf8(char *out, size_t size, const char *text)
{
    return text_is_utf8(text) ? text : co_text_show(out, size, text);
}

co_status co_text_take(char **out, FILE *stream, char **text, co_status st)
{
    if (fclose(stream) != 0 && st == CO_OK)
        st = co_fail(CO_E_NOMEM, "out of memory");
    *out = st == CO_OK ? co_strdup(*text) : NULL;
    free(*text);
    return st != CO_OK ? st : *out ? CO_OK : CO_E_NOMEM;
}
