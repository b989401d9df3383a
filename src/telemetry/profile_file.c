/*
 * profile_file.c - profile.json: the rows of every rank in one object.
 */
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "telemetry/profile_json.h"

struct co_profile_file {
    json_t *object, *ranks; /* owned; `ranks` by `object` */
};

co_status co_profile_file_create(co_profile_file **out, const char *model, uint64_t batch,
                                 int ranks)
{
    co_profile_file *file = co_calloc(1, sizeof(*file));

    if (!file)
        return CO_E_NOMEM;
    file->object = json_object();
    file->ranks = json_array();
    if (json_put_text(file->object, "model", model) | json_put_count(file->object, "batch", batch) |
        json_put_count(file->object, "ranks", (uint64_t)ranks) |
        json_object_set_new(file->object, "per_rank", file->ranks)) {
        co_profile_file_destroy(file);
        return co_fail(CO_E_NOMEM, "out of memory");
    }
    *out = file;
    return CO_OK;
}

co_status co_profile_file_add(co_profile_file *file, const co_profile *profile)
{
    const double kernels = co_profile_kernel_seconds(profile);
    json_t *object = json_object(), *rows = json_array();
    int bad = json_put_count(object, "rank", (uint64_t)profile->rank) |
              json_put_count(object, "first_step", profile->first_step) |
              json_put_count(object, "steps", profile->steps) |
              json_put_real(object, "step_us", profile->step_seconds * 1e6) |
              json_put_real(object, "kernels_us", kernels * 1e6) |
              json_put_real(object, "outside_us", (profile->step_seconds - kernels) * 1e6) |
              json_object_set_new(object, "roof", co_profile_roof_json(&profile->roof));

    /* Plans for other batch sizes have rows without calls. */
    for (size_t i = 0; i < profile->n_row; i++)
        if (profile->row[i].calls > 0)
            bad |= json_array_append_new(rows, co_profile_row_json(profile, &profile->row[i]));
    bad |= json_object_set_new(object, "rows", rows) | json_array_append_new(file->ranks, object);
    return bad ? co_fail(CO_E_NOMEM, "out of memory") : CO_OK;
}

co_status co_profile_file_write(const co_profile_file *file, const char *dir)
{
    const size_t size = strlen(dir) + sizeof("/profile.json");
    char *path = co_calloc(size, 1);
    co_atomic_file *out = NULL;
    co_status st;

    if (!path)
        return CO_E_NOMEM;
    snprintf(path, size, "%s/profile.json", dir);
    st = co_atomic_open(&out, path);
    co_free(path);
    if (st != CO_OK)
        return st;
    /* A failed write sets the stream's error flag, which the commit checks. */
    (void)json_dumpf(file->object, co_atomic_stream(out), JSON_INDENT(1) | JSON_STYLE);
    fputc('\n', co_atomic_stream(out));
    return co_atomic_commit(out);
}

void co_profile_file_destroy(co_profile_file *file)
{
    if (!file)
        return;
    json_decref(file->object);
    co_free(file);
}
