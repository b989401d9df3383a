/*
 * tensorboard_display.c - histograms, images, the network and the config as TensorBoard reads them:
 * tensorflow/core/framework/{summary,graph,node_def,attr_value}.proto and
 * tensorboard/plugins/hparams/{plugin_data,api}.proto.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/number.h"
#include "telemetry/tensorboard_internal.h"

#define DISPLAY_BUCKETS 64

/* --- histograms --- */

typedef struct display_histogram {
    double min, max, n, sum, squares;
    double limit[DISPLAY_BUCKETS], bucket[DISPLAY_BUCKETS];
} display_histogram;

/* Over the values that are numbers: infinite ones would leave one bucket for all others. */
static void display_count(display_histogram *h, const float *value, size_t n)
{
    double width;

    *h = (display_histogram){.min = INFINITY, .max = -INFINITY};
    for (size_t i = 0; i < n; i++) {
        const double v = (double)value[i];

        if (!isfinite(v))
            continue;
        h->min = fmin(h->min, v);
        h->max = fmax(h->max, v);
        h->n++;
        h->sum += v;
        h->squares += v * v;
    }
    width = h->max > h->min ? (h->max - h->min) / DISPLAY_BUCKETS : 1;
    for (int k = 0; k < DISPLAY_BUCKETS; k++)
        h->limit[k] =
            k + 1 < DISPLAY_BUCKETS ? h->min + (k + 1) * width : fmax(h->max, h->min + width);
    for (size_t i = 0; i < n; i++)
        if (isfinite(value[i]))
            h->bucket[(int)fmin(DISPLAY_BUCKETS - 1, ((double)value[i] - h->min) / width)]++;
}

/* HistogramProto {min = 1, max = 2, num = 3, sum = 4, sum_squares = 5, bucket_limit = 6, bucket =
   7}. */
static co_status display_values(tensorboard *self, const co_display *display)
{
    display_histogram h;

    display_count(&h, display->value, display->n);
    if (h.n == 0)
        return CO_OK;
    board_clear(&self->part);
    board_double(&self->part, 1, h.min);
    board_double(&self->part, 2, h.max);
    board_double(&self->part, 3, h.n);
    board_double(&self->part, 4, h.sum);
    board_double(&self->part, 5, h.squares);
    for (int k = 0; k < DISPLAY_BUCKETS; k++)
        board_double(&self->part, 6, h.limit[k]);
    for (int k = 0; k < DISPLAY_BUCKETS; k++)
        board_double(&self->part, 7, h.bucket[k]);
    board_clear(&self->value);
    board_text(&self->value, 1, display->name);
    board_nest(&self->value, 5, &self->part);
    board_clear(&self->summary);
    board_nest(&self->summary, 1, &self->value);
    return tensorboard_put_summary(self, display->step);
}

/* --- images --- */

/* Image {height = 1, width = 2, colorspace = 3, encoded_image_string = 4}. */
static co_status display_image(tensorboard *self, const co_display *display)
{
    board_clear(&self->part);
    board_int(&self->part, 1, (uint64_t)display->height);
    board_int(&self->part, 2, (uint64_t)display->width);
    board_int(&self->part, 3, (uint64_t)display->channels);
    board_bytes(&self->part, 4, display->png, display->size);
    board_clear(&self->value);
    board_text(&self->value, 1, display->name);
    board_nest(&self->value, 4, &self->part);
    board_clear(&self->summary);
    board_nest(&self->summary, 1, &self->value);
    return tensorboard_put_summary(self, display->step);
}

/* --- the network --- */

/* TensorBoard folds what has a name with "/" into boxes: layer1.0.conv1 is layer1/0/conv1. */
static void display_put_name(board_message *m, unsigned field, const char *name)
{
    char path[256];
    size_t i = 0;

    for (; name[i] && i < sizeof(path) - 1; i++)
        path[i] = name[i] == '.' ? '/' : name[i] == ' ' ? '_' : name[i];
    path[i] = '\0';
    board_text(m, field, path);
}

/* attr = 5: {key = 1: "_output_shapes", value = 2: AttrValue {list = 1: {shape = 7: {dim = 2: {size
   = 1}}}}}, where -1, as a number without sign, is any size: that of a batch. */
