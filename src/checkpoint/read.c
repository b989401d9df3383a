/*
 * read.c - reader for safetensors files, mapped or in memory. Untrusted input.
 *
 * Every name, shape and offset is checked before a tensor is returned, and together the tensors
 * must cover the bytes after the header exactly once. 16-bit floats become F32 here
 * (half_to_fp32.c), so that no other code has to convert them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <jansson.h>

#include "checkpoint/folder.h"
#include "checkpoint/format.h"
#include "core/arena.h"
#include "core/fs.h"
#include "core/mem.h"

typedef struct read_entry {
    co_named_tensor tensor; /* first, so that an entry can be sorted and searched as a tensor */
    const char *stored;     /* type in the file */
} read_entry;

struct co_safetensors {
    co_arena *arena;   /* owned: everything below except the map */
    const char *name;  /* of the file, for messages */
    read_entry *entry; /* (n), in name order once the file is open */
    size_t n;
    const char **metadata; /* (2 * n_metadata) key, value, ... */
    size_t n_metadata;
    void *map; /* owned; NULL if the bytes are the caller's */
    size_t map_size;
};

/* Read the type, and the bytes of an element in the file. */
static co_status read_dtype(read_entry *out, size_t *size, const json_t *info)
{
    const char *name = json_string_value(json_object_get(info, "dtype"));

    if (!name)
        return co_fail(CO_E_DATA, "'dtype' is not a text");
    out->stored = format_half_name(name);
    out->tensor.dtype = CO_F32;
    *size = FORMAT_HALF_SIZE;
    if (out->stored)
        return CO_OK;
    name = strcmp(name, "BOOL") == 0 ? format_dtype_name(CO_U8) : name; /* a byte, 0 or 1 */
    for (int i = 0; i < CO_DTYPE_COUNT; i++)
        if (strcmp(name, format_dtype_name((co_dtype)i)) == 0) {
            out->tensor.dtype = (co_dtype)i;
            out->stored = format_dtype_name((co_dtype)i);
            *size = co_dtype_size((co_dtype)i);
            return CO_OK;
        }
    return co_fail(CO_E_DATA,
                   "dtype %.20s is not supported, only F32, F64, F16, BF16, I32, I64, U8, BOOL",
                   name);
}

static co_status read_size(size_t *out, const json_t *value, const char *what)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return co_fail(CO_E_DATA, "'%s' holds something else than whole numbers from 0", what);
    *out = (size_t)json_integer_value(value);
    return CO_OK;
}

/* Read the shape, and compute the bytes that it needs with elements of `element` bytes. */
static co_status read_shape(co_named_tensor *out, size_t element, const json_t *info)
{
    const json_t *list = json_object_get(info, "shape");
    size_t n = json_array_size(list), size = 0;

    if (!json_is_array(list) || n > CO_MAX_DIMS)
        return co_fail(CO_E_DATA, "'shape' is not a list of at most %d sizes", CO_MAX_DIMS);
    out->bytes = element;
    out->shape.ndim = (int)n;
    for (size_t i = 0; i < n; i++) {
        CO_TRY(read_size(&size, json_array_get(list, i), "shape"));
        if (co_mul_size(&out->bytes, out->bytes, size) != 0)
            return co_fail(CO_E_DATA, "the shape is too large for any machine");
        out->shape.dim[i] = (int64_t)size;
    }
    return CO_OK;
}

static co_status read_place(co_named_tensor *out, const json_t *info, const co_reader *data)
{
    const json_t *list = json_object_get(info, "data_offsets");
    size_t begin = 0, end = 0;

    if (json_array_size(list) != 2)
        return co_fail(CO_E_DATA, "'data_offsets' is not a list of two numbers");
    CO_TRY(read_size(&begin, json_array_get(list, 0), "data_offsets"));
    CO_TRY(read_size(&end, json_array_get(list, 1), "data_offsets"));
    if (begin > end || end > data->left)
        return co_fail(CO_E_DATA, "is at bytes %zu to %zu of %zu; the file is cut short or damaged",
                       begin, end, data->left);
    if (end - begin != out->bytes)
        return co_fail(CO_E_DATA, "has %zu bytes, but its type and shape need %zu", end - begin,
                       out->bytes);
    out->data = data->at + begin;
    return CO_OK;
}

static co_status read_name(const char **out, co_safetensors *file, const char *name)
{
    if (!format_name_is_printable(name))
        return co_fail(CO_E_DATA, "%s: a name in the header holds a control character", file->name);
    *out = co_arena_strdup(file->arena, name);
    return *out ? CO_OK : CO_E_NOMEM;
}

