/* init.c - `cohort init`: writes a config for the user's data, which trains as it is. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/init_look.h"
#include "core/fs.h"
#include "core/mem.h"
#include "core/plural.h"
#include "core/text.h"
#include "core/thread.h"
#include "model/model.h"
#include "telemetry/format.h"

#define INIT_ANSWER CLI_MAX_PATH
#define INIT_STEPS  1500 /* that a run should have */
#define INIT_RANK   16   /* samples of a rank in a step, at least */

typedef struct init_options {
    const char *output, *model;
    int64_t ranks, epochs, batch, size, context;
    bool yes, quiet;
} init_options;

static const init_options init_defaults = {.output = NULL, .context = INIT_CONTEXT};

static const cli_argument init_arguments[] = {
    {"DATA", true, "a folder of pictures, tokens or arrays, MNIST, CIFAR, a pack, text"},
    {NULL, false, NULL},
};

static const cli_option init_option_table[] = {
    {"output", 'o', CLI_TEXT, offsetof(init_options, output), "FILE", 0, 0,
     "the config to write; default: train.yaml"},
    {"model", 0, CLI_TEXT, offsetof(init_options, model), "MODEL", 0, 0,
     "one of `cohort list models`; default: one that fits the samples"},
    {"ranks", 'n', CLI_COUNT, offsetof(init_options, ranks), "N", 1, 1024,
     "ranks; default: one per core, as the batch allows"},
    {"batch", 0, CLI_COUNT, offsetof(init_options, batch), "N", 1, 1 << 24,
     "samples a step; default: by the number of training samples"},
    {"epochs", 0, CLI_COUNT, offsetof(init_options, epochs), "N", 1, 1 << 24,
     "default: as many as make 1500 steps, 3 to 30"},
    {"size", 0, CLI_COUNT, offsetof(init_options, size), "SIDE", 8, 4096,
     "side that images are brought to; default: theirs, of files 64 at most"},
    {"context", 0, CLI_COUNT, offsetof(init_options, context), "N", 1, 1 << 20,
     "characters or tokens of a sample; default: 64"},
    {"yes", 'y', CLI_FLAG, offsetof(init_options, yes), NULL, 0, 0,
     "ask nothing, also on a terminal"},
    {"quiet", 'q', CLI_FLAG, offsetof(init_options, quiet), NULL, 0, 0, "no summary"},
    CLI_OPTIONS_END,
};

/* What the config will say. */
typedef struct init_plan {
    init_data data;
    char model[INIT_ANSWER];
    const char *optimizer, *schedule, *augment, *loss;
    int64_t ranks, batch, epochs;
} init_plan;

/* ---- asking ---- */

/* An answer, or `otherwise` for an empty line. */
static co_status init_ask(char out[INIT_ANSWER], const char *question, const char *otherwise)
{
    size_t n;

    fprintf(stderr, otherwise ? "%s [%s]: " : "%s: ", question, otherwise);
    if (!fgets(out, INIT_ANSWER, stdin))
        return co_fail(CO_E_USAGE, "no answer; options say the same: `cohort init --help`");
    n = strcspn(out, "\n");
    out[n] = '\0';
    if (n == 0 && otherwise)
        snprintf(out, INIT_ANSWER, "%s", otherwise);
    return CO_OK;
}

static co_status init_ask_count(int64_t *out, const char *question)
{
    char answer[INIT_ANSWER], otherwise[32], *end;

    snprintf(otherwise, sizeof(otherwise), "%" PRId64, *out);
    do {
        CO_TRY(init_ask(answer, question, otherwise));
        *out = strtoll(answer, &end, 10);
    } while (*end || *out < 1 || *out > 1 << 24);
    return CO_OK;
}

/* ---- choosing ---- */

