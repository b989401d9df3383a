/*
 * manifest.c - write manifest.json, and check the files that it lists.
 */
#include "checkpoint/manifest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "checkpoint/folder.h"
#include "checkpoint/manifest_internal.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/sha256.h"

#define MANIFEST_CHUNK ((size_t)64 << 10)

const manifest_text manifest_texts[] = {
    {"cohort", offsetof(co_manifest, cohort)},       {"model", offsetof(co_manifest, model)},
    {"dataset", offsetof(co_manifest, dataset)},     {"strategy", offsetof(co_manifest, strategy)},
    {"precision", offsetof(co_manifest, precision)}, {NULL, 0},
};

const co_number manifest_numbers[] = {
    {"seed", CO_NUMBER_COUNT, offsetof(co_manifest, seed), false, 0},
    {"ranks", CO_NUMBER_COUNT, offsetof(co_manifest, ranks), false, 0},
    {"train_samples", CO_NUMBER_COUNT, offsetof(co_manifest, train_samples), false, 0},
    {"parameter_count", CO_NUMBER_COUNT, offsetof(co_manifest, parameter_count), false, 0},
    {NULL, CO_NUMBER_COUNT, 0, false, 0},
};

void co_manifest_free(co_manifest *manifest)
{
    co_free(manifest->config);
    co_free(manifest->point);
    co_free(manifest->rank);
    memset(manifest, 0, sizeof(*manifest));
}

bool co_manifest_has_file(const co_manifest *manifest, const char *name)
{
    for (int i = 0; i < manifest->n_file; i++)
        if (strcmp(manifest->file[i].name, name) == 0)
            return true;
    return false;
}

static json_t *manifest_real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *manifest_reals(const double *value, size_t n)
{
    json_t *list = json_array();
    int bad = 0;

    while (n > 0 && value[n - 1] == 0)
        n--;
    for (size_t i = 0; i < n; i++)
        bad |= json_array_append_new(list, manifest_real(value[i]));
    if (bad == 0)
        return list;
    json_decref(list);
    return NULL;
}

static json_t *manifest_number(const void *self, const co_number *number)
{
    const char *field = (const char *)self + number->offset;

    if (number->kind == CO_NUMBER_COUNT)
        return json_integer((json_int_t) * (const uint64_t *)(const void *)field);
    if (number->kind == CO_NUMBER_FLAG)
        return json_boolean(*(const bool *)(const void *)field);
    if (number->kind == CO_NUMBER_REALS)
        return manifest_reals((const double *)(const void *)field, number->n);
    return manifest_real(*(const double *)(const void *)field);
}

static int manifest_put_numbers(json_t *object, const void *self, const co_number *numbers)
{
    int bad = 0;

    for (; numbers->name; numbers++)
        bad |= json_object_set_new(object, numbers->name, manifest_number(self, numbers));
    return bad;
}

static int manifest_put_ranks(json_t *root, const co_manifest *m, const co_manifest_layout *layout)
{
    json_t *list = json_array();
    int bad = 0;

    for (uint64_t r = 0; r < m->ranks; r++) {
        json_t *entry = json_object();

        bad |= manifest_put_numbers(entry, (const char *)m->rank + r * layout->rank_size,
                                    layout->rank);
        bad |= json_array_append_new(list, entry);
    }
    return bad | json_object_set_new(root, "per_rank", list);
}

static int manifest_put_lists(json_t *root, const co_manifest *m)
{
    json_t *arrays = json_array(), *files = json_array();
    int bad = 0;

    for (int i = 0; i < m->n_array; i++)
        bad |= json_array_append_new(arrays, json_pack("{s:s, s:I}", "name", m->array[i].name,
                                                       "copies", (json_int_t)m->array[i].copies));
    for (int i = 0; i < m->n_file; i++)
        bad |= json_array_append_new(files, json_pack("{s:s, s:I, s:s}", "name", m->file[i].name,
                                                      "bytes", (json_int_t)m->file[i].bytes,
                                                      "sha256", m->file[i].sha256));
    bad |= json_object_set_new(root, "arrays", arrays);
    return bad | json_object_set_new(root, "files", files);
}

/* NULL if out of memory, or if a text is not UTF-8. */
static json_t *manifest_build(const co_manifest *m, const co_manifest_layout *layout)
{
    json_t *root = json_object(), *point = json_object();
    int bad = json_object_set_new(root, "format", json_string(MANIFEST_FORMAT)) |
              json_object_set_new(root, "version", json_integer(CO_MANIFEST_VERSION));

    for (const manifest_text *text = manifest_texts; text->name; text++)
        bad |= json_object_set_new(root, text->name, json_string((const char *)m + text->offset));
    bad |= manifest_put_numbers(root, m, manifest_numbers);
    bad |= json_object_set_new(root, "test_accuracy", manifest_real(m->test_accuracy));
    if (m->best_by[0])
        bad |= json_object_set_new(root, "best_by", json_string(m->best_by)) |
               json_object_set_new(root, "best_value", manifest_real(m->best_value));
    bad |= manifest_put_numbers(point, m->point, layout->point);
    bad |= json_object_set_new(root, "position", point);
    bad |= manifest_put_ranks(root, m, layout);
    bad |= manifest_put_lists(root, m);
    bad |= json_object_set_new(root, "config", json_string(m->config));
    if (bad == 0)
        return root;
    json_decref(root);
    return NULL;
}

/* 17 digits preserve a double exactly. */
#define MANIFEST_STYLE (JSON_INDENT(1) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(17))

