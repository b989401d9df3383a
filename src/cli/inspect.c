/*
 * inspect.c - `cohort inspect`: prints what is in a weights file, or which network a config makes.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include <cohort/safetensors.h>

#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "cli/cli.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/plural.h"
#include "core/text.h"
#include "core/utf8.h"
#include "optim/optim.h"
#include "telemetry/format.h"

#define INSPECT_LAYER 20 /* characters of a layer's name before its column widens */

typedef struct inspect_options {
    int64_t ranks;
    cli_list set, plugins;
} inspect_options;

static const cli_argument inspect_arguments[] = {
    {"FILE|DIR", false, "a .safetensors file, a config, a run directory or a checkpoint's folder"},
    {NULL, false, NULL},
};

static const cli_option inspect_option_table[] = {
    {"ranks", 'n', CLI_COUNT, offsetof(inspect_options, ranks), "N", 1, 1024,
     "config: ranks that share a batch; default: the config's"},
    {"set", 's', CLI_LIST, offsetof(inspect_options, set), "KEY=VALUE", 0, 0,
     "config: change it, e.g. batch=256; repeatable"},
    CLI_PLUGIN_OPTION(inspect_options),
    CLI_OPTIONS_END,
};

/* ---- weights ---- */

/* Moments of the finite elements; `odd` counts NaN and infinities. */
typedef struct inspect_moments {
    double min, max, mean, std;
    uint64_t n, odd;
} inspect_moments;

static double inspect_element(const co_named_tensor *t, size_t i)
{
    const uint8_t *at = (const uint8_t *)t->data + i * co_dtype_size(t->dtype);
    union {
        float f32;
        double f64;
        int32_t i32;
        int64_t i64;
    } v;

    /* data in the file may be unaligned */
    memcpy(&v, at, co_dtype_size(t->dtype));
    switch (t->dtype) {
    case CO_F32:
        return (double)v.f32;
    case CO_F64:
        return v.f64;
    case CO_I32:
        return v.i32;
    case CO_I64:
        return (double)v.i64;
    default:
        return *at;
    }
}

/* Welford's algorithm, so that a large mean costs the standard deviation no precision. */
static inspect_moments inspect_measure(const co_named_tensor *t)
{
    const size_t n = t->bytes / co_dtype_size(t->dtype);
    inspect_moments m = {.min = INFINITY, .max = -INFINITY};
    double squares = 0;

    for (size_t i = 0; i < n; i++) {
        const double v = inspect_element(t, i), delta = v - m.mean;

        if (!isfinite(v)) {
            m.odd++;
            continue;
        }
        m.n++;
        m.mean += delta / (double)m.n;
        squares += delta * (v - m.mean);
        m.min = v < m.min ? v : m.min;
        m.max = v > m.max ? v : m.max;
    }
    m.std = m.n ? sqrt(squares / (double)m.n) : 0;
    return m;
}

static void inspect_print_tensor(const co_named_tensor *t, const char *stored, int width)
{
    const inspect_moments m = inspect_measure(t);
    char shape[64], count[32], odd[32];

    printf("%-*s  %-4s %-18s %12s", width, CO_SHOW(t->name), stored,
           co_shape_format(shape, sizeof(shape), &t->shape),
           co_format_count(count, sizeof(count), (uint64_t)co_shape_count(&t->shape)));
    if (m.n)
        printf(" %11.4g %11.4g %11.4g %11.4g", m.mean, m.std, m.min, m.max);
    if (m.odd)
        printf("  %s not finite", co_format_count(odd, sizeof(odd), m.odd));
    putchar('\n');
}

static void inspect_print_metadata(const co_safetensors *file)
{
    const char *key, *value;

    for (size_t i = 0; co_safetensors_metadata_at(file, i, &key, &value); i++)
        printf("metadata   %s: %s\n", CO_SHOW(key), CO_SHOW(value));
}

static co_status inspect_print_weights(const co_safetensors *file, const char *path)
{
    const size_t n = co_safetensors_count(file);
    co_named_tensor *tensors = co_calloc(n ? n : 1, sizeof(*tensors));
    uint64_t elements = 0, bytes = 0;
    char sha256[65], text[32];
    int width = 6;

    if (!tensors)
        return CO_E_NOMEM;
    for (size_t i = 0; i < n; i++) {
        tensors[i] = *co_safetensors_tensor(file, i);
        elements += (uint64_t)co_shape_count(&tensors[i].shape);
        bytes += tensors[i].bytes;
        if ((int)strlen(tensors[i].name) > width)
            width = (int)strlen(tensors[i].name);
    }
    co_safetensors_sha256(sha256, tensors, n);
    printf("file       %s\n", CO_SHOW(path));
    inspect_print_metadata(file);
    printf("tensors    %zu\n", n);
    printf("elements   %s\n", co_format_count(text, sizeof(text), elements));
    printf("data       %s\n", co_format_bytes(text, sizeof(text), bytes));
    printf("sha256     %s\n", sha256);
    printf("\n%-*s  %-4s %-18s %12s %11s %11s %11s %11s\n", width, "tensor", "type", "shape",
           "elements", "mean", "std", "min", "max");
    for (size_t i = 0; i < n; i++)
        inspect_print_tensor(&tensors[i], co_safetensors_stored(file, i), width);
    co_free(tensors);
    return CO_OK;
}

