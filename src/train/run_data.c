/* run_data.c - data.json of a run directory, written when a run starts. */
#include "train/run_data.h"

#include <string.h>

#include <jansson.h>

#include "core/fs.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/text.h"
#include "launch/root.h"

#define RUN_DATA_MAX_BYTES   ((size_t)64 << 20)
#define RUN_DATA_MAX_CLASSES 1000000
#define RUN_DATA_MAX_SIDE    65536

static json_t *run_data_sizes(const co_shape *shape)
{
    json_t *list = json_array();

    for (int i = 0; i < shape->ndim; i++)
        (void)json_array_append_new(list, json_integer(shape->dim[i]));
    return list;
}

/* Names are those of folders, perhaps no UTF-8, and then left out. */
static json_t *run_data_names(const co_dataset *data)
{
    json_t *list = json_array();

    for (int64_t i = 0; i < co_dataset_classes(data); i++) {
        const char *name = co_dataset_class_name(data, (int32_t)i);
        json_t *text = name ? json_string(name) : NULL;

        (void)json_array_append_new(list, text ? text : json_null());
    }
    return list;
}

co_status co_run_data_write(const char *run_dir, const co_dataset *data)
{
    const size_t size = strlen(run_dir) + sizeof("/" CO_RUN_DATA_NAME);
    co_atomic_file *out = NULL;
    char *path, *text;
    json_t *object;
    co_status st;

    if (!co_dataset_has_images(data) || co_dataset_classes(data) > RUN_DATA_MAX_CLASSES)
        return CO_OK;
    object = json_pack("{s:s, s:b, s:o, s:o, s:o}", "dataset", co_dataset_name(data), "encoded",
                       (int)co_dataset_stored(data)->encoded, "stored",
                       run_data_sizes(&co_dataset_stored(data)->shape), "sample",
                       run_data_sizes(co_dataset_shape(data)), "classes", run_data_names(data));
    text = object ? json_dumps(object, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(object);
    path = co_calloc(size, 1);
    if (path)
        snprintf(path, size, "%s/" CO_RUN_DATA_NAME, run_dir);
    st = path && text ? co_atomic_open(&out, path) : co_fail(CO_E_NOMEM, "out of memory");
    if (st == CO_OK) {
        fprintf(co_atomic_stream(out), "%s\n", text);
        st = co_atomic_commit(out);
    }
    free(text);
    co_free(path);
    return st;
}

co_status co_run_data_of(co_run_data *out, const co_dataset *data)
{
    *out = (co_run_data){.encoded = co_dataset_stored(data)->encoded,
                         .stored = co_dataset_stored(data)->shape,
                         .sample = *co_dataset_shape(data),
                         .classes = co_dataset_classes(data)};
    if (!co_dataset_has_images(data))
        return co_fail(CO_E_USAGE, "the run's data (%s) are no images", co_dataset_name(data));
    out->name = co_calloc((size_t)out->classes, sizeof(*out->name));
    for (int64_t i = 0; out->name && i < out->classes; i++) {
        const char *name = co_dataset_class_name(data, (int32_t)i);

        out->name[i] = name ? co_strdup(name) : NULL;
    }
    return out->name ? CO_OK : CO_E_NOMEM;
}

/* Three sizes; height and width may be 0 where images have sizes of their own. */
static bool run_data_shape(co_shape *out, const json_t *list, bool open)
{
    if (json_array_size(list) != 3)
        return false;
    out->ndim = 3;
    for (size_t i = 0; i < 3; i++) {
        const json_t *item = json_array_get(list, i);
        const json_int_t size = json_integer_value(item);

        if (!json_is_integer(item) || size > RUN_DATA_MAX_SIDE || size < (open && i > 0 ? 0 : 1))
            return false;
        out->dim[i] = size;
    }
    return true;
}

static co_status run_data_names_read(co_run_data *out, const json_t *list)
{
    out->classes = (int64_t)json_array_size(list);
    out->name = co_calloc((size_t)out->classes, sizeof(*out->name));
    if (!out->name)
        return CO_E_NOMEM;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));

        out->name[i] = name ? co_strdup(name) : NULL;
        if (name && !out->name[i])
            return CO_E_NOMEM;
    }
    return CO_OK;
}

static co_status run_data_take(co_run_data *out, const json_t *root, const char *name)
{
    const json_t *classes = json_object_get(root, "classes");
    const size_t n = json_array_size(classes);

    out->encoded = json_is_true(json_object_get(root, "encoded"));
    if (!run_data_shape(&out->stored, json_object_get(root, "stored"), out->encoded) ||
        !run_data_shape(&out->sample, json_object_get(root, "sample"), false) || n == 0 ||
        n > RUN_DATA_MAX_CLASSES)
        return co_fail(CO_E_DATA, "%s: is not what a run writes; it is damaged", name);
    return run_data_names_read(out, classes);
}

co_status co_run_data_parse(co_run_data *out, const char *text, size_t size, const char *name)
{
    json_error_t error;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    co_status st;

    *out = (co_run_data){.classes = 0};
    st = run_data_take(out, root, name);
    json_decref(root);
    if (st != CO_OK)
        co_run_data_free(out);
    return st;
}

co_status co_run_data_read(co_run_data *out, const char *path)
{
    static const co_open_rule rule = {.status = CO_E_DATA, .own = true, .max = RUN_DATA_MAX_BYTES};
    uint8_t *text = NULL;
    size_t size;
    co_status st;

    CO_TRY(co_fs_read_as(&text, &size, path, &rule));
    st = co_run_data_parse(out, (const char *)text, size, path);
    co_free(text);
    return st;
}

void co_run_data_free(co_run_data *data)
{
    for (int64_t i = 0; data->name && i < data->classes; i++)
        co_free(data->name[i]);
    co_free(data->name);
    *data = (co_run_data){.classes = 0};
}

co_status co_run_data_compare(const char *path, const co_dataset *data)
{
    const int64_t classes = co_dataset_classes(data);
    co_run_data then;

    CO_TRY(co_run_data_read(&then, path));
    for (int64_t i = 0; i < then.classes && i < classes; i++) {
        const char *name = co_dataset_class_name(data, (int32_t)i);

        if (!name || !then.name[i] || strcmp(name, then.name[i]) == 0)
            continue;
        if (co_launch_is_root())
            co_log(CO_LOG_WARN, "class %lld is called %s in the data, and was %s in training (%s)",
                   (long long)i, CO_SHOW(name), CO_SHOW(then.name[i]), path);
        break;
    }
    co_run_data_free(&then);
    return CO_OK;
}
