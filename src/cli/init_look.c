/* init_look.c - which kind of data a path holds, its sizes and classes, and its mean and std. */
#include "cli/init_look.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/data_info.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/sort.h"
#include "core/text.h"
#include "data/pack_layout.h"
#include "data/shard_index.h"
#include "data/token_file.h"

#define LOOK_HEAD    4096 /* bytes of a file that are looked at */
#define LOOK_SIZES   200  /* pictures whose sizes are looked at */
#define LOOK_MOMENTS 10000
/* Side that larger pictures are brought to, unless the user says another. */
#define LOOK_LARGEST  64
#define LOOK_SMALLEST 8

static bool look_has(const char *folder, const char *name)
{
    char path[CLI_MAX_PATH];

    return snprintf(path, sizeof(path), "%s/%s", folder, name) < (int)sizeof(path) &&
           co_fs_exists(path);
}

static bool look_has_either(const char *folder, const char *name)
{
    char packed[64];

    snprintf(packed, sizeof(packed), "%s.gz", name);
    return look_has(folder, name) || look_has(folder, packed);
}

static const char *look_folder(const char *path)
{
    if (cli_data_info_is_tokens(path) || (look_has(path, "train.bin") && look_has(path, "val.bin")))
        return "tokens";
    if (look_has_either(path, "train-images-idx3-ubyte"))
        return "mnist";
    if (look_has_either(path, "data_batch_1.bin") || look_has(path, "data_batch_1"))
        return "cifar10";
    if (look_has_either(path, "train.bin") || (look_has(path, "train") && look_has(path, "meta")))
        return "cifar100";
    if (look_has_either(path, "train." CO_FIELD_INPUT ".npy"))
        return "arrays";
    if (look_has(path, "train/" CO_SHARD_INDEX_NAME))
        return look_has(path, "train/train-000000.pack") ? "pack" : "tar";
    if (look_has(path, "train") && (look_has(path, "val") || look_has(path, "test")))
        return "imagefolder";
    return NULL;
}

static co_status look_head(size_t *n, uint8_t head[LOOK_HEAD], const char *path)
{
    static const co_open_rule rule = {.status = CO_E_DATA};
    FILE *file;

    CO_TRY(co_open_stream(&file, NULL, path, &rule));
    *n = fread(head, 1, LOOK_HEAD, file);
    fclose(file);
    return CO_OK;
}

/* The length of a safetensors file's header, then its JSON. */
static bool look_is_safetensors(const uint8_t *head, size_t n)
{
    return n > 8 && head[7] == 0 && head[8] == '{';
}

/* Files of weights are safetensors, too. */
static co_status look_tensors(const char **format, const char *path)
{
    co_safetensors *file;

    CO_TRY(co_safetensors_open(&file, path));
    if (co_safetensors_find(file, "train." CO_FIELD_INPUT))
        *format = "arrays";
    co_safetensors_close(file);
    return CO_OK;
}

/* Text has no zero byte. */
static co_status look_file(const char **format, const char *path)
{
    uint8_t head[LOOK_HEAD];
    size_t n;

    CO_TRY(look_head(&n, head, path));
    if (n >= 8 && memcmp(head, PACK_MAGIC, 8) == 0)
        *format = "pack";
    else if (co_token_file_has_magic(head, n))
        *format = "tokens";
    else if (look_is_safetensors(head, n))
        return look_tensors(format, path);
    else if (n > 0 && !memchr(head, 0, n))
        *format = "text";
    return CO_OK;
}

bool init_look_is_data(const char *path)
{
    const char *end = strrchr(path, '.');
    uint8_t head[LOOK_HEAD];
    struct stat info;
    size_t n;

    if (stat(path, &info) != 0)
        return false;
    if (!S_ISREG(info.st_mode))
        return S_ISDIR(info.st_mode);
    if (end && (!strcmp(end, ".txt") || !strcmp(end, ".pack")))
        return true;
    return look_head(&n, head, path) == CO_OK && memchr(head, 0, n);
}

static co_status look_kind(const char **format, const char *path)
{
    struct stat info;

    *format = NULL;
    if (stat(path, &info) != 0)
        return co_fail(CO_E_DATA, "%s: there is no such file or folder", path);
    if (S_ISDIR(info.st_mode))
        *format = look_folder(path);
    else
        CO_TRY(look_file(format, path));
    if (*format)
        return CO_OK;
    return co_fail(
        CO_E_DATA,
        "%s: is none of: a folder of pictures (train/CLASS/*.jpg and val/CLASS/*.jpg), "
        "the files of MNIST or CIFAR, a file or shards of `cohort data pack`, shards of "
        "`cohort data shard`, a text file, a folder of `cohort data tokenize`, arrays "
        "(train.input.npy and others of a folder, or a .safetensors file); other data is "
        "in docs/data.md",
        path);
}

/* ---- opening ---- */

/* In single quotes, of which each is written twice. */
static void look_quote(char *out, size_t size, const char *text)
{
    size_t n = 0;

    for (out[n++] = '\''; *text && n + 3 < size; text++) {
        out[n++] = *text;
        if (*text == '\'')
            out[n++] = '\'';
    }
    out[n++] = '\'';
    out[n] = '\0';
}

