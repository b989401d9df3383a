/* token_file.c - find the tokens in a file. Untrusted input. */
#include "data/token_file.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/mem.h"
#include "core/open.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "files of tokens are little-endian, this machine is not"
#endif

static uint32_t token_file_word(const uint8_t *bytes, size_t i)
{
    uint32_t word;

    memcpy(&word, bytes + i * sizeof(word), sizeof(word));
    return word;
}

bool co_token_file_has_magic(const uint8_t *bytes, size_t size)
{
    const uint32_t magic = size >= sizeof(uint32_t) ? token_file_word(bytes, 0) : 0;

    return magic == CO_TOKEN_MAGIC_U16 || magic == CO_TOKEN_MAGIC_U32;
}

/* Whether the file begins as one with a header does: three numbers, the rest zeros. No sequence of
   tokens begins so. */
static bool token_file_has_header(const uint8_t *bytes, size_t size)
{
    if (size < CO_TOKEN_HEADER)
        return false;
    for (size_t i = 3; i < CO_TOKEN_HEADER / sizeof(uint32_t); i++)
        if (token_file_word(bytes, i) != 0)
            return false;
    return true;
}

static co_status token_file_check_header(co_token_sequence *out, const uint8_t *bytes, size_t size,
                                         const char *path)
{
    const uint32_t magic = token_file_word(bytes, 0), version = token_file_word(bytes, 1);
    const bool wide = magic == CO_TOKEN_MAGIC_U32;
    const uint64_t want = token_file_word(bytes, 2), have = size - CO_TOKEN_HEADER;

    if (!wide && magic != CO_TOKEN_MAGIC_U16)
        return co_fail(CO_E_DATA,
                       "%s: byte 0: a header of magic %lu; those of tokens are %u (u16) and %u "
                       "(u32)",
                       path, (unsigned long)magic, CO_TOKEN_MAGIC_U16, CO_TOKEN_MAGIC_U32);
    if (version != (wide ? CO_TOKEN_VERSION_U32 : CO_TOKEN_VERSION_U16))
        return co_fail(CO_E_DATA, "%s: byte 4: a header of version %lu; with magic %lu it is %u",
                       path, (unsigned long)version, (unsigned long)magic,
                       wide ? CO_TOKEN_VERSION_U32 : CO_TOKEN_VERSION_U16);
    out->size = wide ? 4 : 2;
    out->at = bytes + CO_TOKEN_HEADER;
    out->count = want;
    if (have == want * (uint64_t)out->size)
        return CO_OK;
    return co_fail(
        CO_E_DATA, "%s: %s: %llu bytes of tokens; %llu tokens (byte 8) of %d bytes need %llu", path,
        have < want * (uint64_t)out->size ? "cut short" : "too long", (unsigned long long)have,
        (unsigned long long)want, out->size, (unsigned long long)(want * (uint64_t)out->size));
}

co_status co_token_file_parse(co_token_sequence *out, const uint8_t *bytes, size_t size, int bare,
                              const char *path)
{
    *out = (co_token_sequence){.at = bytes, .size = bare, .path = path};
    if (size == 0)
        return co_fail(CO_E_DATA, "%s: is empty", path);
    if (size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b)
        return co_fail(CO_E_DATA, "%s: is gzip; files of tokens are mapped: unpack it", path);
    if (token_file_has_header(bytes, size))
        return token_file_check_header(out, bytes, size, path);
    if (co_token_file_has_magic(bytes, size))
        return co_fail(CO_E_DATA,
                       "%s: byte 0: magic %lu begins a header of %zu bytes, zero from "
                       "byte 12 on, which is damaged or cut short",
                       path, (unsigned long)token_file_word(bytes, 0), CO_TOKEN_HEADER);
    out->count = size / (size_t)bare;
    if (size % (size_t)bare != 0)
        return co_fail(CO_E_DATA, "%s: byte %zu: cut short: %zu bytes are no whole tokens of %d",
                       path, size / (size_t)bare * (size_t)bare, size, bare);
    return CO_OK;
}

co_status co_token_file_open(co_token_file *out, co_token_sequence *sequence, const char *path,
                             int bare)
{
    const co_open_rule rule = {
        .status = CO_E_DATA, .max = SIZE_MAX, .expected = "a file of tokens"};
    co_status st;
    uint64_t size;
    int fd;

    *out = (co_token_file){0};
    CO_TRY(co_open_read(&fd, &size, path, &rule));
    if (size > 0) {
        out->map = co_map(size, PROT_READ, MAP_PRIVATE, fd);
        out->size = size;
    }
    st = size == 0 || out->map
             ? CO_OK
             : co_fail(CO_E_IO, "%s: cannot map the file: %s", path, strerror(errno));
    close(fd);
    if (st == CO_OK)
        st = co_token_file_parse(sequence, out->map, size, bare, path);
    if (st != CO_OK)
        co_token_file_close(out);
    return st;
}

void co_token_file_close(co_token_file *file)
{
    if (file->map)
        munmap(file->map, file->size);
    *file = (co_token_file){0};
}

static bool token_file_has_word(const char *name, const char *word)
{
    const size_t n = strlen(word);

    for (const char *at = name; (at = strstr(at, word)); at++)
        if ((at == name || !isalpha((unsigned char)at[-1])) && !isalpha((unsigned char)at[n]))
            return true;
    return false;
}

bool co_token_file_is_test(const char *name)
{
    return token_file_has_word(name, "val") || token_file_has_word(name, "test");
}
