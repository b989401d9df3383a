/*
 * manifest_read.c - reader for manifest.json. Untrusted input.
 */
#include <math.h>
#include <string.h>

#include <jansson.h>

#include "checkpoint/folder.h"
#include "checkpoint/manifest_internal.h"
#include "core/fs.h"
#include "core/mem.h"

static co_status read_fail(const char *where, const char *key, const char *expected)
{
    return co_fail(CO_E_DATA, "%s: '%s': expected %s; the manifest is damaged", where, key,
                   expected);
}

static co_status read_text(char out[CO_MANIFEST_MAX_TEXT], const json_t *object, const char *key,
                           const char *where)
{
    const char *text = json_string_value(json_object_get(object, key));

    if (!text || strlen(text) >= CO_MANIFEST_MAX_TEXT)
        return read_fail(where, key, "a short text");
    memcpy(out, text, strlen(text) + 1);
    return CO_OK;
}

static co_status read_count(uint64_t *out, const json_t *object, const char *key, const char *where)
{
    const json_t *value = json_object_get(object, key);

    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return read_fail(where, key, "a count");
    *out = (uint64_t)json_integer_value(value);
    return CO_OK;
}

static co_status read_reals(double *out, const json_t *list, const co_number *number,
                            const char *where)
{
    if (!json_is_array(list) || json_array_size(list) > number->n)
        return read_fail(where, number->name, "a short list of numbers");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *value = json_array_get(list, i);

        if (!json_is_number(value) && !json_is_null(value))
            return read_fail(where, number->name, "a list of numbers");
        out[i] = json_is_null(value) ? (double)NAN : json_number_value(value);
    }
    return CO_OK;
}

static co_status read_number(void *self, const json_t *object, const co_number *number,
                             const char *where)
{
    const json_t *value = json_object_get(object, number->name);
    char *field = (char *)self + number->offset;

    if (!value && number->optional)
        return CO_OK;
    if (number->kind == CO_NUMBER_COUNT)
        return read_count((uint64_t *)(void *)field, object, number->name, where);
    if (number->kind == CO_NUMBER_REALS)
        return read_reals((double *)(void *)field, value, number, where);
    if (number->kind == CO_NUMBER_FLAG) {
        if (!json_is_boolean(value))
            return read_fail(where, number->name, "true or false");
        *(bool *)(void *)field = json_is_true(value);
        return CO_OK;
    }
    if (!json_is_number(value) && !json_is_null(value))
        return read_fail(where, number->name, "a number");
    *(double *)(void *)field = json_is_null(value) ? (double)NAN : json_number_value(value);
    return CO_OK;
}

static co_status read_numbers(void *self, const json_t *object, const co_number *numbers,
                              const char *where)
{
    for (; numbers->name; numbers++)
        CO_TRY(read_number(self, object, numbers, where));
    return CO_OK;
}

/* Whether a name can only be a file of this folder. */
static bool read_is_plain(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!(*c >= 'a' && *c <= 'z') && !(*c >= 'A' && *c <= 'Z') && !(*c >= '0' && *c <= '9') &&
            *c != '.' && *c != '-' && *c != '_')
            return false;
    return name[0] && name[0] != '.' && strcmp(name, CO_MANIFEST_NAME) != 0;
}

static bool read_is_sha256(const char *text)
{
    return strlen(text) == 64 && strspn(text, "0123456789abcdef") == 64;
}