static co_status read_tensor(read_entry *out, co_safetensors *file, const char *name,
                             const json_t *info, const co_reader *data)
{
    size_t element = 0;
    co_status st;

    CO_TRY(read_name(&out->tensor.name, file, name));
    st = json_is_object(info) ? read_dtype(out, &element, info)
                              : co_fail(CO_E_DATA, "its entry is not an object");
    if (st == CO_OK)
        st = read_shape(&out->tensor, element, info);
    if (st == CO_OK)
        st = read_place(&out->tensor, info, data);
    if (st != CO_OK)
        return co_fail(st, "%s: tensor '%.200s': %s", file->name, name, co_error_message());
    return CO_OK;
}

static co_status read_metadata(co_safetensors *file, json_t *map)
{
    const char *key;
    json_t *value;

    if (!json_is_object(map))
        return co_fail(CO_E_DATA, "%s: '" FORMAT_METADATA "' is not an object", file->name);
    file->metadata = co_arena_alloc(file->arena, json_object_size(map), 2 * sizeof(char *));
    if (!file->metadata)
        return CO_E_NOMEM;
    json_object_foreach(map, key, value)
    {
        const char **at = file->metadata + 2 * file->n_metadata;

        if (!json_is_string(value))
            return co_fail(CO_E_DATA, "%s: '" FORMAT_METADATA "': '%.200s' is not a text",
                           file->name, key);
        CO_TRY(read_name(&at[0], file, key));
        at[1] = co_arena_strdup(file->arena, json_string_value(value));
        if (!at[1])
            return CO_E_NOMEM;
        file->n_metadata++;
    }
    return CO_OK;
}

static co_status read_tensors(co_safetensors *file, json_t *header, const co_reader *data)
{
    const char *key;
    json_t *value;

    file->entry = co_arena_alloc(file->arena, json_object_size(header), sizeof(*file->entry));
    if (!file->entry)
        return CO_E_NOMEM;
    json_object_foreach(header, key, value)
    {
        if (strcmp(key, FORMAT_METADATA) == 0)
            CO_TRY(read_metadata(file, value));
        else
            CO_TRY(read_tensor(&file->entry[file->n++], file, key, value, data));
    }
    return CO_OK;
}

