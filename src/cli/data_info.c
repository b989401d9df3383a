/*
 * data_info.c - `cohort data info`: describes a data set.
 *
 * Reads every sample once, to count labels and measure mean and standard deviation per channel.
 * Folders of tokens: data_info_tokens.c.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/data_info.h"
#include "cli/init_look.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/text.h"
#include "data/data.h"
#include "telemetry/format.h"

#define DATA_INFO_MAX_CHANNELS 16

typedef struct data_info_options {
    cli_list set, plugins;
} data_info_options;

static const cli_argument data_info_arguments[] = {
    {"CONFIG|DATA", false, "a config, its data value, '{name: ...}', or data that `init` knows"},
    {NULL, false, NULL},
};

static const cli_option data_info_option_table[] = {
    {"set", 's', CLI_LIST, offsetof(data_info_options, set), "KEY=VALUE", 0, 0,
     "change the config, e.g. data.path=DIR; repeatable"},
    CLI_PLUGIN_OPTION(data_info_options),
    CLI_OPTIONS_END,
};

typedef struct data_info_moments {
    uint64_t samples, bad;
    double sum[DATA_INFO_MAX_CHANNELS], square[DATA_INFO_MAX_CHANNELS];
} data_info_moments;

/* An unreadable sample is an error, or with `on_bad_sample: skip` a printed line. */
static co_status data_info_bad(data_info_moments *m, const co_dataset *data, co_status st)
{
    if (!co_dataset_skips(data, st))
        return st;
    m->bad++;
    printf("  bad sample       %s\n", co_error_message());
    return CO_OK;
}

static void data_info_add(data_info_moments *m, const float *sample, size_t channels, size_t plane)
{
    m->samples++;
    for (size_t c = 0; c < channels; c++)
        for (size_t k = 0; k < plane; k++) {
            double v = sample[c * plane + k];

            m->sum[c] += v;
            m->square[c] += v * v;
        }
}

static co_status data_info_measure(data_info_moments *m, const co_dataset *data)
{
    const co_shape *shape = co_dataset_shape(data);
    const size_t channels = (size_t)shape->dim[0];
    const size_t plane = (size_t)co_shape_count(shape) / channels;
    float *sample = co_calloc(channels * plane, sizeof(*sample));
    co_data_scratch scratch = {0};
    co_status st = sample ? CO_OK : CO_E_NOMEM;

    for (uint64_t i = 0; i < co_dataset_count(data) && st == CO_OK; i++) {
        st = co_dataset_draw(data, sample, i, NULL, &scratch);
        if (st != CO_OK)
            st = data_info_bad(m, data, st);
        else if (channels <= DATA_INFO_MAX_CHANNELS)
            data_info_add(m, sample, channels, plane);
    }
    co_data_scratch_free(&scratch);
    co_free(sample);
    return st;
}

static co_status data_info_print_moments(const co_dataset *data)
{
    const co_shape *shape = co_dataset_shape(data);
    data_info_moments m = {.samples = 0};
    double n;

    CO_TRY(data_info_measure(&m, data));
    if (m.bad)
        printf("  bad samples      %" PRIu64 "\n", m.bad);
    if (m.samples == 0)
        return CO_OK;
    n = (double)m.samples * (double)shape->dim[1] * (double)shape->dim[2];
    printf("  mean, std        ");
    for (int64_t c = 0; c < shape->dim[0]; c++) {
        double mean = m.sum[c] / n, variance = m.square[c] / n - mean * mean;

        printf("%s%.4f, %.4f", c ? " | " : "", mean, sqrt(variance > 0 ? variance : 0));
    }
    printf("  (as the network gets it)\n");
    return CO_OK;
}

static co_status data_info_print_labels(const co_dataset *data)
{
    const int64_t classes = co_dataset_classes(data);
    uint64_t *count = co_calloc((size_t)classes, sizeof(*count));
    co_status st = count ? CO_OK : CO_E_NOMEM;
    char text[32];

    for (uint64_t i = 0; i < co_dataset_count(data) && st == CO_OK; i++) {
        int32_t label;

        st = co_dataset_take_label(&label, data, i);
        if (st == CO_OK)
            count[label]++;
    }
    if (st != CO_OK) {
        co_free(count);
        return st;
    }
    printf("  label            samples\n");
    for (int64_t c = 0; c < classes && c < DATA_INFO_MAX_ROWS; c++) {
        const char *name = co_dataset_class_name(data, (int32_t)c);

        printf("  %5" PRId64 "           %8s%s%s\n", c,
               co_format_count(text, sizeof(text), count[c]), name ? "  " : "",
               name ? CO_SHOW(name) : "");
    }
    if (classes > DATA_INFO_MAX_ROWS)
        printf("  ... and %" PRId64 " more classes\n", classes - DATA_INFO_MAX_ROWS);
    co_free(count);
    return CO_OK;
}

co_status cli_data_info_field(cli_field_moments *out, const co_dataset *data, int k,
                              uint64_t stride)
{
    const size_t n = (size_t)co_shape_count(&co_dataset_fields(data)[k].shape);
    float *value = co_calloc(n, sizeof(*value));
    double sum = 0, square = 0, total = 0, variance;
    co_status st = value ? CO_OK : CO_E_NOMEM;

    *out = (cli_field_moments){.binary = true};
    for (uint64_t i = 0; i < co_dataset_count(data) && st == CO_OK; i += stride) {
        bool bad = false;

        st = co_dataset_read_field(data, value, k, i);
        for (size_t e = 0; e < n && st == CO_OK; e++) {
            const double v = (double)value[e];

            if (!isfinite(v)) {
                bad = true;
                continue;
            }
            total++;
            sum += v;
            square += v * v;
            out->binary = out->binary && (v == 0 || v == 1);
        }
        if (bad && out->bad++ == 0)
            out->first_bad = i;
        out->samples++;
    }
    co_free(value);
    out->mean = sum / fmax(total, 1);
    variance = square / fmax(total, 1) - out->mean * out->mean;
    out->std = sqrt(variance < 0 ? 0 : variance);
    return st;
}

