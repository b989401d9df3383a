/* predict.c - `cohort predict`: the classes that a trained network sees in images. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "cli/image_list.h"
#include "cli/source.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/text.h"
#include "core/utf8.h"
#include "train/logits.h"
#include "train/run_data.h"

#define PREDICT_NUMBER 16 /* characters of the number of a class without a name */
#define PREDICT_COLUMN                                                                             \
    48 /* characters of a name of a file, and a class, before its column widens */

typedef struct predict_options {
    const char *config, *checkpoint;
    int64_t top;
    cli_list set, plugins;
    bool json, quick;
} predict_options;

static const predict_options predict_defaults = {.top = 1};

static const cli_argument predict_arguments[] = {
    {"RUN_DIR|FILE", false, "a run directory, a checkpoint's folder, or a .safetensors file"},
    {"IMAGE...", false, "JPEG and PNG files, folders of them, or -: names on standard input"},
    {NULL, false, NULL},
};

static const cli_option predict_option_table[] = {
    {"top", 0, CLI_COUNT, offsetof(predict_options, top), "K", 1, 1 << 20,
     "the K likeliest classes of each image; default: 1"},
    {"json", 0, CLI_FLAG, offsetof(predict_options, json), NULL, 0, 0,
     "print a JSON object per image and line instead of a table"},
    {"quick", 0, CLI_FLAG, offsetof(predict_options, quick), NULL, 0, 0,
     "do not fill up eval's batch: sooner for few images, other last bits"},
    {"checkpoint", 'k', CLI_TEXT, offsetof(predict_options, checkpoint), "WHICH", 0, 0,
     "of a run directory: best, latest or a step; default: the final weights"},
    {"config", 'c', CLI_TEXT, offsetof(predict_options, config), "CONFIG", 0, 0,
     "model and data; default: config.yaml beside the weights"},
    {"set", 's', CLI_LIST, offsetof(predict_options, set), "KEY=VALUE", 0, 0,
     "change the config, e.g. data.resize=256; repeatable"},
    CLI_PLUGIN_OPTION(predict_options),
    CLI_OPTIONS_END,
};

/* A class of an image. */
typedef struct predict_class {
    float logit;
    int32_t label;
} predict_class;

/* What is printed: the images, their logits, the names of classes. */
typedef struct predict_result {
    const cli_images *images;
    const co_run_data *data;
    co_logits logits;
    predict_class *order; /* owned: (classes) of the image under way */
    double scale, sum;    /* of its probabilities: exp(logit - scale) / sum */
    size_t top;
    size_t odd; /* images without probabilities */
    const char *first_odd;
    int name_width, class_width;
} predict_result;

/* data.json beside the config, or what the config's data themselves say. */
static co_status predict_data(co_run_data *out, const cli_source *source,
                              const co_train_options *options)
{
    const char *slash = strrchr(source->config, '/');
    char path[SOURCE_MAX_PATH + sizeof(CO_RUN_DATA_NAME)];
    co_dataset *data;
    co_spec spec;
    co_status st;

    snprintf(path, sizeof(path), "%.*s" CO_RUN_DATA_NAME,
             slash ? (int)(slash - source->config) + 1 : 0, source->config);
    if (co_fs_exists(path))
        return co_run_data_read(out, path);
    CO_TRY(co_spec_load(&spec, options));
    st = co_dataset_open_value(&data, spec.data, spec.config, CO_SPLIT_TEST);
    if (st == CO_OK) {
        st = co_run_data_of(out, data);
        co_dataset_destroy(data);
    }
    co_spec_unload(&spec);
    return st;
}

/* The larger logit first, of equal ones the lower class, NaN last: as accuracy counts. */
static int predict_compare(const void *a, const void *b)
{
    const predict_class *x = a, *y = b;

    if (isnan(x->logit) != isnan(y->logit))
        return isnan(x->logit) ? 1 : -1;
    if (x->logit > y->logit || x->logit < y->logit)
        return x->logit > y->logit ? -1 : 1;
    return x->label < y->label ? -1 : x->label > y->label;
}

/* Sort the classes of an image. False: its logits overflow, so that it has no probabilities. */
static bool predict_sort(predict_result *r, size_t image)
{
    const size_t classes = (size_t)r->logits.classes;
    const float *logit = r->logits.value + image * classes;

    for (size_t c = 0; c < classes; c++)
        r->order[c] = (predict_class){logit[c], (int32_t)c};
    qsort(r->order, classes, sizeof(*r->order), predict_compare);
    r->scale = (double)r->order[0].logit;
    r->sum = 0;
    for (size_t c = 0; c < classes; c++)
        r->sum += exp((double)logit[c] - r->scale);
    if (isfinite(r->sum))
        return true;
    if (r->odd++ == 0)
        r->first_odd = r->images->path[image];
    return false;
}

static double predict_probability(const predict_result *r, size_t k)
{
    return exp((double)r->order[k].logit - r->scale) / r->sum;
}

/* The name of a class, or its number. */
static const char *predict_name(char out[PREDICT_NUMBER], const predict_result *r, int32_t label)
{
    const char *name = label < r->data->classes ? r->data->name[label] : NULL;

    if (name)
        return name;
    snprintf(out, PREDICT_NUMBER, "%" PRId32, label);
    return out;
}

static void predict_put(const char *text, int width)
{
    cli_print_cell(text, width);
    fputs("  ", stdout);
}

static int predict_widest(int width, const char *text)
{
    const size_t n = co_utf8_count(text);

    return n > PREDICT_COLUMN ? PREDICT_COLUMN : (int)n > width ? (int)n : width;
}

