/* report_eval.c - confusion matrix, worst samples, layers and tensors of a run, for `cohort
 * report`. */
#include "cli/report_eval.h"

#include <math.h>
#include <string.h>

#include "cli/source.h"
#include "core/mem.h"
#include "core/text.h"
#include "image/encode.h"
#include "train/logits.h"

#define REPORT_THUMB   112 /* pixels of the longer side of a thumbnail, at most */
#define REPORT_QUALITY 90
#define REPORT_CLASSES 256 /* of which the page has the confusion matrix */

/* A sample of the test split. */
typedef struct report_sample {
    uint64_t sample;
    int32_t label, predicted;
    double loss, probability;
} report_sample;

static int report_put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value);
}

static json_t *report_confusion(const co_confusion *confusion)
{
    json_t *rows = json_array();

    for (int64_t i = 0; i < confusion->classes; i++) {
        json_t *row = json_array();

        for (int64_t k = 0; k < confusion->classes; k++)
            (void)json_array_append_new(row,
                                        json_integer(confusion->count[i * confusion->classes + k]));
        (void)json_array_append_new(rows, row);
    }
    return rows;
}

/* The caller frees it. */
static char *report_base64(const co_bytes *bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = co_calloc(bytes->n / 3 + 1, 4 + 1), *at = out;

    for (size_t i = 0; out && i < bytes->n; i += 3) {
        const size_t left = bytes->n - i;
        const unsigned bits = (unsigned)bytes->at[i] << 16 |
                              (left > 1 ? (unsigned)bytes->at[i + 1] << 8 : 0) |
                              (left > 2 ? (unsigned)bytes->at[i + 2] : 0);

        *at++ = digits[bits >> 18];
        *at++ = digits[bits >> 12 & 63];
        *at++ = left > 1 ? digits[bits >> 6 & 63] : '=';
        *at++ = left > 2 ? digits[bits & 63] : '=';
    }
    return out;
}

/* A stored image as planes of at most REPORT_THUMB pixels a side, in `buffer`. */
static co_status report_decode(co_shape *shape, co_buffer *buffer, const co_bytes *file,
                               int64_t channels)
{
    co_image_scratch *scratch = NULL;
    co_image_want want = {.channels = channels};
    co_image_info info;
    uint8_t *pixels;
    double longer;
    co_status st;

    CO_TRY(co_image_probe(&info, file->at, file->n, "sample"));
    longer = info.width > info.height ? info.width : info.height;
    if (longer < REPORT_THUMB)
        longer = REPORT_THUMB;
    want.box = (co_image_box){0, 0, info.width, info.height};
    want.width = (int64_t)fmax(1, info.width * REPORT_THUMB / longer);
    want.height = (int64_t)fmax(1, info.height * REPORT_THUMB / longer);
    *shape = (co_shape){3, {channels, want.height, want.width}};
    CO_TRY(co_buffer_reserve(&pixels, buffer, (size_t)co_shape_count(shape)));
    CO_TRY(co_image_scratch_create(&scratch));
    st = co_image_decode(pixels, &want, scratch, file->at, file->n, "sample");
    co_image_scratch_destroy(scratch);
    return st;
}

/* A JPEG as text; *out stays NULL where the sample is no picture. */
static co_status report_thumb(char **out, const co_dataset *data, uint64_t sample)
{
    const co_dataset_info *info = co_dataset_stored(data);
    co_buffer stored = {0}, pixels = {0}, packed = {0};
    co_shape shape = info->shape;
    co_bytes bytes;
    co_status st = co_dataset_stored_sample(&bytes, data, &stored, sample);

    if (st == CO_OK && info->encoded) {
        st = report_decode(&shape, &pixels, &bytes, info->shape.dim[0]);
        bytes = (co_bytes){pixels.at, pixels.size};
    }
    if (st == CO_OK && (shape.dim[0] == 1 || shape.dim[0] == 3)) {
        st = co_image_encode_jpeg(&bytes, &packed, bytes.at, &shape, REPORT_QUALITY);
        if (st == CO_OK)
            *out = report_base64(&bytes);
    }
    co_buffer_free(&stored);
    co_buffer_free(&pixels);
    co_buffer_free(&packed);
    return st == CO_E_NOMEM ? st : CO_OK;
}

static report_sample report_judge(const float *logit, int64_t classes, uint64_t sample,
                                  int32_t label)
{
    report_sample s = {.sample = sample, .label = label};
    double sum = 0;

    for (int64_t c = 1; c < classes; c++)
        if (logit[c] > logit[s.predicted])
            s.predicted = (int32_t)c;
    for (int64_t c = 0; c < classes; c++)
        sum += exp((double)logit[c] - (double)logit[s.predicted]);
    s.probability = 1 / sum;
    s.loss = log(sum) + (double)logit[s.predicted] - (double)logit[label];
    return s;
}

/* The `most` samples with the highest loss, that first; their number. */
static co_status report_find_worst(report_sample *worst, size_t *n, size_t most,
                                   const co_logits *logits, const co_dataset *data)
{
    *n = 0;
    for (uint64_t i = 0; i < logits->samples; i++) {
        report_sample s;
        int32_t label;
        size_t at;

        CO_TRY(co_dataset_take_label(&label, data, i));
        s = report_judge(logits->value + i * (uint64_t)logits->classes, logits->classes, i, label);
        if (isnan(s.loss) || (*n == most && s.loss <= worst[most - 1].loss))
            continue;
        at = *n < most ? (*n)++ : most - 1;
        for (; at > 0 && worst[at - 1].loss < s.loss; at--)
            worst[at] = worst[at - 1];
        worst[at] = s;
    }
    return CO_OK;
}