static void display_put_shape(board_message *node, const co_display_node *from)
{
    board_message dim = {0}, shape = {0}, list = {0}, value = {0}, attr = {0};

    for (int i = 0; i < from->n_dim; i++) {
        board_clear(&dim);
        board_int(&dim, 1, i == 0 ? UINT64_MAX : (uint64_t)from->dim[i]);
        board_nest(&shape, 2, &dim);
    }
    board_nest(&list, 7, &shape);
    board_nest(&value, 1, &list);
    board_text(&attr, 1, "_output_shapes");
    board_nest(&attr, 2, &value);
    board_nest(node, 5, &attr);
    board_free(&dim);
    board_free(&shape);
    board_free(&list);
    board_free(&value);
    board_free(&attr);
}

/* Event.graph_def = 4: GraphDef {node = 1: NodeDef {name = 1, op = 2, input = 3, attr = 5},
   versions = 4: {producer = 1}}, as bytes. */
static co_status display_network(tensorboard *self, const co_display *display)
{
    board_message *graph = &self->summary, *node = &self->value;

    board_clear(graph);
    for (size_t i = 0; i < display->n; i++) {
        const co_display_node *from = &display->node[i];

        board_clear(node);
        display_put_name(node, 1, from->name);
        board_text(node, 2, from->op ? from->op : "Placeholder");
        for (int k = 0; k < from->n_in; k++)
            display_put_name(node, 3, from->in[k]);
        display_put_shape(node, from);
        board_nest(graph, 1, node);
    }
    board_clear(node);
    board_int(node, 1, 22);
    board_nest(graph, 4, node);
    board_begin(&self->event, display->step);
    board_nest(&self->event, 4, graph);
    return board_record(&self->file, &self->event, &self->record);
}

/* --- the config: what TensorBoard calls hparams --- */

/* google.protobuf.Value {number_value = 2, string_value = 3, bool_value = 4}. */
static void display_put_text(board_message *m, const char *text)
{
    const bool yes = strcmp(text, "true") == 0;
    char *end;
    const double number = co_number_parse(text, &end);

    board_clear(m);
    if (yes || strcmp(text, "false") == 0)
        board_int(m, 4, yes);
    else if (end != text && *end == '\0' && isfinite(number))
        board_double(m, 2, number);
    else
        board_text(m, 3, text);
}

/* Summary {value = 1: {tag = 1, metadata = 9: {plugin_data = 1: {plugin_name = 1, content = 2:
   self->part}}}}. */
static co_status display_put_plugin(tensorboard *self, const char *tag, uint64_t step)
{
    board_message data = {0};

    board_text(&data, 1, "hparams");
    board_nest(&data, 2, &self->part);
    board_clear(&self->inner);
    board_nest(&self->inner, 1, &data);
    board_free(&data);
    board_clear(&self->value);
    board_text(&self->value, 1, tag);
    board_nest(&self->value, 9, &self->inner);
    board_clear(&self->summary);
    board_nest(&self->summary, 1, &self->value);
    return tensorboard_put_summary(self, step);
}

/* HParamsPluginData {session_start_info = 3: {hparams = 1: {key = 1, value = 2}}}. */
static co_status display_config(tensorboard *self, const co_display *display)
{
    board_message info = {0};

    for (size_t i = 0; i < display->n; i++) {
        display_put_text(&self->inner, display->key[i].text);
        board_clear(&self->value);
        board_text(&self->value, 1, display->key[i].name);
        board_nest(&self->value, 2, &self->inner);
        board_nest(&info, 1, &self->value);
    }
    board_clear(&self->part);
    board_nest(&self->part, 3, &info);
    board_free(&info);
    return display_put_plugin(self, "_hparams_/session_start_info", display->step);
}

co_status tensorboard_show(co_sink *sink, const co_display *display)
{
    tensorboard *self = (tensorboard *)sink;

    switch (display->kind) {
    case CO_DISPLAY_VALUES:
        return display_values(self, display);
    case CO_DISPLAY_IMAGE:
        return display_image(self, display);
    case CO_DISPLAY_NETWORK:
        return display_network(self, display);
    case CO_DISPLAY_CONFIG:
        return display_config(self, display);
    }
    return CO_OK;
}
