/*
 * idx.c - read an IDX file, plain or gzip, whose bytes may be anything.
 *
 * Settles that header and size agree to the byte before anything is believed. Must not know what
 * the bytes mean: images and labels are idx_images.c's.
 */
#include "data/idx.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/fs.h"
#include "core/mem.h"

#define IDX_UNSIGNED_BYTE 0x08
/* RFC 1951: the longest match, 258 bytes, takes at least two bits. */
#define IDX_GZIP_MAX_RATIO 1032
#define IDX_GZIP_MIN_SIZE  18 /* header and trailer */

/* "[60000][28][28]" */
static char *idx_format_dims(char *out, size_t size, const co_idx *idx)
{
    size_t used = 0;

    out[0] = '\0';
    for (int i = 0; i < idx->ndim && used < size; i++)
        used += (size_t)snprintf(out + used, size - used, "[%zu]", idx->dim[i]);
    return out;
}

static co_status idx_read_magic(co_reader *r, int ndim, const char *name)
{
    const uint8_t *magic;

    if (co_reader_bytes(&magic, r, 4) != 0)
        return co_fail(CO_E_DATA, "%s: cut short: %zu bytes are too few for an IDX header", name,
                       r->left);
    if (magic[0] != 0 || magic[1] != 0)
        return co_fail(CO_E_DATA,
                       "%s: not an IDX file: it begins with %02x %02x %02x %02x, expected 00 00 "
                       "08 %02x",
                       name, magic[0], magic[1], magic[2], magic[3], (unsigned)ndim);
    if (magic[2] != IDX_UNSIGNED_BYTE)
        return co_fail(CO_E_DATA, "%s: IDX elements of type 0x%02x, expected 0x08 (unsigned bytes)",
                       name, magic[2]);
    if (magic[3] != ndim)
        return co_fail(CO_E_DATA,
                       "%s: IDX data of %u dimensions, expected %d; are image and label files "
                       "mixed up?",
                       name, magic[3], ndim);
    return CO_OK;
}

static co_status idx_read_dims(co_idx *out, size_t *count, co_reader *r, const char *name)
{
    *count = 1;
    for (int i = 0; i < out->ndim; i++) {
        uint32_t dim;

        if (co_reader_u32be(&dim, r) != 0)
            return co_fail(CO_E_DATA, "%s: cut short within its IDX header", name);
        if (dim == 0)
            return co_fail(CO_E_DATA, "%s: empty: dimension %d of the IDX header is 0", name, i);
        out->dim[i] = dim;
        if (co_mul_size(count, *count, dim) != 0)
            return co_fail(CO_E_DATA, "%s: its IDX header asks for more bytes than any file has",
                           name);
    }
    return CO_OK;
}

static co_status idx_read_array(co_idx *out, const uint8_t *bytes, size_t size, const char *name)
{
    co_reader r = {bytes, size};
    size_t count;
    char dims[64];

    CO_TRY(idx_read_magic(&r, out->ndim, name));
    CO_TRY(idx_read_dims(out, &count, &r, name));
    idx_format_dims(dims, sizeof(dims), out);
    if (r.left < count)
        return co_fail(CO_E_DATA,
                       "%s: cut short: its header says %s = %zu bytes, %zu follow; fetch it again",
                       name, dims, count, r.left);
    if (r.left > count)
        return co_fail(CO_E_DATA,
                       "%s: too long: its header says %s = %zu bytes, %zu follow; fetch it again",
                       name, dims, count, r.left);
    out->data = r.at;
    return CO_OK;
}

