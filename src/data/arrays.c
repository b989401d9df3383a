/*
 * arrays.c - data set "arrays": any fields, from .npy files in a folder or one safetensors file.
 *
 * The array of a field is called SPLIT.FIELD: the file train.input.npy, or the tensor
 * `train.input`. Row i belongs to sample i. Checks that all fields have the same number of rows,
 * and chooses the type in which a network gets each.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cohort/safetensors.h>

#include "core/fs.h"
#include "core/mem.h"
#include "data/folder_names.h"
#include "data/formats.h"
#include "data/npy.h"

#define ARRAYS_NAME 64 /* bytes of a field's name, with its NUL */
#define ARRAYS_PATH 4096

typedef struct arrays_field {
    char name[ARRAYS_NAME];
    co_dtype stored, given;
    size_t elements; /* of a sample */
    const uint8_t *data;
    co_npy npy; /* owned; closed if the array is in the safetensors file */
} arrays_field;

typedef struct arrays {
    int64_t classes;
    /* set by open */
    const char *path, *split;
    uint64_t count;
    int n, label; /* number of fields; index of the label, -1 if there is none */
    arrays_field field[CO_MAX_FIELDS];
    co_shape shape[CO_MAX_FIELDS]; /* of a sample */
    co_safetensors *file;          /* owned; NULL for a folder */
} arrays;

static const co_key arrays_keys[] = {
    {"classes", CO_KEY_INT, offsetof(arrays, classes), "0", 0, INT32_MAX, NULL,
     "number of labels, where there is a field `label`; 0: as many as the largest one of the "
     "training split needs"},
    CO_KEYS_END,
};

/* ---- finding the arrays ---- */

static co_status arrays_fail(const arrays *self, const char *field, const char *what)
{
    return co_fail(CO_E_DATA, "%s: the array %s.%s %s", self->path, self->split, field, what);
}

static int arrays_find_field(const arrays *self, const char *name)
{
    for (int k = 0; k < self->n; k++)
        if (strcmp(self->field[k].name, name) == 0)
            return k;
    return -1;
}

/* Labels become i32, input and target f32; other fields keep their type. */
static co_status arrays_set_type(arrays *self, arrays_field *field, co_shape *shape)
{
    const bool label = strcmp(field->name, CO_FIELD_LABEL) == 0;
    const bool integer =
        field->stored == CO_I32 || field->stored == CO_I64 || field->stored == CO_U8;

    field->given = field->stored;
    if (label) {
        if (!integer || field->elements != 1)
            return arrays_fail(self, field->name,
                               "holds something else than one whole number for each sample; "
                               "values to learn belong into the field `target`");
        field->given = CO_I32;
        shape->ndim = 0;
        self->label = (int)(field - self->field);
    } else if (strcmp(field->name, CO_FIELD_INPUT) == 0 ||
               strcmp(field->name, CO_FIELD_TARGET) == 0) {
        field->given = CO_F32;
        if (shape->ndim == 0)
            *shape = (co_shape){1, {1}};
    }
    return CO_OK;
}

/* Add an array whose first dimension counts the samples. */
static co_status arrays_add(arrays *self, const char *name, size_t length, co_dtype dtype,
                            const co_shape *shape, const void *data)
{
    const int at = self->n;
    arrays_field *field = &self->field[at];
    co_shape *sample = &self->shape[at];

    if (length == 0 || length >= ARRAYS_NAME || memchr(name, '.', length))
        return co_fail(CO_E_DATA, "%s: %s.%.*s: a field has a name of 1 to %d bytes, without a dot",
                       self->path, self->split, (int)length, name, ARRAYS_NAME - 1);
    snprintf(field->name, sizeof(field->name), "%.*s", (int)length, name);
    if (arrays_find_field(self, field->name) >= 0)
        return arrays_fail(self, field->name, "is there twice");
    if (shape->ndim < 1 || shape->dim[0] < 1 || co_shape_count(shape) < 1)
        return arrays_fail(self, field->name, "is empty");
    if (self->n > 0 && (uint64_t)shape->dim[0] != self->count)
        return co_fail(CO_E_DATA,
                       "%s: the array %s.%s has %lld samples, but %s.%s has %llu; every field has "
                       "a row for each sample",
                       self->path, self->split, field->name, (long long)shape->dim[0], self->split,
                       self->field[0].name, (unsigned long long)self->count);
    self->count = (uint64_t)shape->dim[0];
    *sample = *shape;
    sample->ndim--;
    memmove(sample->dim, sample->dim + 1, (size_t)sample->ndim * sizeof(sample->dim[0]));
    field->stored = dtype;
    field->elements = (size_t)co_shape_count(sample);
    field->data = data;
    CO_TRY(arrays_set_type(self, field, sample));
    self->n++;
    return CO_OK;
}