static co_status report_put_worst(json_t *list, const report_sample *s, const co_dataset *data)
{
    char *image = NULL;
    int bad;

    CO_TRY(report_thumb(&image, data, s->sample));
    bad = json_array_append_new(list, json_pack("{s:I, s:i, s:i, s:f, s:f, s:s?}", "sample",
                                                (json_int_t)s->sample, "label", (int)s->label,
                                                "predicted", (int)s->predicted, "loss", s->loss,
                                                "probability", s->probability, "image", image));
    co_free(image);
    return bad ? co_fail(CO_E_NOMEM, "out of memory") : CO_OK;
}

static co_status report_worst(json_t *evaluation, size_t most, const co_logits *logits,
                              const co_train_options *options)
{
    report_sample *worst = co_calloc(most, sizeof(*worst));
    json_t *list = json_array();
    co_dataset *data = NULL;
    size_t n = 0;
    co_spec spec;
    co_status st = worst && list ? co_spec_load(&spec, options) : CO_E_NOMEM;

    if (st == CO_OK) {
        st = co_dataset_open_value(&data, spec.data, spec.config, CO_SPLIT_TEST);
        if (st == CO_OK && co_dataset_has_images(data))
            st = report_find_worst(worst, &n, most, logits, data);
        for (size_t i = 0; i < n && st == CO_OK; i++)
            st = report_put_worst(list, &worst[i], data);
        co_dataset_destroy(data);
        co_spec_unload(&spec);
    }
    co_free(worst);
    if (report_put(evaluation, "worst", list) != 0 && st == CO_OK)
        st = co_fail(CO_E_NOMEM, "out of memory");
    return st;
}

static co_status report_tensors(json_t *run, const char *weights)
{
    co_safetensors *file = NULL;
    json_t *list;

    CO_TRY(co_safetensors_open(&file, weights));
    list = json_array();
    for (size_t i = 0; i < co_safetensors_count(file); i++) {
        const co_named_tensor *t = co_safetensors_tensor(file, i);

        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:I}", "name", CO_SHOW(t->name), "elements",
                                              (json_int_t)co_shape_count(&t->shape)));
    }
    co_safetensors_close(file);
    return report_put(run, "tensors", list) ? co_fail(CO_E_NOMEM, "out of memory") : CO_OK;
}

static json_t *report_shape(const co_shape *shape)
{
    json_t *list = json_array();

    for (int i = 0; i < shape->ndim; i++)
        (void)json_array_append_new(list, json_integer((json_int_t)shape->dim[i]));
    return list;
}

/* The network's nodes in their order, with the shapes for one sample. */
static co_status report_graph(json_t *run, const char *weights, const co_train_options *options)
{
    json_t *list;
    cli_network net;

    CO_TRY(cli_source_open(&net, options, weights, NULL));
    list = json_array();
    for (int i = 0; i < net.model->graph->n_node; i++) {
        const co_node *node = &net.model->graph->node[i];
        const co_var *var = &net.model->graph->var[node->out[0]];

        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:s, s:o}", "name", CO_SHOW(node->name), "op",
                                              node->op->name, "shape", report_shape(&var->shape)));
    }
    cli_network_close(&net);
    return report_put(run, "graph", list) ? co_fail(CO_E_NOMEM, "out of memory") : CO_OK;
}

static co_status report_evaluate(json_t *evaluation, const char *weights, size_t samples,
                                 const co_train_options *options)
{
    co_confusion confusion = {.count = NULL};
    co_eval_summary summary;
    co_logits logits;
    co_status st = co_evaluate_logits(&summary, &confusion, &logits, options, weights);

    if (st == CO_OK && confusion.classes > 1 && confusion.classes <= REPORT_CLASSES)
        (void)report_put(evaluation, "confusion", report_confusion(&confusion));
    if (st == CO_OK)
        st = report_worst(evaluation, samples, &logits, options);
    co_confusion_free(&confusion);
    co_logits_free(&logits);
    return st;
}

static bool report_is_final(co_status st)
{
    return st == CO_E_NOMEM || st == CO_E_INTERRUPTED || st == CO_E_TERMINATED;
}

co_status cli_report_measure(json_t *run, const char *dir, size_t samples, const cli_list *set)
{
    co_train_options options = {.set = set->text, .ranks = 1, .quiet = true};
    json_t *evaluation = json_object();
    cli_source source;
    co_status st = cli_source_find(&source, dir, NULL, NULL);

    if (st == CO_OK) {
        options.config_path = source.config;
        st = report_tensors(run, source.weights);
    }
    if (st == CO_OK) {
        const co_status graph = report_graph(run, source.weights, &options);

        st = report_is_final(graph) ? graph : CO_OK; /* layers are then shown by their tensors */
    }
    if (st == CO_OK && samples)
        st = report_evaluate(evaluation, source.weights, samples, &options);
    if (st != CO_OK && !report_is_final(st))
        (void)report_put(evaluation, "missing", json_string(CO_SHOW(co_error_message())));
    if (report_put(run, "evaluation", evaluation) != 0)
        return co_fail(CO_E_NOMEM, "out of memory");
    return report_is_final(st) ? st : CO_OK;
}