static co_status inspect_weights(const char *path, const inspect_options *o)
{
    co_safetensors *file;
    co_status st;

    if (o->ranks || o->set.n)
        return co_fail(CO_E_USAGE, "%s: -n and --set are for configs, not for weights", path);
    CO_TRY(co_safetensors_open(&file, path));
    st = inspect_print_weights(file, path);
    co_safetensors_close(file);
    return st;
}

/* ---- a config's network ---- */

static uint64_t inspect_node_parameters(const co_graph *graph, const co_node *node)
{
    uint64_t n = 0;

    for (int i = 0; i < node->n_param; i++)
        if (!graph->param[node->param[i]].spec.buffer)
            n += graph->param[node->param[i]].count;
    return n;
}

/* The shape without the batch dimension. */
static char *inspect_sample_shape(char *out, size_t size, const co_shape *shape)
{
    co_shape sample = {.ndim = shape->ndim > 0 ? shape->ndim - 1 : 0};

    for (int i = 0; i < sample.ndim; i++)
        sample.dim[i] = shape->dim[i + 1];
    if (sample.ndim == 0)
        snprintf(out, size, "one number");
    else
        co_shape_format(out, size, &sample);
    return out;
}

static void inspect_print_layers(const cli_network *net)
{
    const co_graph *graph = net->model->graph;
    int width = INSPECT_LAYER;

    for (int i = 0; i < graph->n_node; i++)
        if ((int)co_utf8_count(CO_SHOW(graph->node[i].name)) > width)
            width = (int)co_utf8_count(CO_SHOW(graph->node[i].name));
    printf("%-*s %-16s %-16s %12s  %s\n", width, "layer", "op", "output", "parameters", "backend");
    for (int i = 0; i < graph->n_node; i++) {
        const co_node *node = &graph->node[i];
        char shape[64], count[32];

        cli_print_cell(CO_SHOW(node->name), width);
        printf(" %-16s %-16s %12s  %s\n", node->op->name,
               inspect_sample_shape(shape, sizeof(shape), &graph->var[node->out[0]].shape),
               co_format_count(count, sizeof(count), inspect_node_parameters(graph, node)),
               co_plan_backend(net->plan, i, NULL));
    }
}

/* Memory of a rank: flat store and activations. */
static void inspect_print_memory(const cli_network *net)
{
    const co_store *store = net->model->store;
    const int arrays = 2 + store->n_state;
    char count[32], one[32], all[32], used[32], unshared[32];
    size_t plan_used, plan_unshared;

    co_plan_memory(net->plan, &plan_used, &plan_unshared);
    printf("\nparameters   %s, %s\n",
           co_format_count(count, sizeof(count), co_model_parameter_count(net->model)),
           co_format_bytes(one, sizeof(one), store->n * sizeof(float)));
    printf("store        %s a rank: weights, gradients and %d optimizer state%s\n",
           co_format_bytes(all, sizeof(all),
                           ((uint64_t)arrays * store->n + store->n_buffer) * sizeof(float)),
           store->n_state, co_plural((uint64_t)store->n_state));
    printf("activations  %s a rank at %" PRIu64 " sample%s (%s if no memory were used twice)\n",
           co_format_bytes(used, sizeof(used), plan_used), net->batch, co_plural(net->batch),
           co_format_bytes(unshared, sizeof(unshared), plan_unshared));
}

static co_status inspect_network(cli_network *net, const char *path)
{
    const co_spec *spec = &net->spec;
    co_optim *optim;
    char shape[64];

    CO_TRY(cli_network_compile(net));
    /* Creating the optimizer adds its state arrays to the store, so that they are counted. */
    CO_TRY(co_optim_create(&optim, spec->optimizer, spec->config, net->model->store));
    printf("config       %s\n", CO_SHOW(path));
    printf("model        %s\n", CO_SHOW(co_spec_model_name(spec)));
    printf("data         %s: samples %s, %" PRId64 " classes\n",
           co_spec_plugin_name(spec->data, ""), co_shape_format(shape, sizeof(shape), &net->sample),
           net->classes);
    printf("batch        %" PRIu64 " over %" PRId64 " rank%s\n",
           co_spec_batch(spec, (int)spec->ranks), spec->ranks, co_plural((uint64_t)spec->ranks));
    printf("optimizer    %s, strategy %s\n\n", co_optim_ops(optim)->name,
           co_spec_strategy_name(spec));
    inspect_print_layers(net);
    inspect_print_memory(net);
    co_optim_destroy(optim);
    return CO_OK;
}