static size_t idx_u32le(const uint8_t *at)
{
    return (size_t)at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

static co_status idx_gunzip(uint8_t *out, size_t size, const uint8_t *bytes, size_t packed,
                            const char *name)
{
    struct libdeflate_decompressor *gzip = libdeflate_alloc_decompressor();
    enum libdeflate_result result;
    size_t used = 0;

    if (!gzip)
        return co_fail(CO_E_NOMEM, "out of memory");
    result = libdeflate_gzip_decompress_ex(gzip, bytes, packed, out, size, &used, NULL);
    libdeflate_free_decompressor(gzip);
    if (result != LIBDEFLATE_SUCCESS)
        return co_fail(CO_E_DATA, "%s: gzip data that is damaged or cut short; fetch it again",
                       name);
    if (used != packed)
        return co_fail(CO_E_DATA, "%s: too long: %zu bytes follow the gzip data; fetch it again",
                       name, packed - used);
    return CO_OK;
}

/* The size that a gzip file ends with is only a claim. It is held against what so many packed
   bytes can unpack to before memory is taken, and must be true to the byte. */
static co_status idx_unpack(co_idx *out, size_t *size, const uint8_t *bytes, size_t packed,
                            const char *name)
{
    size_t claim;

    if (packed < IDX_GZIP_MIN_SIZE)
        return co_fail(CO_E_DATA, "%s: gzip data that is cut short; fetch it again", name);
    claim = idx_u32le(bytes + packed - 4);
    if (claim / IDX_GZIP_MAX_RATIO > packed)
        return co_fail(CO_E_DATA, "%s: gzip data that is damaged or cut short; fetch it again",
                       name);
    if (claim > CO_IDX_MAX_UNPACKED)
        return co_fail(CO_E_DATA, "%s: unpacks to more than %zu bytes; unpack it with gunzip", name,
                       CO_IDX_MAX_UNPACKED);
    out->unpacked = co_calloc(claim, 1);
    if (!out->unpacked)
        return CO_E_NOMEM;
    *size = claim;
    return idx_gunzip(out->unpacked, claim, bytes, packed, name);
}

static co_status idx_parse(co_idx *out, const uint8_t *bytes, size_t size, const char *name)
{
    if (size >= 2 && bytes[0] == 0x1f && bytes[1] == 0x8b) {
        CO_TRY(idx_unpack(out, &size, bytes, size, name));
        bytes = out->unpacked;
    }
    return idx_read_array(out, bytes, size, name);
}

co_status co_idx_parse(co_idx *out, const uint8_t *bytes, size_t size, int ndim, const char *name)
{
    co_status st;

    *out = (co_idx){.ndim = ndim};
    st = idx_parse(out, bytes, size, name);
    if (st != CO_OK)
        co_idx_close(out);
    return st;
}

static co_status idx_map(co_idx *out, int fd, const char *path)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return co_fail(CO_E_DATA, "%s: %s", path, strerror(errno));
    if (S_ISDIR(info.st_mode))
        return co_fail(CO_E_DATA, "%s: is a folder, expected an IDX file", path);
    if (!S_ISREG(info.st_mode))
        return co_fail(CO_E_DATA, "%s: is not a regular file", path);
    if (info.st_size == 0)
        return co_fail(CO_E_DATA, "%s: is empty; fetch it again", path);
    out->map_size = (size_t)info.st_size;
    out->map = mmap(NULL, out->map_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    if (out->map == MAP_FAILED) {
        out->map = NULL;
        return co_fail(CO_E_IO, "%s: cannot map the file: %s", path, strerror(errno));
    }
    return CO_OK;
}

static void idx_unmap(co_idx *idx)
{
    if (idx->map)
        munmap(idx->map, idx->map_size);
    idx->map = NULL;
}

co_status co_idx_open(co_idx *out, const char *path, int ndim)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    co_status st;

    *out = (co_idx){.ndim = ndim};
    if (fd < 0)
        return co_fail(CO_E_DATA, "%s: %s", path, strerror(errno));
    st = idx_map(out, fd, path);
    close(fd);
    if (out->map)
        st = idx_parse(out, out->map, out->map_size, path);
    if (st != CO_OK)
        co_idx_close(out);
    else if (out->unpacked)
        idx_unmap(out);
    return st;
}

void co_idx_close(co_idx *idx)
{
    idx_unmap(idx);
    co_free(idx->unpacked);
    *idx = (co_idx){0};
}