static co_status read_file(co_manifest *out, const json_t *entry, const char *where)
{
    co_manifest_file *file = &out->file[out->n_file];
    const char *sha256 = json_string_value(json_object_get(entry, "sha256"));

    CO_TRY(read_text(file->name, entry, "name", where));
    if (!read_is_plain(file->name))
        return co_fail(CO_E_DATA,
                       "%s: the file '%s' is not one of this folder; the manifest is damaged or "
                       "forged",
                       where, file->name);
    if (co_manifest_has_file(out, file->name))
        return co_fail(CO_E_DATA, "%s: names the file '%s' twice; the manifest is damaged", where,
                       file->name);
    CO_TRY(read_count(&file->bytes, entry, "bytes", where));
    if (!sha256 || !read_is_sha256(sha256))
        return read_fail(where, "sha256", "64 hexadecimal digits");
    memcpy(file->sha256, sha256, sizeof(file->sha256));
    out->n_file++;
    return CO_OK;
}

static co_status read_files(co_manifest *out, const json_t *list, const char *where)
{
    if (!json_is_array(list) || json_array_size(list) > CO_MANIFEST_MAX_FILES)
        return read_fail(where, "files", "a short list");
    for (size_t i = 0; i < json_array_size(list); i++)
        CO_TRY(read_file(out, json_array_get(list, i), where));
    return CO_OK;
}

static co_status read_arrays(co_manifest *out, const json_t *list, const char *where)
{
    if (!json_is_array(list) || json_array_size(list) > CO_MANIFEST_MAX_ARRAYS)
        return read_fail(where, "arrays", "a short list");
    for (size_t i = 0; i < json_array_size(list); i++) {
        co_manifest_array *array = &out->array[out->n_array];
        const json_t *entry = json_array_get(list, i);

        CO_TRY(read_text(array->name, entry, "name", where));
        CO_TRY(read_count(&array->copies, entry, "copies", where));
        if (array->copies != 1 && array->copies != out->ranks)
            return read_fail(where, "copies", "1, or the number of ranks");
        out->n_array++;
    }
    return CO_OK;
}

static co_status read_ranks(co_manifest *out, const json_t *list, const char *where,
                            const co_manifest_layout *layout)
{
    const size_t n = json_array_size(list);

    if (!json_is_array(list) || n < 1 || n > CO_MANIFEST_MAX_RANKS || n != out->ranks)
        return read_fail(where, "per_rank", "a list with an entry for each rank");
    out->rank = co_calloc(n, layout->rank_size);
    if (!out->rank)
        return CO_E_NOMEM;
    for (size_t r = 0; r < n; r++)
        CO_TRY(read_numbers((char *)out->rank + r * layout->rank_size, json_array_get(list, r),
                            layout->rank, where));
    return CO_OK;
}

/* Checked first: in another version the other members may mean something else. */
static co_status read_version(const json_t *root, const char *where)
{
    const char *format = json_string_value(json_object_get(root, "format"));
    uint64_t version = 0;

    if (!format || strcmp(format, MANIFEST_FORMAT) != 0)
        return co_fail(CO_E_DATA, "%s: is not the manifest of a checkpoint", where);
    CO_TRY(read_count(&version, root, "version", where));
    if (version > CO_MANIFEST_VERSION)
        return co_fail(CO_E_DATA,
                       "%s: has format version %llu, and this program reads up to %d; resume with "
                       "a newer Cohort",
                       where, (unsigned long long)version, CO_MANIFEST_VERSION);
    return version == 0 ? read_fail(where, "version", "a version number") : CO_OK;
}