/* What follows "SPLIT." in the name of an array; NULL if it belongs to another split. */
static const char *arrays_field_name(const arrays *self, const char *name)
{
    const size_t n = strlen(self->split);

    return strncmp(name, self->split, n) == 0 && name[n] == '.' ? name + n + 1 : NULL;
}

static co_status arrays_check_room(const arrays *self)
{
    if (self->n < CO_MAX_FIELDS)
        return CO_OK;
    return co_fail(CO_E_DATA, "%s: more than %d arrays %s.FIELD", self->path, CO_MAX_FIELDS,
                   self->split);
}

static co_status arrays_add_tensor(arrays *self, const co_named_tensor *tensor)
{
    const char *name = arrays_field_name(self, tensor->name);

    if (!name)
        return CO_OK;
    CO_TRY(arrays_check_room(self));
    return arrays_add(self, name, strlen(name), tensor->dtype, &tensor->shape, tensor->data);
}

static co_status arrays_add_file(arrays *self, const char *file)
{
    const char *name = arrays_field_name(self, file);
    co_npy *npy = &self->field[self->n < CO_MAX_FIELDS ? self->n : 0].npy;
    char path[ARRAYS_PATH];
    int n;

    if (!name)
        return CO_OK;
    CO_TRY(arrays_check_room(self));
    n = snprintf(path, sizeof(path), "%s/%s", self->path, file);
    if (n < 0 || n >= (int)sizeof(path))
        return co_fail(CO_E_DATA, "%s: the path of %s is too long", self->path, file);
    CO_TRY(co_npy_open(npy, path));
    return arrays_add(self, name, (size_t)(strstr(name, ".npy") - name), npy->dtype, &npy->shape,
                      npy->data);
}

static co_status arrays_find_files(arrays *self)
{
    co_names names = {NULL};
    co_status st = co_names_add(&names, self->path, CO_NAMES_ARRAYS);

    for (size_t i = 0; i < names.n && st == CO_OK; i++)
        st = arrays_add_file(self, co_names_get(&names, i));
    co_names_free(&names);
    return st;
}

static co_status arrays_find_tensors(arrays *self)
{
    CO_TRY(co_safetensors_open(&self->file, self->path));
    for (size_t i = 0; i < co_safetensors_count(self->file); i++)
        CO_TRY(arrays_add_tensor(self, co_safetensors_tensor(self->file, i)));
    return CO_OK;
}

/* ---- reading them ---- */

/* Convert one sample to floats; `from` may be unaligned. */
static void arrays_to_floats(float *out, const arrays_field *field, const uint8_t *from)
{
    for (size_t e = 0; e < field->elements; e++) {
        int32_t i32;
        int64_t i64;
        double f64;

        if (field->stored == CO_F64) {
            memcpy(&f64, from + e * sizeof(f64), sizeof(f64));
            out[e] = (float)f64;
        } else if (field->stored == CO_I32) {
            memcpy(&i32, from + e * sizeof(i32), sizeof(i32));
            out[e] = (float)i32;
        } else if (field->stored == CO_I64) {
            memcpy(&i64, from + e * sizeof(i64), sizeof(i64));
            out[e] = (float)i64;
        } else {
            out[e] = (float)from[e];
        }
    }
}

static int64_t arrays_integer(const arrays_field *field, uint64_t i)
{
    const uint8_t *from = field->data + i * co_dtype_size(field->stored);
    int32_t i32;
    int64_t i64;

    if (field->stored == CO_U8)
        return *from;
    if (field->stored == CO_I32) {
        memcpy(&i32, from, sizeof(i32));
        return i32;
    }
    memcpy(&i64, from, sizeof(i64));
    return i64;
}

static int32_t arrays_label(const void *state, uint64_t i)
{
    const arrays *self = state;

    return self->label < 0 ? 0 : (int32_t)arrays_integer(&self->field[self->label], i);
}

static co_status arrays_read(const void *state, void *out, int k, uint64_t i)
{
    const arrays *self = state;
    const arrays_field *field = &self->field[k];
    const size_t bytes = field->elements * co_dtype_size(field->stored);
    const uint8_t *from = field->data + i * bytes;

    if (k == self->label)
        *(int32_t *)out = arrays_label(state, i);
    else if (field->given == field->stored)
        memcpy(out, from, bytes);
    else
        arrays_to_floats(out, field, from);
    return CO_OK;
}

/* ---- opening ---- */

