/*
 * file.c - map a file, and unpack it if it is gzip. Untrusted input.
 */
#include "data/file.h"

#include <errno.h>
#include <libdeflate.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/mem.h"
#include "core/open.h"

/* RFC 1951: the longest match, 258 bytes, takes at least two bits. */
#define FILE_GZIP_MAX_RATIO 1032
#define FILE_GZIP_MIN_SIZE  18 /* header and trailer */

static size_t file_u32le(const uint8_t *at)
{
    return (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

static co_status file_gunzip(uint8_t *out, size_t size, const uint8_t *bytes, size_t packed,
                             const char *name)
{
    struct libdeflate_decompressor *gzip = libdeflate_alloc_decompressor();
    enum libdeflate_result result;
    size_t used = 0;

    if (!gzip)
        return co_fail(CO_E_NOMEM, "out of memory");
    result = libdeflate_gzip_decompress_ex(gzip, bytes, packed, out, size, &used, NULL);
    libdeflate_free_decompressor(gzip);
    /* The trailer is the last member's: the first then does not fit, or something follows it. */
    if (result == LIBDEFLATE_INSUFFICIENT_SPACE || result == LIBDEFLATE_SHORT_OUTPUT ||
        (result == LIBDEFLATE_SUCCESS && packed - used > 1 && bytes[used] == 0x1f &&
         bytes[used + 1] == 0x8b))
        return co_fail(
            CO_E_DATA,
            "%s: gzip data that is damaged or cut short, or in several pieces; `gzip -t` "
            "says which: fetch it again, or unpack it with gunzip",
            name);
    if (result != LIBDEFLATE_SUCCESS)
        return co_fail(CO_E_DATA, "%s: gzip data that is damaged or cut short; fetch it again",
                       name);
    if (used != packed)
        return co_fail(CO_E_DATA, "%s: too long: %zu bytes follow the gzip data; fetch it again",
                       name, packed - used);
    return CO_OK;
}

/* The size in a gzip trailer is not trusted: it is checked against the most that so many packed
   bytes can unpack to before memory is allocated, and must then be exact. */
static co_status file_unpack(co_file *out, size_t *size, const uint8_t *bytes, size_t packed,
                             const char *name)
{
    size_t claim;

    if (packed < FILE_GZIP_MIN_SIZE)
        return co_fail(CO_E_DATA, "%s: gzip data that is cut short; fetch it again", name);
    claim = file_u32le(bytes + packed - 4);
    if (claim / FILE_GZIP_MAX_RATIO > packed)
        return co_fail(CO_E_DATA, "%s: gzip data that is damaged or cut short; fetch it again",
                       name);
    if (claim > CO_FILE_MAX_UNPACKED)
        return co_fail(CO_E_DATA,
                       "%s: gzip data that is cut short, or unpacks to more than %zu bytes; `gzip "
                       "-t` says which: fetch it again, or unpack it with gunzip",
                       name, CO_FILE_MAX_UNPACKED);
    out->unpacked = co_calloc(claim, 1);
    if (!out->unpacked)
        return CO_E_NOMEM;
    *size = claim;
    return file_gunzip(out->unpacked, claim, bytes, packed, name);
}

co_status co_file_borrow(co_file *out, const uint8_t *bytes, size_t size, const char *name)
{
    co_status st = CO_OK;

    *out = (co_file){.data = bytes, .size = size};
    if (size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) {
        st = file_unpack(out, &out->size, bytes, size, name);
        out->data = out->unpacked;
    }
    if (st == CO_OK && out->size == 0)
        st = co_fail(CO_E_DATA, "%s: is empty; fetch it again", name);
    if (st != CO_OK)
        co_file_close(out);
    return st;
}

static co_status file_map(void **map, size_t size, int fd, const char *path)
{
    if (size == 0)
        return co_fail(CO_E_DATA, "%s: is empty; fetch it again", path);
    *map = co_map(size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd);
    if (!*map)
        return co_fail(CO_E_IO, "%s: cannot map the file: %s", path, strerror(errno));
    return CO_OK;
}

co_status co_file_open(co_file *out, const char *path, const char *expected)
{
    const co_open_rule rule = {.status = CO_E_DATA, .max = SIZE_MAX, .expected = expected};
    void *map = NULL;
    uint64_t size;
    co_status st;
    int fd;

    *out = (co_file){0};
    CO_TRY(co_open_read(&fd, &size, path, &rule));
    st = file_map(&map, size, fd, path);
    close(fd);
    if (st != CO_OK)
        return st;
    st = co_file_borrow(out, map, size, path);
    if (st != CO_OK || out->unpacked) {
        munmap(map, size);
        return st;
    }
    out->map = map;
    out->map_size = size;
    return CO_OK;
}

void co_file_close(co_file *file)
{
    if (file->map)
        munmap(file->map, file->map_size);
    co_free(file->unpacked);
    *file = (co_file){0};
}
