/*
 * export.c - `cohort export`: writes a trained network as a file for other programs.
 *
 * Collects the metadata; src/export writes the formats.
 */
#include <inttypes.h>
#include <string.h>

#include <cohort/version.h>

#include "cli/source.h"
#include "core/arena.h"
#include "core/mem.h"
#include "core/text.h"
#include "export/export.h"
#include "image/normalize.h"

typedef struct export_options {
    const char *config, *checkpoint, *shape;
    cli_list set, plugins;
} export_options;

static const cli_argument export_arguments[] = {
    {"RUN_DIR|FILE", false, "a run directory, a checkpoint's folder, or a .safetensors file"},
    {"DST", false, "file to write: NAME.onnx or NAME.safetensors"},
    {NULL, false, NULL},
};

static const cli_option export_option_table[] = {
    {"checkpoint", 'k', CLI_TEXT, offsetof(export_options, checkpoint), "WHICH", 0, 0,
     "of a run directory: best, latest or a step; default: the final weights"},
    {"config", 'c', CLI_TEXT, offsetof(export_options, config), "CONFIG", 0, 0,
     "the network's; default: config.yaml beside the weights"},
    {"shape", 0, CLI_TEXT, offsetof(export_options, shape), "C,H,W", 0, 0,
     "of a sample, or T of a sequence; default: that of training"},
    {"set", 's', CLI_LIST, offsetof(export_options, set), "KEY=VALUE", 0, 0,
     "change the config; repeatable"},
    CLI_PLUGIN_OPTION(export_options),
    CLI_OPTIONS_END,
};

typedef co_status (*export_write)(const char *path, const co_export *export);

static co_status export_choose(export_write *out, const char *path)
{
    static const struct {
        const char *suffix;
        export_write write;
    } formats[] = {{".onnx", co_export_onnx}, {".safetensors", co_export_torch}};
    const size_t n = strlen(path);

    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        const size_t k = strlen(formats[i].suffix);

        *out = formats[i].write;
        if (n > k && strcmp(path + n - k, formats[i].suffix) == 0)
            return CO_OK;
    }
    return co_fail(CO_E_USAGE, "%s: the name says the format: NAME.onnx or NAME.safetensors", path);
}

#define EXPORT_MAX_METADATA 16        /* keys */
#define EXPORT_OURS         "cohort." /* prefix of all keys but `format` */
#define EXPORT_SIZES        80        /* bytes of "3,32,32" */

typedef struct export_metadata {
    co_arena *arena; /* borrowed */
    size_t n;
    const char *text[2 * EXPORT_MAX_METADATA + 1]; /* key, value, ..., NULL */
    bool shaped;                                   /* by --shape, not as in training */
    bool failed;                                   /* out of memory */
} export_metadata;

static void export_say(export_metadata *m, const char *key, const char *value)
{
    if (!value)
        m->failed = true;
    m->text[2 * m->n] = key;
    m->text[2 * m->n++ + 1] = value;
}

/* "0.485,0.456,0.406" */
static void export_say_numbers(export_metadata *m, const char *key, const co_reals *numbers)
{
    const char *text = "";

    for (size_t i = 0; text && i < numbers->n; i++)
        text = co_arena_printf(m->arena, "%s%s%.9g", text, i ? "," : "", numbers->v[i]);
    export_say(m, key, text);
}

/* Metadata on how to turn a sample into the network's input. Resizing and cropping give the shape
   of training, so they are not said of another. */
static co_status export_say_input(export_metadata *m, const cli_network *net)
{
    static const char *const steps[] = {"resize", "center_crop"};
    static const char *const keys[] = {EXPORT_OURS "resize", EXPORT_OURS "center_crop"};
    const co_spec *spec = &net->spec;
    co_normalize normalize;

    if (net->sample.ndim != 3) { /* no image */
        const co_graph *graph = net->model->graph;
        const int input = co_graph_find_input(graph, CO_FIELD_INPUT);
        char sizes[EXPORT_SIZES];

        co_model_format_sizes(sizes, sizeof(sizes), &net->sample);
        export_say(m, EXPORT_OURS "input",
                   co_arena_printf(m->arena, "(batch,%s) of %s", sizes,
                                   graph->var[input].dtype == CO_I32 ? "int32" : "float32"));
        return CO_OK;
    }
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]) && !m->shaped; i++) {
        const char *text = NULL;

        CO_TRY(co_spec_text(&text, spec, co_value_get(spec->data, steps[i])));
        if (text && strcmp(text, "~") != 0 && strcmp(text, "null") != 0)
            export_say(m, keys[i], text);
    }
    CO_TRY(co_normalize_read(&normalize, co_value_get(spec->data, "normalize"), spec->config));
    export_say(m, EXPORT_OURS "input",
               "(batch, C, H, W) of float32: (bytes / 255 - mean) / std per channel");
    export_say_numbers(m, EXPORT_OURS "mean", &normalize.mean);
    export_say_numbers(m, EXPORT_OURS "std", &normalize.std);
    return CO_OK;
}

