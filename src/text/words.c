/* words.c - cuts text into words, as GPT-2's pattern does. */
#include "text/words.h"

#include <string.h>

#include "core/utf8.h"
#include "text/unicode_table.h"

static co_class words_search(uint32_t code)
{
    size_t low = 0, high = sizeof(unicode_table) / sizeof(unicode_table[0]);

    while (low < high) {
        const size_t middle = (low + high) / 2;

        if (unicode_table[middle] >> 2 <= code)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? (co_class)(unicode_table[low - 1] & 3) : CO_CLASS_OTHER;
}

co_class co_class_of(uint32_t code)
{
    if (code >= 0x80)
        return words_search(code);
    if ((code | 0x20) - 'a' < 26)
        return CO_CLASS_LETTER;
    if (code - '0' < 10)
        return CO_CLASS_NUMBER;
    return code == ' ' || code - '\t' < 5 ? CO_CLASS_SPACE : CO_CLASS_OTHER;
}

/* The class of the character at `at`, and its bytes. */
static co_class words_class(size_t *n, const uint8_t *at, size_t left)
{
    uint32_t code;

    *n = co_utf8_decode(&code, at, left);
    if (*n)
        return co_class_of(code);
    *n = 1;
    return CO_CLASS_OTHER;
}

static size_t words_contraction(const uint8_t *at, size_t left)
{
    static const char *const ends[] = {"s", "t", "re", "ve", "m", "ll", "d"};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        const size_t n = strlen(ends[i]);

        if (left > n && memcmp(at + 1, ends[i], n) == 0)
            return n + 1;
    }
    return 0;
}

/* Bytes of the run of characters of a class, at most CO_WORD_MAX and a character; *last: of the
   last of them. */
static size_t words_run(size_t *last, const uint8_t *at, size_t left, co_class want)
{
    size_t used = 0, n;

    for (*last = 0; used < left && used < CO_WORD_MAX; used += n) {
        if (words_class(&n, at + used, left - used) != want)
            break;
        *last = n;
    }
    return used;
}

size_t co_word_next(const uint8_t *at, size_t left)
{
    const size_t space = *at == ' ' && left > 1;
    size_t n = *at == '\'' ? words_contraction(at, left) : 0, last;
    co_class class;

    if (n)
        return n;
    class = words_class(&n, at + space, left - space);
    if (class != CO_CLASS_SPACE)
        return space + words_run(&last, at + space, left - space, class);
    n = words_run(&last, at, left, CO_CLASS_SPACE);
    return n < left && n > last && n < CO_WORD_MAX ? n - last : n;
}