static co_status data_info_print_field(const co_dataset *data, int k)
{
    cli_field_moments m;

    CO_TRY(cli_data_info_field(&m, data, k, 1));
    printf("; mean %.4f, std %.4f", m.mean, m.std);
    if (m.bad) {
        char name[256];

        co_dataset_sample_name(data, name, sizeof(name), m.first_bad);
        printf("; %" PRIu64 " sample%s with NaN or infinity, the first %s", m.bad,
               m.bad == 1 ? "" : "s", CO_SHOW(name));
    }
    return CO_OK;
}

static co_status data_info_print_fields(const co_dataset *data)
{
    const co_field *field = co_dataset_fields(data);
    char shape[64];

    for (int k = 0; k < CO_MAX_FIELDS && field[k].name; k++) {
        printf("  field            %s: %s of %s", CO_SHOW(field[k].name),
               co_shape_format(shape, sizeof(shape), &field[k].shape),
               co_dtype_name(field[k].dtype));
        if (field[k].dtype == CO_F32)
            CO_TRY(data_info_print_field(data, k));
        printf("\n");
    }
    return CO_OK;
}

static void data_info_print_tokens(const co_dataset *data)
{
    const double bytes = co_dataset_bytes_per_token(data);

    printf("  vocabulary       %" PRId64 "\n", co_dataset_classes(data));
    if (bytes > 0)
        printf("  bytes per token  %.4f\n", bytes);
}

static co_status data_info_print(const co_dataset *data, co_split split)
{
    char stored[64], given[64], count[32];

    printf("%s split of %s\n", split == CO_SPLIT_TRAIN ? "training" : "test",
           co_dataset_name(data));
    printf("  samples          %s\n",
           co_format_count(count, sizeof(count), co_dataset_count(data)));
    printf("  shape            %s", co_shape_format(given, sizeof(given), co_dataset_shape(data)));
    if (co_dataset_stored(data)->encoded)
        printf(", stored as image files");
    else if (co_dataset_has_images(data) &&
             !co_shape_equal(co_dataset_shape(data), &co_dataset_stored(data)->shape))
        printf(", stored as %s",
               co_shape_format(stored, sizeof(stored), &co_dataset_stored(data)->shape));
    if (!co_dataset_has_images(data)) {
        printf("\n");
        CO_TRY(data_info_print_fields(data));
        if (co_dataset_fields(data)[0].dtype == CO_I32)
            data_info_print_tokens(data);
        return co_dataset_has_labels(data) ? data_info_print_labels(data) : CO_OK;
    }
    printf("\n  classes          %" PRId64 "\n", co_dataset_classes(data));
    CO_TRY(data_info_print_moments(data));
    return data_info_print_labels(data);
}

static co_status data_info_splits(const co_value *value, co_config *config)
{
    co_dataset *train = NULL, *test = NULL;
    co_status st = co_dataset_open_value(&train, value, config, CO_SPLIT_TRAIN);

    if (st == CO_OK)
        st = data_info_print(train, CO_SPLIT_TRAIN);
    if (st == CO_OK)
        st = co_dataset_open_value(&test, value, config, CO_SPLIT_TEST);
    if (st == CO_OK)
        st = data_info_print(test, CO_SPLIT_TEST);
    if (st == CO_OK)
        st = co_dataset_check_splits(train, test);
    co_dataset_destroy(test);
    co_dataset_destroy(train);
    return st;
}

static co_status data_info_run(const void *options, int n, const char *const *argument)
{
    const data_info_options *o = options;
    const char *given = argument[0];
    char value[INIT_VALUE];
    cli_data source;
    co_status st;

    (void)n;
    if (o->set.n == 0 && cli_data_info_is_tokens(given))
        return cli_data_info_tokens(given);
    if (init_look_is_data(given)) {
        CO_TRY(init_look_value(value, given));
        given = value;
    }
    CO_TRY(cli_data_open(&source, given, &o->set));
    st = data_info_splits(source.value, source.config);
    cli_data_close(&source);
    return st;
}

const co_command co_command_data_info = {
    .name = "data info",
    .summary = "count, shape, labels, mean and standard deviation of a data set",
    .about =
        "Reads both splits to the end, so a damaged file shows here. Mean and standard\n"
        "deviation are those of the network's input, per channel: without `normalize` they "
        "are the\n"
        "numbers to put there, with it they should be close to 0 and 1. Of a folder that\n"
        "`cohort data tokenize` or llm.c's scripts have written it says how many tokens there\n"
        "are, of which width and vocabulary, in which files and splits.",
    .example = "  cohort data info fashion-mnist\n"
               "  cohort data info '{name: mnist, path: data/mnist}'\n"
               "  cohort data info configs/lenet-sync.yaml\n"
               "  cohort data info data/mnist\n"
               "  cohort data info shakespeare",
    .arguments = data_info_arguments,
    .options = data_info_option_table,
    .options_size = sizeof(data_info_options),
    .run = data_info_run,
};