static co_status inspect_config(const char *path, const inspect_options *o)
{
    const co_train_options options = {
        .config_path = path, .set = o->set.text, .ranks = (int)o->ranks};
    cli_network net;
    co_status st;

    CO_TRY(cli_network_open(&net, &options));
    st = inspect_network(&net, path);
    cli_network_close(&net);
    return st;
}

/* ---- dispatch ---- */

static bool inspect_has_suffix(const char *path, const char *suffix)
{
    size_t n = strlen(path), k = strlen(suffix);

    return n > k && strcmp(path + n - k, suffix) == 0;
}

static bool inspect_is_text(const uint8_t *head, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (head[i] < ' ' && head[i] != '\t' && head[i] != '\n' && head[i] != '\r')
            return false;
    return true;
}

/* By name, else by content: a safetensors file starts with a 64-bit length whose upper bytes are
   zero, and a brace. */
static co_status inspect_is_weights(bool *out, const char *path)
{
    static const co_open_rule rule = {.status = CO_E_DATA};
    uint8_t head[9];
    struct stat info;
    size_t n;
    FILE *file;

    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode))
        return co_fail(CO_E_USAGE,
                       "%s is a folder, but neither a run's nor a checkpoint's; name a "
                       ".safetensors file or a config",
                       path);
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode))
        return co_fail(CO_E_USAGE, "%s is not a regular file", path);
    *out = inspect_has_suffix(path, ".safetensors");
    if (*out || inspect_has_suffix(path, ".yaml") || inspect_has_suffix(path, ".yml"))
        return CO_OK;
    CO_TRY(co_open_stream(&file, NULL, path, &rule));
    n = fread(head, 1, sizeof(head), file);
    fclose(file);
    *out = n == sizeof(head) && head[7] == 0 && head[8] == '{';
    if (*out || inspect_is_text(head, n))
        return CO_OK;
    return co_fail(CO_E_USAGE,
                   "%s is no text, so no config, and no .safetensors file; name one of these, a "
                   "run directory or a checkpoint's folder",
                   path);
}

static bool inspect_is_checkpoint(const char *path)
{
    char manifest[CO_CHECKPOINT_MAX_PATH];

    return co_fs_join(manifest, sizeof(manifest), path, CO_MANIFEST_NAME) == CO_OK &&
           co_fs_exists(manifest);
}

static co_status inspect_run(const void *options, int n, const char *const *argument)
{
    char path[CLI_MAX_PATH];
    bool weights;

    (void)n;
    if (inspect_is_checkpoint(argument[0]))
        return cli_inspect_checkpoint(argument[0]);
    if (cli_inspect_is_run(argument[0]))
        return cli_inspect_run(argument[0]);
    CO_TRY(cli_config_find(path, argument[0]));
    CO_TRY(inspect_is_weights(&weights, path));
    return weights ? inspect_weights(path, options) : inspect_config(path, options);
}

const co_command co_command_inspect = {
    .name = "inspect",
    .summary = "look into weights, a run, a checkpoint, or at the network that a config makes",
    .about =
        "Of a .safetensors file: its metadata and each tensor with type, shape, mean, standard\n"
        "deviation, min and max; values that are not finite are counted. `sha256` is of the\n"
        "tensors' bytes in name order, as in summary.json.\n"
        "\n"
        "Of a run directory: its config, how far it came, its result and its checkpoints.\n"
        "\n"
        "Of a checkpoint (a folder): what it is of, where in the run, and whether all its bytes "
        "are\n"
        "those that were written.\n"
        "\n"
        "Of a config: each layer with its output for one sample, its parameters and the backend\n"
        "that runs it, and the memory that a rank needs for weights and activations. The data is\n"
        "opened for its shape; without it, say what it is like (see the last example).",
    .example =
        "  cohort inspect runs/first\n"
        "  cohort inspect runs/first/final.safetensors\n"
        "  cohort inspect runs/first/checkpoints/step-938\n"
        "  cohort inspect configs/mnist-net.yaml -n 4\n"
        "  cohort inspect configs/mnist-net.yaml --set 'data={name: synthetic, shape: [3, 32, "
        "32]}'",
    .arguments = inspect_arguments,
    .options = inspect_option_table,
    .options_size = sizeof(inspect_options),
    .run = inspect_run,
};
