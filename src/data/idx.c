/*
 * idx.c - reader for IDX files, plain or gzip. Untrusted input.
 *
 * Header and file size must agree exactly. What images and labels are is up to idx_images.c.
 */
#include "data/idx.h"

#include <stdio.h>

#include "core/fs.h"

#define IDX_UNSIGNED_BYTE 0x08

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

static co_status idx_take(co_idx *idx, co_status st, const char *name)
{
    if (st == CO_OK)
        st = idx_read_array(idx, idx->file.data, idx->file.size, name);
    if (st != CO_OK)
        co_idx_close(idx);
    return st;
}

co_status co_idx_parse(co_idx *out, const uint8_t *bytes, size_t size, int ndim, const char *name)
{
    *out = (co_idx){.ndim = ndim};
    return idx_take(out, co_file_borrow(&out->file, bytes, size, name), name);
}

co_status co_idx_open(co_idx *out, const char *path, int ndim)
{
    *out = (co_idx){.ndim = ndim};
    return idx_take(out, co_file_open(&out->file, path, "an IDX file"), path);
}

void co_idx_close(co_idx *idx)
{
    co_file_close(&idx->file);
    *idx = (co_idx){0};
}