static co_status arrays_check_labels(arrays *self)
{
    const int64_t bound = self->classes ? self->classes : INT32_MAX;
    int64_t most = 0;

    for (uint64_t i = 0; i < self->count; i++) {
        const int64_t label = arrays_integer(&self->field[self->label], i);

        if (label < 0 || label >= bound)
            return co_fail(CO_E_DATA, "%s: label %llu of %s.label is %lld; labels are 0 to %lld",
                           self->path, (unsigned long long)i, self->split, (long long)label,
                           (long long)bound - 1);
        most = label > most ? label : most;
    }
    if (!self->classes)
        self->classes = most + 1;
    return CO_OK;
}

/* Without the key the classes are those of the training split, where its labels are there: the test
   split may lack some. */
static co_status arrays_count_training(arrays *self)
{
    static const char *const files[] = {"train.label.npy", "train.label.npy.gz"};
    arrays train = {.path = self->path, .split = "train", .label = -1};
    const co_named_tensor *tensor =
        self->file ? co_safetensors_find(self->file, "train.label") : NULL;
    co_status st = tensor ? arrays_add_tensor(&train, tensor) : CO_OK;
    char path[ARRAYS_PATH];

    for (size_t i = 0; i < 2 && !self->file && train.n == 0 && st == CO_OK; i++) {
        st = co_fs_join(path, sizeof(path), self->path, files[i]);
        if (st == CO_OK && co_fs_exists(path))
            st = arrays_add_file(&train, files[i]);
    }
    if (st == CO_OK && train.n)
        st = arrays_check_labels(&train);
    self->classes = train.classes;
    co_npy_close(&train.field[0].npy);
    return st;
}

/* Move the input to index 0, where co_dataset_info wants it. */
static co_status arrays_order(arrays *self)
{
    const int at = arrays_find_field(self, CO_FIELD_INPUT);
    const arrays_field field = self->field[at < 0 ? 0 : at];
    const co_shape shape = self->shape[at < 0 ? 0 : at];

    if (at < 0)
        return co_fail(CO_E_DATA,
                       "%s: no array %s.input; a data set of arrays has SPLIT.FIELD.npy files in a "
                       "folder, or such tensors in a .safetensors file: train.input, train.target "
                       "or train.label, and the same for test",
                       self->path, self->split);
    self->field[at] = self->field[0];
    self->shape[at] = self->shape[0];
    self->field[0] = field;
    self->shape[0] = shape;
    self->label = arrays_find_field(self, CO_FIELD_LABEL);
    return CO_OK;
}

static co_status arrays_describe(arrays *self, co_dataset_info *info, co_split split)
{
    int target;

    CO_TRY(arrays_order(self));
    target = arrays_find_field(self, CO_FIELD_TARGET);
    if (self->label < 0 && target < 0)
        return co_fail(CO_E_DATA, "%s: neither %s.label nor %s.target: there is nothing to learn",
                       self->path, self->split, self->split);
    info->count = self->count;
    if (self->label >= 0) {
        if (!self->classes && split == CO_SPLIT_TEST)
            CO_TRY(arrays_count_training(self));
        CO_TRY(arrays_check_labels(self));
        info->classes = self->classes;
    } else {
        info->classes = (int64_t)self->field[target].elements;
    }
    for (int k = 0; k < self->n; k++)
        info->field[k] =
            (co_field){self->field[k].name, self->field[k].given, self->shape[k], NULL};
    return CO_OK;
}

static void arrays_close(void *state)
{
    arrays *self = state;

    for (int k = 0; k < CO_MAX_FIELDS; k++)
        co_npy_close(&self->field[k].npy);
    co_safetensors_close(self->file);
}

static co_status arrays_open(void *state, co_dataset_info *info, const char *path, co_split split)
{
    arrays *self = state;
    struct stat at;
    co_status st;

    if (!path)
        return co_fail(CO_E_USAGE, "data arrays: the key 'path' is missing: a folder of .npy "
                                   "files, or a .safetensors file");
    if (stat(path, &at) != 0)
        return co_fail(CO_E_DATA, "%s: no such folder of .npy files, or .safetensors file", path);
    self->path = path;
    self->split = split == CO_SPLIT_TRAIN ? "train" : "test";
    self->label = -1;
    st = S_ISDIR(at.st_mode) ? arrays_find_files(self) : arrays_find_tensors(self);
    if (st == CO_OK)
        st = arrays_describe(self, info, split);
    if (st != CO_OK)
        arrays_close(self);
    return st;
}

const co_dataset_ops co_dataset_arrays = {
    .name = "arrays",
    .summary = "any fields in arrays: SPLIT.FIELD.npy in a folder, or a .safetensors file",
    .keys = arrays_keys,
    .self_size = sizeof(arrays),
    .open = arrays_open,
    .label = arrays_label,
    .field = arrays_read,
    .close = arrays_close,
};