co_status manifest_seal(char out[65], json_t *root, const char *where)
{
    co_sha256 hash;
    char *text;

    (void)json_object_del(root, "seal");
    text = json_dumps(root, MANIFEST_STYLE);
    if (!text)
        return co_fail(CO_E_NOMEM, "%s: out of memory", where);
    co_sha256_begin(&hash);
    co_sha256_add(&hash, text, strlen(text));
    co_sha256_end(out, &hash);
    free(text);
    return CO_OK;
}

static co_status manifest_write_text(const char *text, const char *path)
{
    co_atomic_file *file = NULL;

    if (strlen(text) >= CO_MANIFEST_MAX_BYTES)
        return co_fail(CO_E_UNSUPPORTED, "%s: %zu bytes, and a manifest has fewer than %zu", path,
                       strlen(text), CO_MANIFEST_MAX_BYTES);
    CO_TRY(co_atomic_open(&file, path));
    /* The commit reports a failed write. */
    fputs(text, co_atomic_stream(file));
    fputc('\n', co_atomic_stream(file));
    return co_atomic_commit(file);
}

static co_status manifest_write_sealed(json_t *root, const char *path)
{
    char seal[65], *text = NULL;
    co_status st;

    CO_TRY(manifest_seal(seal, root, path));
    if (json_object_set_new(root, "seal", json_string(seal)) == 0)
        text = json_dumps(root, MANIFEST_STYLE);
    if (!text)
        return co_fail(CO_E_NOMEM, "%s: out of memory", path);
    st = manifest_write_text(text, path);
    free(text);
    return st;
}

co_status co_manifest_write(const co_manifest *manifest, const char *folder,
                            const co_manifest_layout *layout)
{
    char path[CO_CHECKPOINT_MAX_PATH];
    json_t *root;
    co_status st;

    CO_TRY(co_fs_join(path, sizeof(path), folder, CO_MANIFEST_NAME));
    if (manifest->ranks > CO_MANIFEST_MAX_RANKS)
        return co_fail(CO_E_UNSUPPORTED, "%s: checkpoints are of up to %d ranks, not %llu", path,
                       CO_MANIFEST_MAX_RANKS, (unsigned long long)manifest->ranks);
    root = manifest_build(manifest, layout);
    if (!root)
        return co_fail(CO_E_NOMEM, "%s: out of memory, or a name in the config is not UTF-8", path);
    st = manifest_write_sealed(root, path);
    json_decref(root);
    return st;
}

/* Hash as many bytes as the file had when it was opened; what is appended meanwhile is ignored. */
static co_status manifest_hash_bytes(co_manifest_file *out, int fd, const char *path)
{
    uint8_t *chunk = co_calloc(MANIFEST_CHUNK, 1);
    co_status st = chunk ? CO_OK : CO_E_NOMEM;
    uint64_t left = out->bytes;
    co_sha256 hash;

    co_sha256_begin(&hash);
    while (st == CO_OK && left > 0) {
        const ssize_t n = read(fd, chunk, left < MANIFEST_CHUNK ? (size_t)left : MANIFEST_CHUNK);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            st = co_fail(CO_E_DATA, "%s: cannot read it: %s", path,
                         n < 0 ? strerror(errno) : "it became shorter meanwhile");
        } else {
            co_sha256_add(&hash, chunk, (size_t)n);
            left -= (uint64_t)n;
        }
    }
    co_sha256_end(out->sha256, &hash);
    co_free(chunk);
    return st;
}

/* `want`: the size that the file must have, checked before it is read; NULL: any. */
static co_status manifest_hash(co_manifest_file *out, const char *folder, const uint64_t *want)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true};
    char path[CO_CHECKPOINT_MAX_PATH];
    co_status st;
    int fd;

    CO_TRY(co_fs_join(path, sizeof(path), folder, out->name));
    CO_TRY(co_open_read(&fd, &out->bytes, path, &rule));
    if (want && out->bytes != *want)
        st = co_fail(CO_E_DATA, "%s: has %llu bytes, its manifest says %llu; it is damaged", path,
                     (unsigned long long)out->bytes, (unsigned long long)*want);
    else
        st = manifest_hash_bytes(out, fd, path);
    close(fd);
    return st;
}

co_status co_manifest_add_file(co_manifest *manifest, const char *folder, const char *name)
{
    co_manifest_file *file = &manifest->file[manifest->n_file];

    if (manifest->n_file == CO_MANIFEST_MAX_FILES)
        return co_fail(CO_E_FAILED, "%s: too many files for one checkpoint", folder);
    snprintf(file->name, sizeof(file->name), "%s", name);
    CO_TRY(manifest_hash(file, folder, NULL));
    manifest->n_file++;
    return CO_OK;
}

static co_status manifest_check(const co_manifest_file *want, const char *folder)
{
    co_manifest_file got = *want;

    CO_TRY(manifest_hash(&got, folder, &want->bytes));
    if (strcmp(got.sha256, want->sha256) != 0)
        return co_fail(CO_E_DATA,
                       "%s/%s: its SHA-256 is not the one in the manifest; it is damaged", folder,
                       want->name);
    return CO_OK;
}

co_status co_manifest_check_files(const co_manifest *manifest, const char *folder)
{
    for (int i = 0; i < manifest->n_file; i++)
        CO_TRY(manifest_check(&manifest->file[i], folder));
    return CO_OK;
}

co_status co_manifest_check_file(const co_manifest *manifest, const char *folder, const char *name)
{
    for (int i = 0; i < manifest->n_file; i++)
        if (strcmp(manifest->file[i].name, name) == 0)
            return manifest_check(&manifest->file[i], folder);
    return co_fail(CO_E_DATA, "%s: its manifest does not name %s", folder, name);
}
