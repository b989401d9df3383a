/*
 * write.c - write named tensors to a safetensors file, and hash them.
 *
 * The file appears complete or not at all. Elements of 8 bytes come first, then those of 4, then
 * single bytes, so that every tensor is aligned to its elements in a mapped file; within each by
 * name.
 */
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "checkpoint/format.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/sha256.h"

static int write_compare(const void *left, const void *right)
{
    const co_named_tensor *a = *(const co_named_tensor *const *)left;
    const co_named_tensor *b = *(const co_named_tensor *const *)right;
    size_t a_size = co_dtype_size(a->dtype), b_size = co_dtype_size(b->dtype);

    return a_size != b_size ? (a_size < b_size) - (a_size > b_size) : strcmp(a->name, b->name);
}

/* Whether `bytes` matches type and shape. */
static bool write_consistent(const co_named_tensor *tensor)
{
    size_t bytes = co_dtype_size(tensor->dtype);

    if (bytes == 0 || tensor->shape.ndim < 0 || tensor->shape.ndim > CO_MAX_DIMS)
        return false;
    for (int i = 0; i < tensor->shape.ndim; i++)
        if (tensor->shape.dim[i] < 0 || co_mul_size(&bytes, bytes, (size_t)tensor->shape.dim[i]))
            return false;
    return bytes == tensor->bytes;
}

/* Add an entry to the header; *offset moves past the tensor. */
static co_status write_entry(json_t *header, size_t *offset, const co_named_tensor *tensor,
                             const char *path)
{
    const json_int_t begin = (json_int_t)*offset;
    json_t *shape, *entry;
    int bad = 0;

    if (!format_name_is_printable(tensor->name))
        return co_fail(CO_E_USAGE, "%s: the name of a tensor holds a control character", path);
    if (!tensor->name[0])
        return co_fail(CO_E_USAGE, "%s: a tensor has no name", path);
    if (!write_consistent(tensor))
        return co_fail(CO_E_USAGE, "%s: tensor '%s': %zu bytes do not fit its type and shape", path,
                       tensor->name, tensor->bytes);
    if (strcmp(tensor->name, FORMAT_METADATA) == 0 || json_object_get(header, tensor->name))
        return co_fail(CO_E_USAGE, "%s: a second tensor cannot have the name '%s'", path,
                       tensor->name);
    shape = json_array();
    for (int i = 0; i < tensor->shape.ndim; i++)
        bad |= json_array_append_new(shape, json_integer(tensor->shape.dim[i]));
    entry = json_pack("{s:s, s:o, s:[I, I]}", "dtype", format_dtype_name(tensor->dtype), "shape",
                      shape, "data_offsets", begin, begin + (json_int_t)tensor->bytes);
    if (json_object_set_new(header, tensor->name, entry) != 0 || bad)
        return co_fail(CO_E_USAGE, "%s: tensor '%s': out of memory, or its name is not UTF-8", path,
                       tensor->name);
    *offset += tensor->bytes;
    return CO_OK;
}

static co_status write_metadata(json_t *header, const char *const *metadata, const char *path)
{
    json_t *map = json_object();
    int bad = 0;

    for (const char *const *at = metadata; at[0]; at += 2)
        bad |= json_object_set_new(map, at[0], json_string(at[1]));
    if (json_object_set_new(header, FORMAT_METADATA, map) != 0 || bad)
        return co_fail(CO_E_USAGE, "%s: metadata: out of memory, or it is not UTF-8", path);
    return CO_OK;
}

static co_status write_header(json_t *header, const co_named_tensor *const *order, size_t n,
                              const char *const *metadata, const char *path)
{
    size_t offset = 0;

    if (!header)
        return co_fail(CO_E_NOMEM, "out of memory while writing %s", path);
    if (metadata && metadata[0])
        CO_TRY(write_metadata(header, metadata, path));
    for (size_t i = 0; i < n; i++)
        CO_TRY(write_entry(header, &offset, order[i], path));
    return CO_OK;
}

/* Stops at the first failed write, which the stream's error flag records. */
static void write_stream(FILE *out, const char *text, const co_named_tensor *const *order, size_t n)
{
    const size_t length = strlen(text), padded = (length + 7) / 8 * 8;
    uint8_t size[8];

    for (int i = 0; i < 8; i++)
        size[i] = (uint8_t)((uint64_t)padded >> (8 * i));
    if (fwrite(size, 1, sizeof(size), out) != sizeof(size) ||
        fprintf(out, "%-*s", (int)padded, text) != (int)padded)
        return;
    for (size_t i = 0; i < n; i++)
        if (order[i]->bytes && fwrite(order[i]->data, order[i]->bytes, 1, out) != 1)
            return;
}

static co_status write_file(const char *path, const json_t *header,
                            const co_named_tensor *const *order, size_t n)
{
    char *text = json_dumps(header, JSON_COMPACT);
    co_atomic_file *file = NULL;
    co_status st;

    if (!text)
        return co_fail(CO_E_NOMEM, "out of memory while writing %s", path);
    if (strlen(text) > FORMAT_MAX_HEADER - 8)
        st = co_fail(CO_E_USAGE, "%s: too many tensors for one file", path);
    else
        st = co_atomic_open(&file, path);
    if (st == CO_OK) {
        write_stream(co_atomic_stream(file), text, order, n);
        st = co_atomic_commit(file);
    }
    free(text);
    return st;
}

co_status co_safetensors_write(const char *path, const co_named_tensor *tensors, size_t n,
                               const char *const *metadata)
{
    const co_named_tensor **order;
    json_t *header = NULL;
    co_status st;

    for (size_t i = 0; i < n; i++)
        if (!tensors[i].name || (tensors[i].bytes && !tensors[i].data))
            return co_fail(CO_E_USAGE, "%s: tensor %zu has no %s", path, i,
                           tensors[i].name ? "data" : "name");
    order = co_calloc(n, sizeof(*order));
    if (!order)
        return CO_E_NOMEM;
    for (size_t i = 0; i < n; i++)
        order[i] = &tensors[i];
    qsort(order, n, sizeof(*order), write_compare);
    header = json_object();
    st = write_header(header, order, n, metadata, path);
    if (st == CO_OK)
        st = write_file(path, header, order, n);
    json_decref(header);
    co_free(order);
    return st;
}

/* The tensor after `last` in name order, of equal names in array order; NULL after the end. A
   search instead of a sort, so that hashing needs no memory. */
static const co_named_tensor *write_next(const co_named_tensor *last,
                                         const co_named_tensor *tensors, size_t n)
{
    const co_named_tensor *next = NULL;

    for (const co_named_tensor *t = tensors; t < tensors + n; t++) {
        int order = last ? strcmp(t->name, last->name) : 1;

        if ((order > 0 || (order == 0 && t > last)) && (!next || strcmp(t->name, next->name) < 0))
            next = t;
    }
    return next;
}

void co_safetensors_sha256(char out[65], const co_named_tensor *tensors, size_t n)
{
    const co_named_tensor *at = NULL;
    co_sha256 hash;

    co_sha256_begin(&hash);
    while ((at = write_next(at, tensors, n)) != NULL)
        co_sha256_add(&hash, at->data, at->bytes);
    co_sha256_end(out, &hash);
}
