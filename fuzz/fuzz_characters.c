/*
 * fuzz_characters.c - the characters of any bytes.
 *
 * What is accepted must be, character by character, what its code points encode to.
 */
#include <stdlib.h>
#include <string.h>

#include "text/characters.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const co_characters *characters, const uint8_t *data, size_t size)
{
    uint64_t total = 0;

    for (size_t at = 0, n; at < size; at += n, total++) {
        uint8_t bytes[CO_UTF8_MAX];
        uint32_t code;

        n = co_utf8_decode(&code, data + at, size - at);
        if (n == 0 || co_utf8_encode(bytes, code) != n || memcmp(bytes, data + at, n) != 0)
            abort();
        if (characters->id[code] >= characters->n || characters->code[characters->id[code]] != code)
            abort();
    }
    if (total != characters->total)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    co_characters characters;

    if (co_characters_open(&characters) != CO_OK)
        return 0;
    if (size > 0 && co_characters_see(&characters, data, size, "input") == CO_OK &&
        co_characters_number(&characters) == CO_OK)
        check(&characters, data, size);
    co_characters_close(&characters);
    return 0;
}
