/*
 * fuzz_merges.c - the reader of merges over any bytes.
 *
 * What it accepts must give back these bytes, and each word of them, from their tokens.
 */
#include <stdlib.h>
#include <string.h>

#include "text/bpe.h"
#include "text/words.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_word(co_bpe *bpe, const uint8_t *word, size_t size)
{
    const uint32_t *token;
    size_t n, at = 0;

    if (co_bpe_word(&token, &n, bpe, word, size) != CO_OK)
        return;
    for (size_t i = 0; i < n; i++) {
        size_t length;
        const uint8_t *piece = co_bpe_piece(bpe, &length, token[i]);

        if (length > size - at || memcmp(piece, word + at, length) != 0)
            abort();
        at += length;
    }
    if (at != size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    co_bpe *bpe;

    if (co_bpe_parse(&bpe, data, size, "input") != CO_OK)
        return 0;
    check_word(bpe, data, size);
    for (size_t at = 0, n; at < size; at += n) {
        n = co_word_next(data + at, size - at);
        if (n == 0 || n > size - at)
            abort();
        check_word(bpe, data + at, n);
        check_word(bpe, data + at, n); /* as kept */
    }
    co_bpe_destroy(bpe);
    return 0;
}