static void predict_measure(predict_result *r)
{
    char name[PREDICT_NUMBER];

    r->name_width = (int)sizeof("image") - 1;
    r->class_width = (int)sizeof("class") - 1;
    for (size_t i = 0; i < r->images->n; i++)
        r->name_width = predict_widest(r->name_width, CO_SHOW(r->images->path[i]));
    for (int32_t c = 0; c < r->logits.classes; c++)
        r->class_width = predict_widest(r->class_width, CO_SHOW(predict_name(name, r, c)));
}

static void predict_print_rows(const predict_result *r, size_t image, bool known)
{
    char name[PREDICT_NUMBER];

    if (!known) {
        predict_put(CO_SHOW(r->images->path[image]), r->name_width);
        predict_put("-", r->class_width);
        puts("-");
    }
    for (size_t k = 0; known && k < r->top; k++) {
        predict_put(k ? "" : CO_SHOW(r->images->path[image]), r->name_width);
        predict_put(CO_SHOW(predict_name(name, r, r->order[k].label)), r->class_width);
        printf("%.4f\n", predict_probability(r, k));
    }
}

static json_t *predict_class_json(const predict_result *r, size_t k)
{
    char name[PREDICT_NUMBER];
    const int32_t label = r->order[k].label;

    return json_pack(
        "{s:i, s:s, s:f, s:o}", "label", (int)label, "class", CO_UTF8(predict_name(name, r, label)),
        "probability", predict_probability(r, k), "logit",
        isfinite(r->order[k].logit) ? json_real((double)r->order[k].logit) : json_null());
}

static co_status predict_print_json(const predict_result *r, size_t image, bool known)
{
    json_t *top = json_array();
    json_t *object = json_pack("{s:s, s:o}", "image", CO_UTF8(r->images->path[image]), "top", top);
    int bad = !object;
    char *text;

    for (size_t k = 0; known && k < r->top && !bad; k++)
        bad = json_array_append_new(top, predict_class_json(r, k));
    text = bad ? NULL : json_dumps(object, CLI_JSON_STYLE);
    json_decref(object);
    if (!text)
        return co_fail(CO_E_NOMEM, "out of memory");
    puts(text);
    free(text);
    return CO_OK;
}

static co_status predict_print(predict_result *r, bool json)
{
    if (!json) {
        predict_measure(r);
        printf("%-*s  %-*s  probability\n", r->name_width, "image", r->class_width, "class");
    }
    for (size_t i = 0; i < r->images->n; i++) {
        const bool known = predict_sort(r, i);

        if (json)
            CO_TRY(predict_print_json(r, i, known));
        else
            predict_print_rows(r, i, known);
    }
    if (!r->odd)
        return CO_OK;
    return co_fail(CO_E_DATA,
                   "%s%s: what the network gives overflows; take weights from before training "
                   "diverged, e.g. with --checkpoint, or compute in fp32: --set precision=fp32",
                   r->first_odd, r->odd > 1 ? " and others" : "");
}

static co_status predict_images(const predict_options *o, const co_train_options *run,
                                const cli_source *source, const cli_images *images)
{
    co_run_data data = {.classes = 0};
    predict_result r = {.images = images, .data = &data};
    co_image_files files;
    co_status st;

    CO_TRY(predict_data(&data, source, run));
    files = (co_image_files){.path = (const char *const *)images->path,
                             .n = images->n,
                             .encoded = data.encoded,
                             .stored = data.stored,
                             .sample = data.sample,
                             .classes = data.classes};
    st = co_predict_images(&r.logits, &files, !o->quick, run, source->weights);
    if (st == CO_OK) {
        r.top = (size_t)(o->top < r.logits.classes ? o->top : r.logits.classes);
        r.order = co_calloc((size_t)r.logits.classes, sizeof(*r.order));
        st = r.order ? predict_print(&r, o->json) : CO_E_NOMEM;
    }
    co_free(r.order);
    co_logits_free(&r.logits);
    co_run_data_free(&data);
    return st;
}

static co_status predict_run(const void *options, int n, const char *const *argument)
{
    const predict_options *o = options;
    co_train_options run = {.set = o->set.text, .ranks = 1, .quiet = true};
    cli_images images = {0};
    cli_source source;
    co_status st;

    CO_TRY(cli_source_find(&source, argument[0], o->checkpoint, o->config));
    run.config_path = source.config;
    st = CO_OK;
    for (int i = 1; i < n && st == CO_OK; i++)
        st = cli_images_add(&images, argument[i]);
    if (st == CO_OK && images.n == 0)
        st = co_fail(CO_E_USAGE, "standard input: no names of images");
    if (st == CO_OK)
        st = predict_images(o, &run, &source, &images);
    cli_images_free(&images);
    return st;
}

const co_command co_command_predict = {
    .name = "predict",
    .summary = "name the classes that a trained network sees in images",
    .about =
        "Images are read, resized and normalised as the test split of the run's config is, and\n"
        "computed as by `cohort eval`. A folder means the images in it and below it, sorted; -\n"
        "takes names of files and folders from standard input, one per line. The data that the\n"
        "run was trained on need not be there: what its samples are like, and the names of its\n"
        "classes, are in data.json of the run directory. Of sets of one size, such as MNIST,\n"
        "images of other sizes are resampled, the middle of them where the shape differs.\n"
        "Kernels depend on the size of a batch, so a few images are computed in one as large as\n"
        "an evaluation's, and have the logits that it has, to the bit; --quick does not.",
    .example = "  cohort predict runs/first cat.jpg dog.png --top 3\n"
               "  cohort predict runs/first photos --json > photos.jsonl\n"
               "  find . -name '*.png' | cohort predict runs/first --checkpoint best -",
    .arguments = predict_arguments,
    .options = predict_option_table,
    .options_size = sizeof(predict_options),
    .defaults = &predict_defaults,
    .run = predict_run,
};
