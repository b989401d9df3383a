/*
 * dataset.c - open a data set from its config: its format, the common keys, the size of a sample.
 *
 * Samples are read in read_sample.c.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "core/fs.h"
#include "core/mem.h"
#include "data/dataset_internal.h"

/* Limit on the elements of a sample, stored or resized: above any image, and safe from overflow. */
#define DATASET_MAX_SAMPLE ((int64_t)1 << 28)

#define DATASET(field) offsetof(co_dataset, field)

static const char *const dataset_on_bad[] = {"error", "skip", NULL};

const co_key co_dataset_common_keys[] = {
    {"path", CO_KEY_STRING, DATASET(path), "~", 0, 0, NULL, "folder or file that holds the data"},
    {"normalize", CO_KEY_VALUE, DATASET(normalize_value), "~", 0, 0,
     CO_KEY_TAKES(
         "a map of mean and std, or one of imagenet, cifar10, cifar100, mnist, fashion-mnist"),
     "{mean: m, std: s} of values from 0 to 1, one number or one per channel: (x - m) / s; or the "
     "name of a set that they are known of: imagenet, cifar10, cifar100, mnist, fashion-mnist"},
    {"resize", CO_KEY_VALUE, DATASET(resize_value), "~", 0, 0,
     CO_KEY_TAKES("a size, a list of two, or a map of size and mode"),
     "size, [height, width], or {size: ..., mode: bilinear | pad}; images of different sizes: one "
     "number is the shorter side's, and the middle square is taken"},
    {"center_crop", CO_KEY_INTS, DATASET(center_crop), "~", 1, 1 << 14, NULL,
     "the middle of the image, after resize: side, or [height, width]"},
    {"augment", CO_KEY_VALUE, DATASET(augment_value), "~", 0, 0,
     CO_KEY_TAKES(
         "a name of `cohort list augmentations`, {name: ..., key: value}, or a list of these"),
     "random changes to training samples: a list of names, or of {name: ..., key: value}"},
    {"scaled_decode", CO_KEY_BOOL, DATASET(scaled), "true", 0, 0, NULL,
     "decode large JPEGs of the training split at 1/2, 1/4 or 1/8, which is faster and up to a "
     "dozen "
     "levels off; the test split is always decoded at full size"},
    {"on_bad_sample", CO_KEY_CHOICE, DATASET(on_bad), "error", 0, 0, dataset_on_bad,
     "a damaged image ends the run; or the next good one of its label takes its place"},
    CO_KEYS_END,
};

static co_status dataset_read_keys(co_dataset *data, const co_value *map, co_config *config)
{
    CO_TRY(co_plugin_read(data, data->ops, &co_dataset_plugins, co_dataset_common_keys,
                          DATASET(self), map, co_config_arena(config)));
    CO_TRY(co_normalize_read(&data->normalize, data->normalize_value, config));
    CO_TRY(co_augment_read(&data->augment, data->augment_value, config));
    return co_resize_read(&data->resize, data->resize_value, config);
}

static bool dataset_size_ok(const co_shape *shape)
{
    int64_t left = DATASET_MAX_SAMPLE;

    for (int i = 0; i < 3; i++) {
        if (shape->dim[i] < 1 || shape->dim[i] > left)
            return false;
        left /= shape->dim[i];
    }
    return true;
}

static co_status dataset_probe(co_image_info *image, const co_dataset *data, co_buffer *buffer,
                               uint64_t i)
{
    char name[CO_DATASET_NAME];
    co_bytes bytes;

    co_dataset_sample_name(data, name, sizeof(name), i);
    CO_TRY(co_dataset_stored_sample(&bytes, data, buffer, i));
    return co_image_probe(image, bytes.at, bytes.n, name);
}

/* Without `resize` and `center_crop`, all images must have the size of the first one, of those that
   are not damaged where these are skipped. */
static co_status dataset_first_size(co_dataset *data, co_shape *first)
{
    co_buffer buffer = {0};
    co_image_info image;
    uint64_t i = 0;
    co_status st;

    do
        st = dataset_probe(&image, data, &buffer, i++);
    while (st == CO_E_DATA && data->on_bad && i < data->info.count);
    if (st == CO_OK) {
        first->dim[1] = (int64_t)image.height;
        first->dim[2] = (int64_t)image.width;
    }
    co_buffer_free(&buffer);
    return st;
}

