/* characters.c - a text as its characters. Untrusted input. */
#include "text/characters.h"

#include <string.h>

#include "core/mem.h"

co_status co_characters_open(co_characters *out)
{
    *out = (co_characters){.id = co_calloc(CO_UTF8_CODES, sizeof(*out->id))};
    if (!out->id)
        return CO_E_NOMEM;
    memset(out->id, 0xff, CO_UTF8_CODES * sizeof(*out->id));
    return CO_OK;
}

co_status co_characters_see(co_characters *characters, const uint8_t *text, size_t size,
                            const char *name)
{
    for (size_t at = 0, n; at < size; at += n) {
        uint32_t code;

        n = co_utf8_decode(&code, text + at, size - at);
        if (n == 0)
            return co_fail(CO_E_DATA,
                           "%s: line %llu, byte %llu: 0x%02x is not UTF-8; `tokenizer: bytes` "
                           "takes any bytes",
                           name, (unsigned long long)characters->lines + 1,
                           (unsigned long long)(characters->bytes + at), text[at]);
        characters->n += characters->id[code] == CO_CHARACTERS_NONE;
        characters->id[code] = 0;
        characters->lines += code == '\n';
        characters->total++;
    }
    characters->bytes += size;
    return CO_OK;
}

co_status co_characters_number(co_characters *characters)
{
    uint32_t n = 0;

    characters->code = co_calloc(characters->n, sizeof(*characters->code));
    if (!characters->code)
        return CO_E_NOMEM;
    for (uint32_t code = 0; code < CO_UTF8_CODES; code++) {
        if (characters->id[code] == CO_CHARACTERS_NONE)
            continue;
        characters->id[code] = n;
        characters->code[n++] = code;
    }
    return CO_OK;
}

void co_characters_close(co_characters *characters)
{
    co_free(characters->id);
    co_free(characters->code);
    *characters = (co_characters){0};
}