static void init_choose_image_model(init_plan *plan)
{
    const co_shape *s = &plan->data.sample;
    const int64_t side = s->dim[1] == s->dim[2] ? s->dim[1] : 0;
    const bool small = side == 28 || side == 32;

    plan->optimizer = "{name: adam, lr: 0.001}";
    plan->schedule = "cosine";
    plan->augment = "";
    if (s->dim[0] == 1 && small) {
        snprintf(plan->model, sizeof(plan->model), "lenet5");
        return;
    }
    if (side < 16) {
        snprintf(plan->model, sizeof(plan->model), "{name: mlp, hidden: [256, 128]}");
        return;
    }
    snprintf(plan->model, sizeof(plan->model),
             side == 32   ? "resnet9"
             : side <= 48 ? "{name: resnet18, stem: cifar}"
                          : "resnet18");
    if (s->dim[0] == 3)
        plan->augment = side <= 48 ? "[{name: random-crop, padding: 4}, horizontal-flip]"
                                   : "[{name: random-resized-crop, scale: [0.35, 1]}, "
                                     "horizontal-flip]";
}

/* Values in any order, unless they have the shape of a picture. */
static void init_choose_array_model(init_plan *plan)
{
    const co_shape *s = &plan->data.sample;

    if (!plan->data.targets && s->ndim == 3 && (s->dim[0] == 1 || s->dim[0] == 3)) {
        init_choose_image_model(plan);
        plan->augment = "";
        return;
    }
    snprintf(plan->model, sizeof(plan->model), "{name: mlp, hidden: [64, 64]}");
    plan->optimizer = "{name: adam, lr: 0.001}";
    plan->schedule = "cosine";
    plan->augment = "";
    if (plan->data.targets)
        plan->loss = plan->data.binary ? "bce_with_logits_loss" : "mse_loss";
}

static int64_t init_power(double most)
{
    int64_t n = 1;

    while (2 * (double)n <= most)
        n *= 2;
    return n;
}

/* Some 50 steps an epoch at least, where there are so many samples. */
static void init_choose_sizes(init_plan *plan, const init_options *o)
{
    const double train = (double)plan->data.train;
    const int cores = co_thread_cores();

    plan->batch = init_power(fmin(fmax(train / 50, 8), plan->data.tokens ? 16 : 128));
    if ((double)plan->batch > train)
        plan->batch = init_power(train);
    plan->batch = o->batch ? o->batch : plan->batch;
    plan->ranks = plan->batch / INIT_RANK < cores ? plan->batch / INIT_RANK : cores;
    plan->ranks = o->ranks ? o->ranks : plan->ranks < 1 ? 1 : plan->ranks;
    plan->epochs = (int64_t)ceil(INIT_STEPS / ceil(train / (double)plan->batch));
    plan->epochs = plan->epochs < 3 ? 3 : plan->epochs > 30 ? 30 : plan->epochs;
    plan->epochs = o->epochs ? o->epochs : plan->epochs;
}

static void init_choose(init_plan *plan, const init_options *o)
{
    plan->loss = NULL;
    if (plan->data.tokens) {
        snprintf(plan->model, sizeof(plan->model),
                 "{name: gpt2, layers: 4, heads: 4, width: 128, dropout: 0}");
        plan->optimizer = "{name: adamw, lr: 1e-3, betas: [0.9, 0.99], weight_decay: 0.1}";
        plan->schedule = "{name: cosine, unit: step, warmup: 100, final: 0.1}";
        plan->augment = "";
    } else if (plan->data.arrays) {
        init_choose_array_model(plan);
    } else {
        init_choose_image_model(plan);
    }
    if (o->model)
        snprintf(plan->model, sizeof(plan->model), "%s", o->model);
    init_choose_sizes(plan, o);
}

/* ---- writing ---- */

static void init_write_classes(FILE *out, const init_data *d)
{
    fprintf(out, ", %" PRId64 " classes%s%s.\n", d->classes, d->names[0] ? ": " : "", d->names);
    fprintf(out, "# A class has %" PRIu64 " to %" PRIu64 " training samples.", d->rarest,
            d->commonest);
}