static co_status dataset_setup_frame(co_dataset *data)
{
    co_frame *frame = &data->frame;

    if (data->resize.size.n && data->resize.mode != CO_RESIZE_BILINEAR)
        return co_value_fail(data->resize_value,
                             "resize: mode: pad is for images of one size, without center_crop or "
                             "random-resized-crop");
    frame->resize = data->resize.size;
    frame->crop = data->center_crop;
    data->shape = data->info.shape;
    if (data->info.encoded && !frame->resize.n && !frame->crop.n)
        CO_TRY(dataset_first_size(data, &data->shape));
    CO_TRY(co_frame_setup(frame, &data->shape));
    if (!data->info.encoded && !frame->resize.n &&
        (frame->height > data->shape.dim[1] || frame->width > data->shape.dim[2]))
        return co_fail(CO_E_USAGE, "center_crop: %lldx%lld does not fit into images of %lldx%lld",
                       (long long)frame->height, (long long)frame->width,
                       (long long)data->shape.dim[1], (long long)data->shape.dim[2]);
    data->shape.dim[1] = frame->height;
    data->shape.dim[2] = frame->width;
    data->resize.size.n = 0; /* the frame resizes instead */
    return co_resize_setup(&data->resize, &data->shape);
}

/* Whether the frame, rather than `resize`, sets the size. Augmentations need samples of the final
   size, except for a border that `resize` adds. The same for both splits. */
static bool dataset_is_framed(const co_dataset *data)
{
    const bool interpolated = data->resize.size.n && data->resize.mode == CO_RESIZE_BILINEAR;

    return data->info.encoded || data->center_crop.n || data->augment.n_box ||
           (data->augment.n && interpolated);
}

static co_status dataset_setup_size(co_dataset *data)
{
    char shape[64];

    if (data->center_crop.n > 2)
        return co_fail(CO_E_USAGE, "center_crop: expected a size or [height, width]");
    data->framed = dataset_is_framed(data);
    if (data->framed) {
        CO_TRY(dataset_setup_frame(data));
    } else {
        CO_TRY(co_resize_setup(&data->resize, &data->info.shape));
        data->shape = data->resize.to;
    }
    if (dataset_size_ok(&data->shape) && (data->info.encoded || dataset_size_ok(&data->info.shape)))
        return CO_OK;
    return co_fail(CO_E_DATA, "%s: samples of %s are too large", data->ops->name,
                   co_shape_format(shape, sizeof(shape), &data->shape));
}

/* Check what the format reported; everything here is sized by it. */
static co_status dataset_check_info(const co_dataset *data)
{
    const co_dataset_info *info = &data->info;

    if (info->count > UINT32_MAX)
        return co_fail(CO_E_DATA, "%s: more than %u samples", data->ops->name, UINT32_MAX);
    if (info->classes < 1 || info->classes > INT32_MAX)
        return co_fail(CO_E_DATA, "%s: %lld classes; there are 1 to %d", data->ops->name,
                       (long long)info->classes, INT32_MAX);
    return CO_OK;
}

static co_status dataset_check_images(const co_dataset *data)
{
    const co_dataset_info *info = &data->info;
    const int64_t channels = info->shape.dim[0];

    if (info->shape.ndim != 3)
        return co_fail(CO_E_DATA,
                       "%s: samples of %d dimensions; they have 3: channels, height, width",
                       data->ops->name, info->shape.ndim);
    if (info->encoded && channels != 1 && channels != 3)
        return co_fail(CO_E_DATA, "%s: images of %lld channels; they have 1 or 3", data->ops->name,
                       (long long)channels);
    return CO_OK;
}

/* Common keys that only apply to images. */
static co_status dataset_refuse_image_keys(const co_dataset *data)
{
    const char *key = data->normalize_value ? "normalize"
                      : data->resize_value  ? "resize"
                      : data->center_crop.n ? "center_crop"
                      : data->augment_value ? "augment"
                      : data->on_bad        ? "on_bad_sample"
                                            : NULL;

    if (!key)
        return CO_OK;
    return co_fail(CO_E_USAGE, "data %s: %s is for images; leave it out", data->ops->name, key);
}

/* Check and copy the fields of a format that has its own. */
static co_status dataset_setup_fields(co_dataset *data, co_split split)
{
    const co_dataset_info *info = &data->info;

    CO_TRY(dataset_refuse_image_keys(data));
    for (int k = 0; k < CO_MAX_FIELDS && info->field[k].name; k++) {
        const co_field *field = &info->field[k];
        int64_t left = DATASET_MAX_SAMPLE;

        if ((unsigned)field->dtype >= CO_DTYPE_COUNT || field->shape.ndim < 0 ||
            field->shape.ndim >= CO_MAX_DIMS)
            return co_fail(CO_E_DATA, "%s: field '%s' has no type, or more than %d dimensions",
                           data->ops->name, field->name, CO_MAX_DIMS - 1);
        for (int i = 0; i < field->shape.ndim; left /= field->shape.dim[i], i++)
            if (field->shape.dim[i] < 1 || field->shape.dim[i] > left)
                return co_fail(CO_E_DATA, "%s: samples of the field '%s' are empty or too large",
                               data->ops->name, field->name);
        data->field[k] = (co_field){field->name, field->dtype, field->shape, NULL};
    }
    if (strcmp(data->field[0].name, CO_FIELD_INPUT) != 0 ||
        (data->field[0].dtype != CO_F32 && data->field[0].dtype != CO_I32))
        return co_fail(CO_E_DATA, "%s: the first field is '%s' of %s, not '%s' of f32 or i32",
                       data->ops->name, data->field[0].name, co_dtype_name(data->field[0].dtype),
                       CO_FIELD_INPUT);
    data->shape = data->field[0].shape;
    data->drawn = data->ops->draw && split == CO_SPLIT_TRAIN;
    return CO_OK;
}

