/* utf8.h - characters of UTF-8 (RFC 3629) from untrusted bytes, and back. */
#ifndef CO_CORE_UTF8_H
#define CO_CORE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define CO_UTF8_CODES 0x110000u /* code points are below this */
#define CO_UTF8_MAX   4         /* bytes of a character */

/* The code point at `at`, of which `left` >= 1 bytes may be read. Returns its bytes; 0: they are no
   UTF-8 (cut off, overlong, a surrogate, too large), and *code is undefined. */
static inline size_t co_utf8_decode(uint32_t *code, const uint8_t *at, size_t left)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t first = at[0];
    const size_t n = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

    *code = first;
    if (n == 1)
        return 1;
    if (first < 0xc2 || first > 0xf4 || n > left)
        return 0;
    *code = first & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (at[i] & 0x3f);
    }
    return *code < least[n] || *code >= CO_UTF8_CODES || (*code >= 0xd800 && *code < 0xe000) ? 0
                                                                                             : n;
}

/* Bytes of a code point, which are written to `out`. */
static inline size_t co_utf8_encode(uint8_t out[CO_UTF8_MAX], uint32_t code)
{
    const size_t n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};

    for (size_t i = n; i > 1; i--, code >>= 6)
        out[i - 1] = (uint8_t)(0x80 | (code & 0x3f));
    out[0] = (uint8_t)(lead[n] | code);
    return n;
}

/* Characters of a text; each byte that begins none counts as one. */
static inline size_t co_utf8_count(const char *text)
{
    size_t n = 0;

    for (; *text; text++)
        n += ((uint8_t)*text & 0xc0) != 0x80;
    return n;
}

#endif