static void init_write_arrays(FILE *out, const init_data *d)
{
    if (!d->targets)
        init_write_classes(out, d);
    else
        fprintf(out, ", each with %" PRId64 " %s.", d->classes,
                d->binary         ? "labels that are there, 1, or not, 0"
                : d->classes == 1 ? "value to learn"
                                  : "values to learn");
    fprintf(out,
            "\n# Inputs have the mean %.4g and the standard deviation %.4g, measured over %" PRIu64
            " training samples.\n",
            d->mean[0], d->std[0], d->measured);
    if (fabs(d->mean[0]) > 2 || d->std[0] > 4 || d->std[0] < 0.05)
        fprintf(out, "# A network learns little from values far from -1 to 1, and arrays are read "
                     "as they are: scale\n# them before they are saved.\n");
}

static void init_write_data(FILE *out, const init_data *d)
{
    char train[32], test[32], shape[64];

    fprintf(out, "# %s training and %s test samples",
            co_format_count(train, sizeof(train), d->train),
            co_format_count(test, sizeof(test), d->test));
    if (d->tokens) {
        fprintf(out, " of %" PRId64 " %s each, %" PRId64 " different ones.\n", d->sample.dim[0],
                strcmp(d->format, "text") == 0 ? "characters" : "tokens", d->classes);
        return;
    }
    fprintf(out, " of %s", co_shape_format(shape, sizeof(shape), &d->sample));
    if (d->arrays) {
        init_write_arrays(out, d);
        return;
    }
    init_write_classes(out, d);
    fprintf(out,
            " `normalize`: mean and standard deviation\n# per channel, measured over %" PRIu64
            " training samples.\n",
            d->measured);
    if (d->extra[0])
        fprintf(out, "# `resize`: the side that all are brought to; a larger one is more accurate "
                     "and slower.\n");
}

static void init_write(FILE *out, const init_plan *plan, const char *name)
{
    char value[INIT_VALUE];

    init_value(value, &plan->data, plan->augment);
    fprintf(out,
            "# Written by `cohort init`. To train, and before that to see what it takes:\n#\n"
            "#   cohort train %s\n#   cohort train %s --dry-run\n\n",
            name, name);
    fprintf(out, "# `cohort list models` has others.\nmodel: %s\n\n", plan->model);
    init_write_data(out, &plan->data);
    if (plan->augment[0])
        fprintf(out, "# Leave horizontal-flip out where left and right differ, as of letters.\n");
    fprintf(out, "data: %s\n", value);
    if (plan->loss)
        fprintf(out, "loss: %s\n", plan->loss);
    fprintf(out, "\n");
    fprintf(out, "ranks: %" PRId64 " # on this machine; -n wins\n", plan->ranks);
    fprintf(out, "batch: %" PRId64 " # over all ranks\n", plan->batch);
    fprintf(out, "epochs: %" PRId64 "\n\n", plan->epochs);
    fprintf(out,
            "# If the loss does not fall, or is not a number: a tenth of lr, or ten times as "
            "much.\noptimizer: %s\n",
            plan->optimizer);
    fprintf(out, "schedule: %s\n", plan->schedule);
    if (plan->data.tokens)
        fprintf(out, "clip: {norm: 1.0}\n");
    fprintf(out, "seed: 1234\n");
}

/* Whether the config makes a network for this data. */
static co_status init_check(const char *text, const init_data *data)
{
    const co_train_options options = {.config_text = text};
    co_model *model = NULL;
    co_spec spec;
    co_status st;

    CO_TRY(co_spec_open(&spec, &options));
    st = co_spec_create_model(&model, &spec, &data->sample, data->classes);
    if (st == CO_OK && co_spec_batch(&spec, (int)spec.ranks) > data->train)
        st = co_fail(CO_E_USAGE,
                     "a batch of %" PRIu64 " is larger than the %" PRIu64
                     " training samples; give a smaller --batch",
                     co_spec_batch(&spec, (int)spec.ranks), data->train);
    co_model_destroy(model);
    co_spec_unload(&spec);
    return st;
}

