/*
 * tar_read.c - headers of tar files. Untrusted input.
 *
 * Libraries for archives read them from start to end and do not say where a member's bytes are,
 * which is what reading samples in any order needs.
 */
#include "data/tar_read.h"

#include <string.h>

#include "core/text.h"

#define TAR_MAX_PAX 65536 /* bytes of a pax header or a long name */

/* Where the fields of a header are, and their sizes (POSIX.1-1988, ustar). */
#define TAR_NAME     0, 100
#define TAR_SIZE     124, 12
#define TAR_CHECKSUM 148
#define TAR_TYPE     156
#define TAR_MAGIC    257
#define TAR_PREFIX   345, 155

void co_tar_begin(co_tar_reader *out, const co_tar_source *source)
{
    *out = (co_tar_reader){.source = source};
}

static co_status tar_bad(const co_tar_reader *r, const char *what)
{
    return co_fail(CO_E_DATA, "%s: at byte %llu: %s", r->source->name, (unsigned long long)r->at,
                   what);
}

/* Octal digits, or a binary number behind a first byte of 0x80 (GNU tar). */
static bool tar_number(uint64_t *out, const uint8_t *header, size_t at, size_t n)
{
    const uint8_t *field = header + at;
    size_t i = 0;

    *out = 0;
    if (field[0] == 0x80) {
        for (i = 1; i < n; i++) {
            if (*out >> 55)
                return false;
            *out = *out << 8 | field[i];
        }
        return true;
    }
    while (i < n && field[i] == ' ')
        i++;
    for (; i < n && field[i] >= '0' && field[i] <= '7'; i++)
        *out = *out << 3 | (uint64_t)(field[i] - '0');
    return i == n || field[i] == ' ' || field[i] == '\0';
}

/* The sum of all bytes, those of the sum itself counted as blanks; programs of before POSIX took
   bytes as signed. */
static bool tar_sum_is_right(const uint8_t *header)
{
    uint64_t claimed, sum = 0;
    int64_t as_signed = 0;

    for (size_t i = 0; i < CO_TAR_BLOCK; i++) {
        const uint8_t byte = i >= TAR_CHECKSUM && i < TAR_CHECKSUM + 8 ? (uint8_t)' ' : header[i];

        sum += byte;
        as_signed += (int8_t)byte;
    }
    return tar_number(&claimed, header, TAR_CHECKSUM, 8) &&
           (claimed == sum || (int64_t)claimed == as_signed);
}

static size_t tar_copy(char *out, const uint8_t *header, size_t at, size_t n)
{
    const size_t length = strnlen((const char *)header + at, n);

    memcpy(out, header + at, length);
    out[length] = '\0';
    return length;
}

static void tar_take_name(co_tar_member *out, const uint8_t *header)
{
    size_t n = 0;

    if (memcmp(header + TAR_MAGIC, "ustar\0", 6) == 0) {
        n = tar_copy(out->name, header, TAR_PREFIX);
        if (n)
            out->name[n++] = '/';
    }
    (void)tar_copy(out->name + n, header, TAR_NAME);
}

static uint64_t tar_padded(uint64_t size)
{
    return (size + CO_TAR_BLOCK - 1) / CO_TAR_BLOCK * CO_TAR_BLOCK;
}

/* One record of a pax header, "LENGTH KEY=VALUE\n" of which `key` is all but the length. */
static co_status tar_pax_record(co_tar_reader *r, const char *key, size_t n)
{
    const char *equals = memchr(key, '=', n);
    const char *value = equals ? equals + 1 : NULL;
    const size_t length = equals ? (size_t)(key + n - 1 - value) : 0;

    if (!equals || key[n - 1] != '\n')
        return tar_bad(r, "a damaged pax header");
    if (strncmp(key, "path=", 5) == 0) {
        if (length == 0 || length >= CO_TAR_MAX_NAME)
            return tar_bad(r, "a name that is empty or too long");
        memcpy(r->name, value, length);
        r->name[length] = '\0';
        r->has_name = true;
    } else if (strncmp(key, "size=", 5) == 0) {
        r->size = 0;
        for (const char *digit = value; digit < value + length; digit++) {
            if (*digit < '0' || *digit > '9' || r->size > UINT64_MAX / 16)
                return tar_bad(r, "a damaged size in a pax header");
            r->size = 10 * r->size + (uint64_t)(*digit - '0');
        }
        r->has_size = true;
    } else if (strncmp(key, "GNU.sparse", 10) == 0) {
        return tar_bad(r, "a sparse file, which is not read; write the archive without --sparse");
    }
    return CO_OK;
}

static co_status tar_pax(co_tar_reader *r, const char *text, size_t n)
{
    while (n > 0) {
        size_t length = 0, at = 0;

        for (; at < n && at < 6 && text[at] >= '0' && text[at] <= '9'; at++)
            length = 10 * length + (size_t)(text[at] - '0');
        if (at == 0 || at == n || text[at] != ' ' || length <= at + 1 || length > n)
            return tar_bad(r, "a damaged pax header");
        CO_TRY(tar_pax_record(r, text + at + 1, length - at - 1));
        text += length;
        n -= length;
    }
    return CO_OK;
}

