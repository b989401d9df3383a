/*
 * npy.c - reader for NPY files (numpy.lib.format). Untrusted input.
 *
 * Magic, version, length of the header, and the header: a Python dict with `descr`, `fortran_order`
 * and `shape`. Only as much of Python's syntax as this needs is parsed. Header and file size must
 * agree exactly.
 */
#include "data/npy.h"

#include <string.h>

#include "core/fs.h"

#define NPY_MAGIC      "\x93NUMPY"
#define NPY_MAX_HEADER ((size_t)1 << 16) /* NumPy itself refuses 10,000 bytes and more */
#define NPY_MAX_DESCR  16

typedef struct npy_type {
    const char *descr;
    co_dtype dtype;
} npy_type;

static const npy_type npy_types[] = {
    {"<f4", CO_F32}, {"<f8", CO_F64}, {"<i4", CO_I32},
    {"<i8", CO_I64}, {"|u1", CO_U8},  {"|b1", CO_U8},
};

/* The parsed dict. */
typedef struct npy_header {
    char descr[NPY_MAX_DESCR];
    bool fortran, has_descr, has_order, has_shape;
    co_shape shape;
} npy_header;

/* ---- the dict; each function returns 0, or -1 on a syntax error ---- */

static void npy_skip_space(co_reader *r)
{
    while (r->left && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t')) {
        r->at++;
        r->left--;
    }
}

/* This character, after optional white space. */
static int npy_take(co_reader *r, char sign)
{
    npy_skip_space(r);
    if (!r->left || *r->at != (uint8_t)sign)
        return -1;
    r->at++;
    r->left--;
    return 0;
}

static int npy_take_word(co_reader *r, const char *word)
{
    const size_t n = strlen(word);

    npy_skip_space(r);
    if (r->left < n || memcmp(r->at, word, n) != 0)
        return -1;
    r->at += n;
    r->left -= n;
    return 0;
}

/* A string in single or double quotes, without escapes. */
static int npy_take_text(char out[NPY_MAX_DESCR], co_reader *r)
{
    const char quote = npy_take(r, '\'') == 0 ? '\'' : '"';
    size_t n = 0;

    if (quote == '"' && npy_take(r, '"') != 0)
        return -1;
    while (r->left && *r->at != (uint8_t)quote && *r->at >= ' ' && *r->at < 0x7f &&
           *r->at != '\\' && n + 1 < NPY_MAX_DESCR) {
        out[n++] = (char)*r->at++;
        r->left--;
    }
    out[n] = '\0';
    return npy_take(r, quote);
}

static int npy_take_number(int64_t *out, co_reader *r)
{
    npy_skip_space(r);
    if (!r->left || *r->at < '0' || *r->at > '9')
        return -1;
    for (*out = 0; r->left && *r->at >= '0' && *r->at <= '9'; r->at++, r->left--)
        if (__builtin_mul_overflow(*out, 10, out) ||
            __builtin_add_overflow(*out, *r->at - '0', out))
            return -1;
    return 0;
}

/* (), (3,), (3, 4) or (3, 4,) */
static int npy_take_shape(co_shape *out, co_reader *r)
{
    out->ndim = 0;
    if (npy_take(r, '(') != 0)
        return -1;
    while (npy_take(r, ')') != 0) {
        if (out->ndim == CO_MAX_DIMS || npy_take_number(&out->dim[out->ndim++], r) != 0)
            return -1;
        if (npy_take(r, ',') != 0)
            return npy_take(r, ')');
    }
    return 0;
}

static int npy_take_entry(npy_header *h, co_reader *r)
{
    char key[NPY_MAX_DESCR];

    if (npy_take_text(key, r) != 0 || npy_take(r, ':') != 0)
        return -1;
    if (strcmp(key, "descr") == 0) {
        h->has_descr = true;
        return npy_take_text(h->descr, r);
    }
    if (strcmp(key, "fortran_order") == 0) {
        h->has_order = true;
        h->fortran = npy_take_word(r, "True") == 0;
        return h->fortran ? 0 : npy_take_word(r, "False");
    }
    h->has_shape = true;
    return strcmp(key, "shape") == 0 ? npy_take_shape(&h->shape, r) : -1;
}

static int npy_take_dict(npy_header *h, co_reader *r)
{
    if (npy_take(r, '{') != 0)
        return -1;
    while (npy_take(r, '}') != 0) {
        if (npy_take_entry(h, r) != 0)
            return -1;
        if (npy_take(r, ',') != 0 && (!r->left || *r->at != '}'))
            return -1;
    }
    npy_skip_space(r);
    return r->left == 0 && h->has_descr && h->has_order && h->has_shape ? 0 : -1;
}

/* ---- the file ---- */