static int read_by_place(const void *left, const void *right)
{
    const co_named_tensor *a = left, *b = right;
    const char *at = a->data, *bt = b->data;

    /* At the same offset the empty one comes first. */
    return at != bt ? (at > bt) - (at < bt) : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static int read_by_name(const void *left, const void *right)
{
    return strcmp(((const co_named_tensor *)left)->name, ((const co_named_tensor *)right)->name);
}

/* The tensors must be adjacent, from the end of the header to the end of the file. */
static co_status read_check_cover(co_safetensors *file, const co_reader *data)
{
    const uint8_t *at = data->at;

    qsort(file->entry, file->n, sizeof(*file->entry), read_by_place);
    for (size_t i = 0; i < file->n; i++) {
        const co_named_tensor *tensor = &file->entry[i].tensor;

        if ((const uint8_t *)tensor->data != at)
            return co_fail(CO_E_DATA, "%s: tensor '%.200s' %s", file->name, tensor->name,
                           (const uint8_t *)tensor->data < at
                               ? "overlaps another one"
                               : "has bytes in front of it that belong to none");
        at += tensor->bytes;
    }
    if (at != data->at + data->left)
        return co_fail(CO_E_DATA, "%s: %zu bytes at the end belong to no tensor", file->name,
                       (size_t)(data->at + data->left - at));
    return CO_OK;
}

/* Called once the tensors are known to cover the file exactly: allocates at most twice its size. */
static co_status read_convert_half(co_safetensors *file)
{
    for (size_t i = 0; i < file->n; i++) {
        co_named_tensor *tensor = &file->entry[i].tensor;
        const char *half = format_half_name(file->entry[i].stored);
        const size_t count = tensor->bytes / FORMAT_HALF_SIZE;
        float *wide;

        if (!half)
            continue;
        wide = co_arena_alloc(file->arena, count ? count : 1, sizeof(*wide));
        if (!wide)
            return CO_E_NOMEM;
        format_half_to_fp32(wide, tensor->data, count, half);
        tensor->data = wide;
        tensor->bytes = count * sizeof(*wide);
    }
    return CO_OK;
}

/* Whether a length that is too large is the beginning of a file of torch.save: a zip archive or,
   before PyTorch 1.6, a pickle. */
static bool read_is_torch(uint64_t head)
{
    return (head & 0xffffffff) == 0x04034b50 || ((head & 0xff) == 0x80 && (head >> 8 & 0xff) <= 5);
}

/* Parse the header; `r` then has the tensors' bytes. */
static co_status read_header(json_t **out, co_reader *r, const char *name)
{
    const uint8_t *text;
    json_error_t error;
    uint64_t length;

    if (co_reader_u64le(&length, r) != 0)
        return co_fail(CO_E_DATA, "%s: is shorter than any safetensors file", name);
    if (length > FORMAT_MAX_HEADER && read_is_torch(length))
        return co_fail(CO_E_DATA,
                       "%s: is a file of torch.save; convert it in Python: "
                       "safetensors.torch.save_file(state_dict, FILE)",
                       name);
    if (length > FORMAT_MAX_HEADER)
        return co_fail(
            CO_E_DATA,
            "%s: its header would have %llu bytes (limit %zu); is it a safetensors file?", name,
            (unsigned long long)length, FORMAT_MAX_HEADER);
    if (co_reader_bytes(&text, r, (size_t)length) != 0)
        return co_fail(CO_E_DATA, "%s: the header has %llu bytes but only %zu are there", name,
                       (unsigned long long)length, r->left);
    *out = json_loadb((const char *)text, (size_t)length, JSON_REJECT_DUPLICATES, &error);
    if (!*out && json_error_code(&error) == json_error_out_of_memory)
        return co_fail(CO_E_NOMEM, "out of memory while reading %s", name);
    if (!*out)
        return co_fail(CO_E_DATA, "%s: the header is not valid JSON at byte %d: %s", name,
                       error.position, error.text);
    if (!json_is_object(*out) || text[0] != '{')
        return co_fail(CO_E_DATA, "%s: the header is not a JSON object", name);
    return CO_OK;
}

static co_status read_parse(co_safetensors *file, const uint8_t *bytes, size_t size,
                            const char *name)
{
    co_reader r = {bytes, size};
    json_t *header = NULL;
    co_status st;

    file->arena = co_arena_create();
    file->name = file->arena ? co_arena_strdup(file->arena, name) : NULL;
    if (!file->name)
        return CO_E_NOMEM;
    st = read_header(&header, &r, file->name);
    if (st == CO_OK)
        st = read_tensors(file, header, &r);
    json_decref(header);
    CO_TRY(st);
    CO_TRY(read_check_cover(file, &r));
    CO_TRY(read_convert_half(file));
    qsort(file->entry, file->n, sizeof(*file->entry), read_by_name);
    return CO_OK;
}

co_status co_safetensors_parse(co_safetensors **out, const uint8_t *bytes, size_t size,
                               const char *name)
{
    co_safetensors *file = co_calloc(1, sizeof(*file));
    co_status st;

    if (!file)
        return CO_E_NOMEM;
    st = read_parse(file, bytes, size, name);
    if (st != CO_OK) {
        co_safetensors_close(file);
        return st;
    }
    *out = file;
    return CO_OK;
}

static co_status read_map(void **out, size_t size, int fd, const char *path)
{
    if (size == 0)
        return co_fail(CO_E_DATA, "%s: is empty", path);
    *out = co_map(size, PROT_READ, MAP_PRIVATE, fd);
    if (!*out)
        return co_fail(CO_E_DATA, "%s: cannot map: %s", path, strerror(errno));
    return CO_OK;
}

static co_status read_open(co_safetensors **out, const char *path, bool own)
{
    const co_open_rule rule = {
        .status = CO_E_DATA, .own = own, .max = SIZE_MAX, .expected = "a safetensors file"};
    void *map = NULL;
    uint64_t size;
    co_status st;
    int fd;

    CO_TRY(co_open_read(&fd, &size, path, &rule));
    st = read_map(&map, size, fd, path);
    close(fd);
    CO_TRY(st);
    st = co_safetensors_parse(out, map, size, path);
    if (st != CO_OK) {
        munmap(map, size);
        return st;
    }
    (*out)->map = map;
    (*out)->map_size = size;
    return CO_OK;
}

co_status co_safetensors_open(co_safetensors **out, const char *path)
{
    return read_open(out, path, false);
}

co_status co_safetensors_open_own(co_safetensors **out, const char *path)
{
    return read_open(out, path, true);
}

void co_safetensors_close(co_safetensors *file)
{
    if (!file)
        return;
    if (file->map)
        munmap(file->map, file->map_size);
    co_arena_destroy(file->arena);
    co_free(file);
}

size_t co_safetensors_count(const co_safetensors *file)
{
    return file->n;
}

const co_named_tensor *co_safetensors_tensor(const co_safetensors *file, size_t i)
{
    return i < file->n ? &file->entry[i].tensor : NULL;
}

const char *co_safetensors_stored(const co_safetensors *file, size_t i)
{
    return i < file->n ? file->entry[i].stored : NULL;
}

const co_named_tensor *co_safetensors_find(const co_safetensors *file, const char *name)
{
    const co_named_tensor key = {.name = name};

    return bsearch(&key, file->entry, file->n, sizeof(*file->entry), read_by_name);
}

const char *co_safetensors_metadata(const co_safetensors *file, const char *key)
{
    for (size_t i = 0; i < file->n_metadata; i++)
        if (strcmp(file->metadata[2 * i], key) == 0)
            return file->metadata[2 * i + 1];
    return NULL;
}

bool co_safetensors_metadata_at(const co_safetensors *file, size_t i, const char **key,
                                const char **value)
{
    if (i >= file->n_metadata)
        return false;
    *key = file->metadata[2 * i];
    *value = file->metadata[2 * i + 1];
    return true;
}