/* A header that says something of the next member. */
static co_status tar_extension(co_tar_reader *r, uint64_t size, char type)
{
    char text[TAR_MAX_PAX];

    if (type == 'K')
        return CO_OK; /* the long name that a link leads to */
    if (size > sizeof(text))
        return tar_bad(r, "a header that is too large");
    CO_TRY(r->source->read(r->source->arg, (uint8_t *)text, r->at + CO_TAR_BLOCK, (size_t)size));
    if (type != 'L')
        return tar_pax(r, text, (size_t)size);
    while (size > 0 && text[size - 1] == '\0')
        size--;
    if (size == 0 || size >= CO_TAR_MAX_NAME || memchr(text, '\0', (size_t)size))
        return tar_bad(r, "a name that is empty or too long");
    memcpy(r->name, text, (size_t)size);
    r->name[size] = '\0';
    r->has_name = true;
    return CO_OK;
}

/* Only zeros follow the last member, at least one block. */
static bool tar_is_zero(const uint8_t *header)
{
    for (size_t i = 0; i < CO_TAR_BLOCK; i++)
        if (header[i])
            return false;
    return true;
}

static co_status tar_read_header(uint8_t *header, co_tar_reader *r)
{
    if (r->at > r->source->size || r->source->size - r->at < CO_TAR_BLOCK)
        return co_fail(CO_E_DATA,
                       "%s: cut short: %llu bytes, and the end of the archive is not among them",
                       r->source->name, (unsigned long long)r->source->size);
    return r->source->read(r->source->arg, header, r->at, CO_TAR_BLOCK);
}

/* What a header says, before those that came before it are applied. */
static co_status tar_take_header(co_tar_member *out, char *type, const co_tar_reader *r,
                                 const uint8_t *header)
{
    if (!tar_sum_is_right(header)) {
        if (r->at == 0)
            return co_fail(CO_E_DATA,
                           "%s: is not a tar file, or a compressed one; shards are not "
                           "compressed",
                           r->source->name);
        return tar_bad(r, "a header's checksum is wrong: the file is damaged");
    }
    if (!tar_number(&out->size, header, TAR_SIZE))
        return tar_bad(r, "a member's size is no number");
    *type = (char)header[TAR_TYPE];
    out->offset = r->at + CO_TAR_BLOCK;
    out->name[0] = '\0';
    tar_take_name(out, header);
    return CO_OK;
}

static co_status tar_check_type(co_tar_member *out, const co_tar_reader *r, char type)
{
    const size_t n = strlen(out->name);

    out->is_file = type == '0' || type == '\0' || type == '7';
    if (out->is_file && n > 0 && out->name[n - 1] == '/')
        out->is_file = false; /* a folder, of before POSIX */
    if (out->is_file || type == '5')
        return CO_OK;
    return co_fail(CO_E_DATA, "%s: '%s' is %s; shards hold files", r->source->name,
                   CO_SHOW(out->name),
                   type == '1' || type == '2' ? "a link"
                   : type == 'S'              ? "a sparse file"
                                              : "neither a file nor a folder");
}

static co_status tar_check_place(const co_tar_member *out, const co_tar_reader *r)
{
    if (out->size <= r->source->size && out->offset <= r->source->size - out->size)
        return CO_OK;
    return co_fail(CO_E_DATA,
                   "%s: cut short: '%s' has %llu bytes from byte %llu on, and the file %llu",
                   r->source->name, CO_SHOW(out->name), (unsigned long long)out->size,
                   (unsigned long long)out->offset, (unsigned long long)r->source->size);
}

/* Apply what the headers before it have said. */
static void tar_apply(co_tar_member *out, co_tar_reader *r)
{
    if (r->has_name)
        memcpy(out->name, r->name, strlen(r->name) + 1);
    if (r->has_size)
        out->size = r->size;
    r->has_name = r->has_size = false;
}

co_status co_tar_next(co_tar_member *out, bool *end, co_tar_reader *r)
{
    *end = false;
    for (;;) {
        uint8_t header[CO_TAR_BLOCK];
        char type = 0;

        CO_TRY(tar_read_header(header, r));
        if (tar_is_zero(header)) {
            *end = true;
            return CO_OK;
        }
        CO_TRY(tar_take_header(out, &type, r, header));
        if (type == 'x' || type == 'g' || type == 'L' || type == 'K') {
            CO_TRY(tar_check_place(out, r));
            if (type != 'g')
                CO_TRY(tar_extension(r, out->size, type));
            r->at = out->offset + tar_padded(out->size);
            continue;
        }
        tar_apply(out, r);
        CO_TRY(tar_check_type(out, r, type));
        if (!out->is_file)
            out->size = 0;
        CO_TRY(tar_check_place(out, r));
        r->at = out->offset + tar_padded(out->size);
        return CO_OK;
    }
}