static void look_normalize(char *out, size_t size, const init_data *d)
{
    const int64_t channels = d->images ? d->sample.dim[0] : 0;
    size_t n = 0;

    out[0] = '\0';
    if (!d->images || d->measured == 0 || channels > INIT_CHANNELS)
        return;
    n += (size_t)snprintf(out + n, size - n, ", normalize: {mean: [");
    for (int64_t c = 0; c < channels; c++)
        n += (size_t)snprintf(out + n, size - n, "%s%.4f", c ? ", " : "", d->mean[c]);
    n += (size_t)snprintf(out + n, size - n, "], std: [");
    for (int64_t c = 0; c < channels; c++)
        n += (size_t)snprintf(out + n, size - n, "%s%.4f", c ? ", " : "", d->std[c]);
    snprintf(out + n, size - n, "]}");
}

void init_value(char out[INIT_VALUE], const init_data *data, const char *augment)
{
    char path[CLI_MAX_PATH + 64], normalize[256], augmented[256] = "";

    look_quote(path, sizeof(path), data->path);
    look_normalize(normalize, sizeof(normalize), data);
    if (augment[0])
        snprintf(augmented, sizeof(augmented), ", augment: %s", augment);
    snprintf(out, INIT_VALUE, "{name: %s, path: %s%s%s%s}", data->format, path, data->extra,
             normalize, augmented);
}

static co_status look_open(co_dataset **out, const init_data *data, co_split split)
{
    char value[INIT_VALUE];

    init_value(value, data, "");
    return co_dataset_open(out, value, split);
}

/* ---- pictures of different sizes ---- */

/* The median of the shorter sides of some. */
static co_status look_side(int64_t *side, const co_dataset *data)
{
    const uint64_t count = co_dataset_count(data), stride = count / LOOK_SIZES + 1;
    double *sides = co_calloc(LOOK_SIZES + 1, sizeof(*sides));
    co_buffer buffer = {NULL};
    size_t n = 0;
    co_status st = sides ? CO_OK : CO_E_NOMEM;

    for (uint64_t i = 0; st == CO_OK && i < count && n < LOOK_SIZES; i += stride) {
        char name[256];
        co_image_info info;
        co_bytes bytes;

        co_dataset_sample_name(data, name, sizeof(name), i);
        st = co_dataset_stored_sample(&bytes, data, &buffer, i);
        if (st == CO_OK)
            st = co_image_probe(&info, bytes.at, bytes.n, name);
        if (st == CO_OK)
            sides[n++] = info.width < info.height ? info.width : info.height;
    }
    if (st == CO_OK) {
        co_sort_doubles(sides, n);
        *side = n ? (int64_t)sides[n / 2] : LOOK_LARGEST;
    }
    co_buffer_free(&buffer);
    co_free(sides);
    return st;
}

/* Encoded pictures need one size; others get one if the user wants it. */
static co_status look_size(init_data *d, int64_t size)
{
    co_dataset *data = NULL;
    int64_t side = size;
    bool encoded;
    co_status st;

    if (size) {
        snprintf(d->extra, sizeof(d->extra), ", resize: %" PRId64, size);
        return CO_OK;
    }
    snprintf(d->extra, sizeof(d->extra), ", resize: %d", LOOK_LARGEST); /* to be opened at all */
    CO_TRY(look_open(&data, d, CO_SPLIT_TRAIN));
    encoded = co_dataset_has_images(data) && co_dataset_stored(data)->encoded;
    st = encoded ? look_side(&side, data) : CO_OK;
    co_dataset_destroy(data);
    d->extra[0] = '\0';
    if (!encoded || st != CO_OK)
        return st;
    side = side > LOOK_LARGEST ? LOOK_LARGEST : side < LOOK_SMALLEST ? LOOK_SMALLEST : side;
    snprintf(d->extra, sizeof(d->extra), ", resize: %" PRId64, side);
    return CO_OK;
}

/* ---- measuring ---- */

static co_status look_moments(init_data *d, const co_dataset *data)
{
    const uint64_t stride = d->train / LOOK_MOMENTS + 1;
    const size_t all = (size_t)co_shape_count(&d->sample), plane = all / (size_t)d->sample.dim[0];
    double sum[INIT_CHANNELS] = {0}, squares[INIT_CHANNELS] = {0};
    float *value = co_calloc(all, sizeof(*value));
    co_status st = value ? CO_OK : CO_E_NOMEM;

    for (uint64_t i = 0; st == CO_OK && i < d->train; i += stride) {
        st = co_dataset_read(data, value, i);
        for (size_t k = 0; st == CO_OK && k < all && k / plane < INIT_CHANNELS; k++) {
            sum[k / plane] += (double)value[k];
            squares[k / plane] += (double)value[k] * (double)value[k];
        }
        d->measured++;
    }
    for (int c = 0; d->measured && c < INIT_CHANNELS && c < d->sample.dim[0]; c++) {
        const double n = (double)d->measured * (double)plane;

        d->mean[c] = sum[c] / n;
        d->std[c] = fmax(sqrt(fmax(squares[c] / n - d->mean[c] * d->mean[c], 0)), 1e-3);
    }
    co_free(value);
    return st;
}