static bool export_ends_in_log_softmax(const co_graph *graph)
{
    const int last = graph->var[graph->output].producer;

    return last >= 0 && strcmp(graph->node[last].op->name, "log_softmax") == 0;
}

static co_status export_describe(export_metadata *m, const cli_network *net, const char *weights)
{
    const co_spec *spec = &net->spec;
    const co_model *model = net->model;
    const co_shape *sample = &net->sample;
    co_named_tensor *tensors;
    const char *text;
    char sha256[65], sizes[EXPORT_SIZES];
    size_t n;

    CO_TRY(co_model_tensors(&tensors, &n, model));
    co_safetensors_sha256(sha256, tensors, n);
    co_free(tensors);
    CO_TRY(co_spec_text(&text, spec, spec->model ? spec->model : spec->layers));
    export_say(m, "format", "pt");
    export_say(m, EXPORT_OURS "version", co_version());
    export_say(m, EXPORT_OURS "model", text);
    co_model_format_sizes(sizes, sizeof(sizes), sample);
    export_say(m, CO_MODEL_SAMPLE_KEY, co_arena_strdup(m->arena, sizes));
    export_say(m, CO_MODEL_CLASSES_KEY, co_arena_printf(m->arena, "%" PRId64, model->classes));
    CO_TRY(export_say_input(m, net));
    export_say(m, EXPORT_OURS "output",
               export_ends_in_log_softmax(model->graph) ? "log-probabilities" : "logits");
    export_say(m, EXPORT_OURS "weights", weights);
    export_say(m, EXPORT_OURS "weights_sha256", co_arena_strdup(m->arena, sha256));
    return m->failed ? CO_E_NOMEM : CO_OK;
}

static co_status export_network(const cli_network *net, const char *path, const char *weights,
                                const export_options *o, export_write write)
{
    export_metadata metadata = {.arena = co_config_arena(net->spec.config),
                                .shaped = o->shape != NULL};
    const co_export export = {.graph = net->model->graph,
                              .store = net->model->store,
                              .name = co_spec_model_name(&net->spec),
                              .metadata = metadata.text};

    CO_TRY(export_describe(&metadata, net, weights));
    CO_TRY(write(path, &export));
    for (size_t i = 0; i < metadata.n; i++)
        if (strncmp(metadata.text[2 * i], EXPORT_OURS, strlen(EXPORT_OURS)) == 0)
            printf("%-14s  %s\n", metadata.text[2 * i] + strlen(EXPORT_OURS),
                   CO_SHOW(metadata.text[2 * i + 1]));
    printf("written         %s\n", CO_SHOW(path));
    return CO_OK;
}

static co_status export_run(const void *options, int n, const char *const *argument)
{
    const export_options *o = options;
    co_train_options run = {.set = o->set.text};
    export_write write;
    cli_source source;
    cli_network net;
    co_status st;

    (void)n;
    CO_TRY(export_choose(&write, argument[1]));
    CO_TRY(cli_source_find(&source, argument[0], o->checkpoint, o->config));
    run.config_path = source.config;
    CO_TRY(cli_check_output(argument[1], write == co_export_onnx ? CLI_ONNX : CLI_SAFETENSORS,
                            (const char *const[]){source.weights, source.config, NULL}));
    CO_TRY(cli_source_open(&net, &run, source.weights, o->shape));
    st = export_network(&net, argument[1], source.weights, o, write);
    cli_network_close(&net);
    return st;
}

const co_command co_command_export = {
    .name = "export",
    .summary = "write a trained network for other programs: ONNX, or safetensors for PyTorch",
    .about =
        "NAME.onnx is the network for inference (opset 13): input `input` (batch, C, H, W) and\n"
        "output `output` (batch, classes) with any batch, parameters under their names, batch "
        "norm\n"
        "by its running statistics, without dropout and loss. NAME.safetensors is for\n"
        "load_state_dict(strict=True): as final.safetensors, and num_batches_tracked for each "
        "batch\n"
        "norm. Both say in their metadata what the model is, how its input is normalised, what "
        "its\n"
        "output is and which weights these are.",
    .example =
        "  cohort export runs/first model.onnx\n"
        "  cohort export runs/first resnet18.safetensors\n"
        "  cohort export resnet18.safetensors r18.onnx --config configs/resnet18-cifar10.yaml",
    .arguments = export_arguments,
    .options = export_option_table,
    .options_size = sizeof(export_options),
    .run = export_run,
};