static co_status dataset_setup(co_dataset *data, co_split split)
{
    CO_PLUGIN_TRY(&co_dataset_plugins, data->ops, open,
                  (data->self, &data->info, data->path, split));
    data->open = true;
    CO_TRY(dataset_check_info(data));
    if (!co_dataset_has_images(data))
        return dataset_setup_fields(data, split);
    CO_TRY(dataset_check_images(data));
    CO_TRY(dataset_setup_size(data));
    CO_TRY(co_augment_check(&data->augment, data->framed ? &data->shape : &data->info.shape));
    if (split == CO_SPLIT_TEST) {
        data->augment = (co_augment){0};
        data->scaled = false;
    }
    data->field[0] = (co_field){CO_FIELD_INPUT, CO_F32, data->shape, NULL};
    data->field[1] = (co_field){CO_FIELD_LABEL, CO_I32, {0}, NULL};
    return co_normalize_table(&data->table, &data->normalize, (size_t)data->info.shape.dim[0]);
}

co_status co_dataset_open_value(co_dataset **out, const co_value *value, co_config *config,
                                co_split split)
{
    const co_dataset_ops *ops;
    const void *chosen;
    const co_value *map;
    co_dataset *data;
    co_status st;

    CO_TRY(co_plugin_choose(&chosen, &map, &co_dataset_plugins, value, NULL));
    ops = chosen;
    data = co_calloc(1, sizeof(*data) + ops->self_size);
    if (!data)
        return CO_E_NOMEM;
    data->ops = ops;
    st = dataset_read_keys(data, map, config);
    if (st == CO_OK)
        st = dataset_setup(data, split);
    if (st != CO_OK) {
        co_dataset_destroy(data);
        return st;
    }
    *out = data;
    return CO_OK;
}

co_status co_dataset_open_as(co_dataset **out, const co_dataset_ops *ops, const void *self,
                             const co_value *value, co_config *config)
{
    const co_dataset_ops *named;
    const void *chosen;
    const co_value *map;
    co_dataset *data;
    co_status st;

    CO_TRY(co_plugin_choose(&chosen, &map, &co_dataset_plugins, value, NULL));
    named = chosen;
    data = co_calloc(
        1, sizeof(*data) + (named->self_size > ops->self_size ? named->self_size : ops->self_size));
    if (!data)
        return CO_E_NOMEM;
    data->ops = named;
    st = dataset_read_keys(data, map, config);
    data->ops = ops;
    data->path = NULL;
    data->on_bad = 0;
    data->named = true;
    memcpy(data->self, self, ops->self_size);
    if (st == CO_OK)
        st = dataset_setup(data, CO_SPLIT_TEST);
    if (st != CO_OK) {
        co_dataset_destroy(data);
        return st;
    }
    *out = data;
    return CO_OK;
}

co_status co_dataset_open(co_dataset **out, const char *text, co_split split)
{
    co_config *config;
    const co_value *value;
    co_dataset *data;
    co_status st;

    if (split != CO_SPLIT_TRAIN && split != CO_SPLIT_TEST)
        return co_fail(CO_E_USAGE, "data: there is no split %d", (int)split);
    CO_TRY(co_config_parse(&config, "", 0, "data"));
    st = co_config_add_text(&value, config, text);
    if (st == CO_OK)
        st = co_dataset_open_value(&data, value, config, split);
    if (st != CO_OK) {
        co_config_destroy(config);
        return st;
    }
    data->config = config;
    *out = data;
    return CO_OK;
}

void co_dataset_destroy(co_dataset *dataset)
{
    if (!dataset)
        return;
    if (dataset->open && dataset->ops->close)
        dataset->ops->close(dataset->self);
    co_resize_close(&dataset->resize);
    co_free(dataset->table);
    co_config_destroy(dataset->config);
    co_free(dataset);
}

const char *co_dataset_name(const co_dataset *dataset)
{
    return dataset->ops->name;
}

const co_dataset_info *co_dataset_stored(const co_dataset *dataset)
{
    return &dataset->info;
}