/* The text of the header; `r` moves past it. */
static co_status npy_read_head(co_reader *out, co_reader *r, const char *name)
{
    const uint8_t *magic, *length;
    size_t n;

    if (co_reader_bytes(&magic, r, 8) != 0 || memcmp(magic, NPY_MAGIC, 6) != 0)
        return co_fail(CO_E_DATA, "%s: not an NPY file, as numpy.save writes one", name);
    if (magic[6] < 1 || magic[6] > 3)
        return co_fail(CO_E_DATA, "%s: version %u of NPY is not supported, only 1 to 3", name,
                       magic[6]);
    if (co_reader_bytes(&length, r, magic[6] == 1 ? 2 : 4) != 0)
        return co_fail(CO_E_DATA, "%s: cut short within its NPY header", name);
    n = length[0] | (size_t)length[1] << 8;
    if (magic[6] > 1)
        n |= (size_t)length[2] << 16 | (size_t)length[3] << 24;
    out->left = n;
    if (n > NPY_MAX_HEADER)
        return co_fail(CO_E_DATA, "%s: an NPY header of %zu bytes; one has at most %zu", name, n,
                       NPY_MAX_HEADER);
    if (co_reader_bytes(&out->at, r, n) != 0)
        return co_fail(CO_E_DATA, "%s: cut short within its NPY header", name);
    return CO_OK;
}

static co_status npy_check_header(co_npy *out, const npy_header *h, const char *name)
{
    const size_t n = sizeof(npy_types) / sizeof(npy_types[0]);
    size_t i = 0;

    while (i < n && strcmp(npy_types[i].descr, h->descr) != 0)
        i++;
    if (i == n)
        return co_fail(CO_E_DATA,
                       "%s: elements of type '%s'; read are <f4, <f8, <i4, <i8, |u1 and |b1: save "
                       "array.astype('<f4'), or labels and tokens as '<i4'",
                       name, h->descr);
    if (h->fortran && h->shape.ndim > 1)
        return co_fail(CO_E_DATA, "%s: in Fortran's order; save numpy.ascontiguousarray(array)",
                       name);
    if (h->shape.ndim < 1)
        return co_fail(CO_E_DATA, "%s: one number; an array has a dimension of samples", name);
    out->dtype = npy_types[i].dtype;
    out->shape = h->shape;
    return CO_OK;
}

static co_status npy_read_array(co_npy *out, co_reader *r, const char *name)
{
    size_t bytes = co_dtype_size(out->dtype);
    char shape[96];

    co_shape_format(shape, sizeof(shape), &out->shape);
    for (int i = 0; i < out->shape.ndim; i++) {
        if (out->shape.dim[i] < 1)
            return co_fail(CO_E_DATA, "%s: empty: its shape is %s", name, shape);
        if (co_mul_size(&bytes, bytes, (size_t)out->shape.dim[i]) != 0)
            return co_fail(CO_E_DATA, "%s: its shape %s needs more bytes than any file has", name,
                           shape);
    }
    if (r->left != bytes)
        return co_fail(CO_E_DATA,
                       "%s: %s: its header says %s of %s = %zu bytes, %zu follow; save it again",
                       name, r->left < bytes ? "cut short" : "too long", shape,
                       co_dtype_name(out->dtype), bytes, r->left);
    out->data = r->at;
    return CO_OK;
}

static co_status npy_take_file(co_npy *npy, co_status st, const char *name)
{
    co_reader r = {npy->file.data, npy->file.size}, head = {NULL, 0};
    npy_header header = {.fortran = false};

    if (st == CO_OK)
        st = npy_read_head(&head, &r, name);
    if (st == CO_OK && npy_take_dict(&header, &head) != 0)
        st = co_fail(CO_E_DATA,
                     "%s: its NPY header is not a dict of descr, fortran_order and shape, of at "
                     "most %d dimensions and a plain type",
                     name, CO_MAX_DIMS);
    if (st == CO_OK)
        st = npy_check_header(npy, &header, name);
    if (st == CO_OK)
        st = npy_read_array(npy, &r, name);
    if (st != CO_OK)
        co_npy_close(npy);
    return st;
}

co_status co_npy_parse(co_npy *out, const uint8_t *bytes, size_t size, const char *name)
{
    *out = (co_npy){.dtype = CO_F32};
    return npy_take_file(out, co_file_borrow(&out->file, bytes, size, name), name);
}

co_status co_npy_open(co_npy *out, const char *path)
{
    *out = (co_npy){.dtype = CO_F32};
    return npy_take_file(out, co_file_open(&out->file, path, "an NPY file"), path);
}

void co_npy_close(co_npy *npy)
{
    co_file_close(&npy->file);
    *npy = (co_npy){.dtype = CO_F32};
}