static co_status look_classes(init_data *d, const co_dataset *data)
{
    uint64_t *count = co_calloc((size_t)d->classes, sizeof(*count));
    size_t n = 0;

    if (!count)
        return CO_E_NOMEM;
    for (uint64_t i = 0; i < d->train; i++) {
        const int32_t label = co_dataset_label(data, i);

        if (label >= 0 && label < d->classes)
            count[label]++;
    }
    d->rarest = UINT64_MAX;
    for (int64_t c = 0; c < d->classes; c++) {
        const char *name = co_dataset_class_name(data, (int32_t)c);

        d->rarest = count[c] < d->rarest ? count[c] : d->rarest;
        d->commonest = count[c] > d->commonest ? count[c] : d->commonest;
        if (name && n < sizeof(d->names))
            n += (size_t)snprintf(d->names + n, sizeof(d->names) - n, "%s%s", c ? ", " : "",
                                  CO_SHOW(name));
    }
    if (n >= sizeof(d->names))
        memcpy(d->names + sizeof(d->names) - 4, "...", 4);
    co_free(count);
    return CO_OK;
}

/* ---- arrays ---- */

/* Networks that `init` chooses give a row of values. */
static co_status look_target(init_data *d, const co_dataset *data)
{
    const co_field *field = co_dataset_fields(data);
    cli_field_moments m;
    char shape[64];
    int k = 0;

    while (strcmp(field[k].name, CO_FIELD_TARGET) != 0)
        k++;
    if (field[k].shape.ndim > 1)
        return co_fail(CO_E_DATA,
                       "%s: the target of a sample is %s; a config is written for targets of one "
                       "dimension, and other networks are in docs/configuration.md",
                       d->path, co_shape_format(shape, sizeof(shape), &field[k].shape));
    CO_TRY(cli_data_info_field(&m, data, k, d->train / LOOK_MOMENTS + 1));
    d->targets = true;
    d->binary = m.binary;
    return CO_OK;
}

static co_status look_arrays(init_data *d, const co_dataset *data)
{
    cli_field_moments m;

    CO_TRY(co_dataset_has_labels(data) ? look_classes(d, data) : look_target(d, data));
    CO_TRY(cli_data_info_field(&m, data, 0, d->train / LOOK_MOMENTS + 1));
    d->measured = m.samples;
    d->mean[0] = m.mean;
    d->std[0] = m.std;
    return CO_OK;
}

static bool look_is_arrays(const init_data *data)
{
    return strcmp(data->format, "arrays") == 0;
}

static co_status look_measure(init_data *d, const co_dataset *train, const co_dataset *test)
{
    d->images = co_dataset_has_images(train);
    d->arrays = look_is_arrays(d);
    d->tokens = !d->images && !d->arrays;
    d->train = co_dataset_count(train);
    d->test = co_dataset_count(test);
    d->classes = co_dataset_classes(train);
    d->sample = *co_dataset_shape(train);
    if (d->arrays)
        return look_arrays(d, train);
    if (!d->images)
        return CO_OK;
    CO_TRY(look_classes(d, train));
    return look_moments(d, train);
}

/* Text and tokens are cut into samples, images not. */
static bool look_is_sequence(const init_data *data)
{
    return strcmp(data->format, "text") == 0 || strcmp(data->format, "tokens") == 0;
}

static co_status look_name(init_data *out, const char *path, int64_t context)
{
    const char *format;

    *out = (init_data){.images = false};
    CO_TRY(look_kind(&format, path));
    if (strchr(path, '\n') ||
        snprintf(out->path, sizeof(out->path), "%s", path) >= (int)sizeof(out->path))
        return co_fail(CO_E_USAGE, "the path of the data is too long, or has a line break");
    snprintf(out->format, sizeof(out->format), "%s", format);
    if (look_is_sequence(out))
        snprintf(out->extra, sizeof(out->extra), ", context: %" PRId64, context);
    return CO_OK;
}

co_status init_look_value(char out[INIT_VALUE], const char *path)
{
    init_data data;

    CO_TRY(look_name(&data, path, INIT_CONTEXT));
    init_value(out, &data, "");
    return CO_OK;
}

co_status init_look(init_data *out, const char *path, int64_t size, int64_t context)
{
    co_dataset *train = NULL, *test = NULL;
    co_status st;

    CO_TRY(look_name(out, path, context));
    if (look_is_arrays(out) && size)
        return co_fail(CO_E_USAGE, "--size is of pictures; arrays stay as they are");
    if (!look_is_sequence(out) && !look_is_arrays(out))
        CO_TRY(look_size(out, size));
    CO_TRY(look_open(&train, out, CO_SPLIT_TRAIN));
    st = look_open(&test, out, CO_SPLIT_TEST);
    if (st == CO_OK)
        st = look_measure(out, train, test);
    co_dataset_destroy(test);
    co_dataset_destroy(train);
    return st;
}