bool co_dataset_has_images(const co_dataset *dataset)
{
    return !dataset->info.field[0].name;
}

bool co_dataset_has_labels(const co_dataset *dataset)
{
    for (int k = 0; k < CO_MAX_FIELDS && dataset->field[k].name; k++)
        if (strcmp(dataset->field[k].name, CO_FIELD_LABEL) == 0)
            return dataset->ops->label != NULL;
    return false;
}

const co_field *co_dataset_fields(const co_dataset *dataset)
{
    return dataset->field;
}

uint64_t co_dataset_count(const co_dataset *dataset)
{
    return dataset->info.count;
}

const co_shape *co_dataset_shape(const co_dataset *dataset)
{
    return &dataset->shape;
}

int64_t co_dataset_classes(const co_dataset *dataset)
{
    return dataset->info.classes;
}

co_status co_dataset_check_splits(const co_dataset *train, const co_dataset *test)
{
    const bool same = co_shape_equal(&train->shape, &test->shape);
    char want[64], got[64];

    if (same && test->info.classes <= train->info.classes)
        return CO_OK;
    return co_fail(
        CO_E_DATA,
        "%s: the test split does not fit the training split: samples %s, %lld classes "
        "against %s, %lld%s",
        co_dataset_name(test), co_shape_format(got, sizeof(got), &test->shape),
        (long long)test->info.classes, co_shape_format(want, sizeof(want), &train->shape),
        (long long)train->info.classes,
        same || !co_dataset_has_images(train) ? "" : "; data.resize brings all images to one size");
}

int32_t co_dataset_label(const co_dataset *dataset, uint64_t i)
{
    assert(i < dataset->info.count);
    return dataset->ops->label ? dataset->ops->label(dataset->self, i) : 0;
}

co_status co_dataset_check_label(const co_dataset *dataset, int32_t label, uint64_t i)
{
    char name[CO_DATASET_NAME];

    if (label >= 0 && label < dataset->info.classes)
        return CO_OK;
    co_dataset_sample_name(dataset, name, sizeof(name), i);
    return co_fail(CO_E_DATA, "%s: label %d; those of this data set are 0 to %d", name, (int)label,
                   (int)(dataset->info.classes - 1));
}

co_status co_dataset_take_label(int32_t *out, const co_dataset *dataset, uint64_t i)
{
    *out = co_dataset_label(dataset, i);
    return co_dataset_check_label(dataset, *out, i);
}

co_status co_dataset_stored_sample(co_bytes *out, const co_dataset *dataset, co_buffer *buffer,
                                   uint64_t i)
{
    CO_PLUGIN_TRY(&co_dataset_plugins, dataset->ops, read, (dataset->self, out, buffer, i));
    return CO_OK;
}

int64_t co_dataset_vocabulary(const co_dataset *dataset)
{
    return dataset->ops->save_tokenizer ? co_dataset_classes(dataset) : 0;
}

double co_dataset_bytes_per_token(const co_dataset *dataset)
{
    return dataset->ops->bytes_per_token ? dataset->ops->bytes_per_token(dataset->self) : 0;
}

co_status co_dataset_save_tokenizer(const co_dataset *dataset, const char *folder)
{
    if (dataset->ops->save_tokenizer)
        CO_PLUGIN_TRY(&co_dataset_plugins, dataset->ops, save_tokenizer, (dataset->self, folder));
    return CO_OK;
}

bool co_dataset_scales(const co_dataset *dataset)
{
    return dataset->scaled;
}

bool co_dataset_skips_bad(const co_dataset *dataset)
{
    return dataset->on_bad != 0;
}

bool co_dataset_skips(const co_dataset *dataset, co_status st)
{
    return st == CO_E_DATA && co_dataset_skips_bad(dataset);
}

bool co_dataset_may_skip_bad(const co_dataset *dataset)
{
    return !dataset->named;
}

bool co_dataset_expects(const co_dataset *dataset)
{
    return dataset->ops->expect != NULL;
}

bool co_dataset_expect(const co_dataset *dataset, const uint32_t *sample, uint64_t n)
{
    return dataset->ops->expect && dataset->ops->expect(dataset->self, sample, n);
}

void co_dataset_sample_name(const co_dataset *dataset, char *out, size_t size, uint64_t i)
{
    if (dataset->ops->sample_name)
        dataset->ops->sample_name(dataset->self, out, size, i);
    else
        snprintf(out, size, "sample %llu of %s", (unsigned long long)i,
                 dataset->path ? dataset->path : dataset->ops->name);
}

const char *co_dataset_class_name(const co_dataset *dataset, int32_t label)
{
    return dataset->ops->class_name ? dataset->ops->class_name(dataset->self, label) : NULL;
}