static co_status read_root(co_manifest *out, const json_t *root, const char *where,
                           const co_manifest_layout *layout)
{
    const json_t *accuracy = json_object_get(root, "test_accuracy");
    const char *config = json_string_value(json_object_get(root, "config"));

    for (const manifest_text *text = manifest_texts; text->name; text++)
        CO_TRY(read_text((char *)out + text->offset, root, text->name, where));
    CO_TRY(read_numbers(out, root, manifest_numbers, where));
    if (!json_is_number(accuracy) && !json_is_null(accuracy))
        return read_fail(where, "test_accuracy", "a number, or null");
    out->test_accuracy = json_is_null(accuracy) ? (double)NAN : json_number_value(accuracy);
    out->best_value = out->test_accuracy;
    if (json_object_get(root, "best_by")) {
        const json_t *value = json_object_get(root, "best_value");

        CO_TRY(read_text(out->best_by, root, "best_by", where));
        if (!json_is_number(value) && !json_is_null(value))
            return read_fail(where, "best_value", "a number, or null");
        out->best_value = json_is_null(value) ? (double)NAN : json_number_value(value);
    }
    out->point = co_calloc(1, layout->point_size);
    if (!out->point)
        return CO_E_NOMEM;
    CO_TRY(read_numbers(out->point, json_object_get(root, "position"), layout->point, where));
    CO_TRY(read_ranks(out, json_object_get(root, "per_rank"), where, layout));
    CO_TRY(read_arrays(out, json_object_get(root, "arrays"), where));
    CO_TRY(read_files(out, json_object_get(root, "files"), where));
    if (!config)
        return read_fail(where, "config", "the text of a config");
    out->config = co_strdup(config);
    return out->config ? CO_OK : CO_E_NOMEM;
}

static co_status read_seal(json_t *root, const char *where)
{
    const char *seal = json_string_value(json_object_get(root, "seal"));
    char want[65], got[65];

    if (!seal || !read_is_sha256(seal))
        return read_fail(where, "seal", "64 hexadecimal digits");
    memcpy(want, seal, sizeof(want));
    CO_TRY(manifest_seal(got, root, where));
    return strcmp(want, got) == 0
               ? CO_OK
               : co_fail(CO_E_DATA, "%s: its SHA-256 is not the one in it; it is damaged", where);
}

static co_status read_parse(co_manifest *out, const char *text, size_t size, const char *name,
                            const co_manifest_layout *layout, bool sealed)
{
    json_error_t error;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    co_status st;

    memset(out, 0, sizeof(*out));
    if (!root)
        return co_fail(CO_E_DATA, "%s:%d: not JSON: %s; the manifest is damaged", name, error.line,
                       error.text);
    st = json_is_object(root) ? read_version(root, name)
                              : read_fail(name, "manifest", "a JSON object");
    if (st == CO_OK && sealed)
        st = read_seal(root, name);
    if (st == CO_OK)
        st = read_root(out, root, name, layout);
    json_decref(root);
    if (st != CO_OK)
        co_manifest_free(out);
    return st;
}

co_status co_manifest_parse(co_manifest *out, const char *text, size_t size, const char *name,
                            const co_manifest_layout *layout)
{
    return read_parse(out, text, size, name, layout, false);
}

static const co_open_rule read_rule = {
    .status = CO_E_DATA, .own = true, .max = CO_MANIFEST_MAX_BYTES};

bool co_manifest_is_newer(const char *folder)
{
    char path[CO_CHECKPOINT_MAX_PATH];
    uint8_t *text = NULL;
    size_t size = 0;
    json_t *root;
    json_int_t version;

    if (co_fs_join(path, sizeof(path), folder, CO_MANIFEST_NAME) != CO_OK ||
        co_fs_read_as(&text, &size, path, &read_rule) != CO_OK)
        return false;
    root = json_loadb((const char *)text, size, JSON_REJECT_DUPLICATES, NULL);
    version = json_integer_value(json_object_get(root, "version"));
    json_decref(root);
    co_free(text);
    return version > CO_MANIFEST_VERSION;
}

co_status co_manifest_read(co_manifest *out, const char *folder, const co_manifest_layout *layout)
{
    char path[CO_CHECKPOINT_MAX_PATH];
    uint8_t *text = NULL;
    size_t size = 0;
    co_status st;

    memset(out, 0, sizeof(*out));
    CO_TRY(co_fs_join(path, sizeof(path), folder, CO_MANIFEST_NAME));
    CO_TRY(co_fs_read_as(&text, &size, path, &read_rule));
    st = read_parse(out, (const char *)text, size, path, layout, true);
    co_free(text);
    return st;
}
