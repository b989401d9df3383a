/*
 * import.c - `cohort import`: converts weights from other programs into a file for Cohort.
 *
 * The network determines the expected tensors; loading checks them all before anything is written.
 */
#include <inttypes.h>
#include <string.h>

#include "cli/source.h"
#include "core/text.h"
#include "telemetry/format.h"

typedef struct import_options {
    const char *config, *model, *shape;
    int64_t classes;
    cli_list set, plugins;
} import_options;

static const cli_argument import_arguments[] = {
    {"SRC", false, "a .safetensors file with PyTorch's names"},
    {"DST", false, "file to write: NAME.safetensors"},
    {NULL, false, NULL},
};

static const cli_option import_option_table[] = {
    {"model", 'm', CLI_TEXT, offsetof(import_options, model), "MODEL", 0, 0,
     "the network: resnet18, or '{name: ..., key: value}'"},
    {"classes", 0, CLI_COUNT, offsetof(import_options, classes), "N", 1, 1 << 20,
     "logits that the --model gives; default: what the file says, else 1000"},
    {"shape", 0, CLI_TEXT, offsetof(import_options, shape), "C,H,W", 0, 0,
     "of a sample, or T of a sequence; default: the file's, else 3,224,224"},
    {"config", 'c', CLI_TEXT, offsetof(import_options, config), "CONFIG", 0, 0,
     "take the network, shape and classes from a config and its data"},
    {"set", 's', CLI_LIST, offsetof(import_options, set), "KEY=VALUE", 0, 0,
     "change the --config file's keys; repeatable"},
    CLI_PLUGIN_OPTION(import_options),
    CLI_OPTIONS_END,
};

/* Defaults without a config: ImageNet's sizes. */
#define IMPORT_SHAPE   "3,224,224"
#define IMPORT_CLASSES 1000

static co_status import_check(const import_options *o, const char *to)
{
    const size_t n = strlen(to), k = strlen(".safetensors");

    if (!o->model == !o->config)
        return co_fail(CO_E_USAGE,
                       "say which network it is: either --model MODEL or --config CONFIG");
    if (o->config && (o->classes || o->shape))
        return co_fail(CO_E_USAGE,
                       "--classes and --shape go with --model; a config's data says both");
    if (o->model && o->set.n)
        return co_fail(CO_E_USAGE, "--set goes with --config");
    if (n <= k || strcmp(to + n - k, ".safetensors") != 0)
        return co_fail(CO_E_USAGE, "%s: the name has to end in .safetensors", to);
    return CO_OK;
}

/* A config with only the network, and data of the sizes that are not said otherwise. */
static co_status import_write_config(char *out, size_t size, const import_options *o)
{
    const int n = snprintf(out, size,
                           "{model: %s, data: {name: synthetic, shape: [" IMPORT_SHAPE
                           "], classes: %" PRId64 "}}",
                           o->model, o->classes ? o->classes : IMPORT_CLASSES);

    return n > 0 && (size_t)n < size ? CO_OK : co_fail(CO_E_USAGE, "--model is too long");
}

static co_status import_save(const cli_network *net, const char *from, const char *to)
{
    char count[32], shape[64];

    CO_TRY(co_model_save(net->model, to));
    printf("weights     %s\n", CO_SHOW(from));
    printf("model       %s, %s parameters\n", CO_SHOW(co_spec_model_name(&net->spec)),
           co_format_count(count, sizeof(count), co_model_parameter_count(net->model)));
    printf("sample      %s, %" PRId64 " classes\n",
           co_shape_format(shape, sizeof(shape), &net->sample), net->model->classes);
    printf("written     %s\n", CO_SHOW(to));
    return CO_OK;
}

/* The network of --config with its data's sizes, or of --model, with the weights. */
static co_status import_open(cli_network *net, const import_options *o, const char *weights)
{
    co_train_options run = {.config_path = o->config, .set = o->set.text};
    char text[4096];
    co_status st;

    if (o->model) {
        CO_TRY(import_write_config(text, sizeof(text), o));
        run.config_text = text;
        CO_TRY(cli_source_open(net, &run, weights, o->shape));
        if (!o->classes || o->classes == net->model->classes)
            return CO_OK;
        st = co_fail(CO_E_USAGE, "%s: says that it has %" PRId64 " classes, not %" PRId64, weights,
                     net->model->classes, o->classes);
    } else {
        CO_TRY(cli_network_open(net, &run));
        st = co_model_load(net->model, weights);
    }
    if (st != CO_OK)
        cli_network_close(net);
    return st;
}

static co_status import_run(const void *options, int n, const char *const *argument)
{
    const import_options *o = options;
    cli_network net;
    co_status st;

    (void)n;
    CO_TRY(import_check(o, argument[1]));
    CO_TRY(
        cli_check_output(argument[1], CLI_SAFETENSORS, (const char *const[]){argument[0], NULL}));
    CO_TRY(import_open(&net, o, argument[0]));
    st = import_save(&net, argument[0], argument[1]);
    cli_network_close(&net);
    return st;
}

const co_command co_command_import = {
    .name = "import",
    .summary = "take over weights from PyTorch",
    .about =
        "Reads a .safetensors file with the names of the model's state_dict, as torchvision has\n"
        "them, and checks every tensor: what is missing, unexpected or of another shape is listed\n"
        "at once. Writes the weights as Cohort keeps them, all F32 and without "
        "num_batches_tracked;\n"
        "for `eval`, for `init` of a config to train on from them, and for `export`. A file of\n"
        "torch.save is first converted in Python:\n"
        "  safetensors.torch.save_file(model.state_dict(), \"SRC.safetensors\")",
    .example =
        "  cohort import resnet18.safetensors r18.safetensors --model resnet18\n"
        "  cohort import theirs.safetensors ours.safetensors --model lenet5 --shape 1,28,28 "
        "--classes 10\n"
        "  cohort import theirs.safetensors ours.safetensors --config configs/lenet-sync.yaml\n"
        "  cohort import gpt2.safetensors ours.safetensors --model gpt2 --shape 1024 --classes "
        "50257",
    .arguments = import_arguments,
    .options = import_option_table,
    .options_size = sizeof(import_options),
    .run = import_run,
};