static co_status init_save(const init_plan *plan, const char *path)
{
    co_atomic_file *file;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    co_status st;

    if (!out)
        return co_fail(CO_E_NOMEM, "out of memory");
    init_write(out, plan, path);
    st = fclose(out) == 0 ? init_check(text, &plan->data) : co_fail(CO_E_NOMEM, "out of memory");
    if (st == CO_OK)
        st = co_atomic_open(&file, path);
    if (st == CO_OK) {
        fputs(text, co_atomic_stream(file));
        st = co_atomic_commit(file);
    }
    free(text);
    return st;
}

static co_status init_check_free(const char *path)
{
    if (!co_fs_exists(path))
        return CO_OK;
    return co_fail(CO_E_USAGE, "%s is there, and would be overwritten; give another -o FILE", path);
}

static co_status init_ask_all(init_plan *plan, char output[INIT_ANSWER], const init_options *o)
{
    char answer[INIT_ANSWER];

    if (!o->model) {
        CO_TRY(init_ask(answer, "model", plan->model));
        snprintf(plan->model, sizeof(plan->model), "%s", answer);
    }
    if (!o->batch)
        CO_TRY(init_ask_count(&plan->batch, "samples a step"));
    if (!o->ranks)
        CO_TRY(init_ask_count(&plan->ranks, "ranks"));
    if (!o->epochs)
        CO_TRY(init_ask_count(&plan->epochs, "epochs"));
    if (o->output)
        return CO_OK;
    CO_TRY(init_ask(answer, "write the config to", output));
    memcpy(output, answer, INIT_ANSWER);
    return CO_OK;
}

static co_status init_run(const void *options, int n, const char *const *argument)
{
    const init_options *o = options;
    const bool ask = !o->yes && isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
    char data[INIT_ANSWER], output[INIT_ANSWER];
    init_plan plan;

    if (n == 0 && !ask)
        return co_fail(CO_E_USAGE, "DATA is missing: a folder of pictures, tokens or arrays, "
                                   "MNIST's or CIFAR's files, a pack or a text file");
    if (n == 0)
        CO_TRY(init_ask(data, "your data (a folder, or a file)", NULL));
    snprintf(output, sizeof(output), "%s", o->output ? o->output : "train.yaml");
    CO_TRY(o->output || !ask ? init_check_free(output) : CO_OK);
    CO_TRY(init_look(&plan.data, n ? argument[0] : data, o->size, o->context));
    init_choose(&plan, o);
    if (ask)
        CO_TRY(init_ask_all(&plan, output, o));
    CO_TRY(init_check_free(output));
    CO_TRY(init_save(&plan, output));
    if (!o->quiet)
        printf("%s: %s on %s, %" PRId64 " epoch%s; `cohort train %s` trains it\n", CO_SHOW(output),
               CO_SHOW(plan.model), plan.data.format, plan.epochs, co_plural((uint64_t)plan.epochs),
               CO_SHOW(output));
    return CO_OK;
}

const co_command co_command_init = {
    .name = "init",
    .summary = "write a config for your data",
    .about =
        "Looks at DATA, and writes a commented config that trains as it is: the kind of data,\n"
        "classes, mean and standard deviation of its values, a network for samples of that size,\n"
        "batch, ranks and epochs. Known are a folder of pictures (train/CLASS/*.jpg and\n"
        "val/CLASS/*.jpg, or test), the files of MNIST, Fashion-MNIST, CIFAR-10 and CIFAR-100, a\n"
        "file of `cohort data pack`, folders of shards, text, a folder of tokens\n"
        "(`cohort data tokenize`, nanoGPT's train.bin and val.bin), and arrays: train.input.npy\n"
        "and others of a folder, or of a .safetensors file. On a terminal it asks for what no\n"
        "option says, with its own choice as the answer of an empty line. A file that is there\n"
        "is not overwritten.",
    .example = "  cohort init pictures\n"
               "  cohort init data/mnist -o mnist.yaml -n 2 --epochs 5\n"
               "  cohort init novel.txt --context 128 -o novel.yaml",
    .arguments = init_arguments,
    .options = init_option_table,
    .options_size = sizeof(init_options),
    .defaults = &init_defaults,
    .run = init_run,
};
