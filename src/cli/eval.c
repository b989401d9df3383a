/* eval.c - `cohort eval`: evaluates weights on the test split. co_evaluate does the work. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include <cohort/train.h>

#include "cli/source.h"
#include "core/fs.h"
#include "core/text.h"
#include "telemetry/format.h"
#include "train/logits.h"

typedef struct eval_options {
    const char *config, *checkpoint, *logits;
    int64_t ranks;
    cli_list set, plugins;
    bool json, classes;
} eval_options;

static const cli_argument eval_arguments[] = {
    {"RUN_DIR|FILE", false, "a run directory, a checkpoint's folder, or a .safetensors file"},
    {NULL, false, NULL},
};

static const cli_option eval_option_table[] = {
    {"checkpoint", 'k', CLI_TEXT, offsetof(eval_options, checkpoint), "WHICH", 0, 0,
     "of a run directory: best, latest or a step; default: the final weights"},
    {"config", 'c', CLI_TEXT, offsetof(eval_options, config), "CONFIG", 0, 0,
     "model and data; default: config.yaml beside the weights"},
    {"ranks", 'n', CLI_COUNT, offsetof(eval_options, ranks), "N", 1, 1024,
     "ranks that share the work; default: the config's"},
    {"set", 's', CLI_LIST, offsetof(eval_options, set), "KEY=VALUE", 0, 0,
     "change the config, e.g. data.path=DIR; repeatable"},
    {"classes", 0, CLI_FLAG, offsetof(eval_options, classes), NULL, 0, 0,
     "also the accuracy of each class, and its confusion with others"},
    {"logits", 0, CLI_TEXT, offsetof(eval_options, logits), "FILE", 0, 0,
     "also write the network's output for each sample, for numpy.load"},
    {"json", 0, CLI_FLAG, offsetof(eval_options, json), NULL, 0, 0,
     "print one JSON object instead of a table"},
    CLI_PLUGIN_OPTION(eval_options),
    CLI_OPTIONS_END,
};

/* JSON has neither NaN nor infinity. */
static const char *eval_json_real(char *out, size_t size, double value)
{
    snprintf(out, size, isfinite(value) ? "%.9g" : "null", value);
    return out;
}

static void eval_print_json(const co_eval_summary *result, const co_confusion *confusion)
{
    const int64_t n = confusion->count ? confusion->classes : 0;
    char loss[32], accuracy[32];

    printf("{\"test_samples\": %" PRIu64, result->count);
    if (result->positions)
        printf(", \"test_tokens\": %" PRIu64, result->positions);
    printf(", \"test_loss\": %s, \"test_accuracy\": %s",
           eval_json_real(loss, sizeof(loss), result->loss),
           eval_json_real(accuracy, sizeof(accuracy), result->accuracy));
    if (!(result->accuracy_top5 < 0))
        printf(", \"test_accuracy_top5\": %s",
               eval_json_real(accuracy, sizeof(accuracy), result->accuracy_top5));
    for (size_t i = 0; i < result->n_metric; i++)
        printf(", \"test_%s\": %s", result->metric[i].name,
               eval_json_real(loss, sizeof(loss), result->metric[i].value));
    for (int64_t i = 0; i < n; i++) {
        printf(i ? ", [" : ", \"confusion\": [[");
        for (int64_t k = 0; k < n; k++)
            printf("%s%" PRId64, k ? ", " : "", confusion->count[i * n + k]);
        printf("]");
    }
    printf(n ? "]}\n" : "}\n");
}

static void eval_print(const co_eval_summary *result, const char *weights)
{
    char count[32], real[32];

    printf("weights        %s\n", CO_SHOW(weights));
    printf("test samples   %s\n", co_format_count(count, sizeof(count), result->count));
    if (result->positions)
        printf("test tokens    %s\n", co_format_count(count, sizeof(count), result->positions));
    printf("loss           %s\n", co_format_real(real, sizeof(real), result->loss, 4));
    printf("accuracy       %s\n", co_format_real(real, sizeof(real), result->accuracy, 4));
    if (!(result->accuracy_top5 < 0))
        printf("top-5          %s\n", co_format_real(real, sizeof(real), result->accuracy_top5, 4));
    for (size_t i = 0; i < result->n_metric; i++)
        printf("%-14s %s\n", result->metric[i].name,
               co_format_real(real, sizeof(real), result->metric[i].value, 4));
}

/* Print one class: its accuracy, and the class it is most often confused with. Skips empty
   classes. */
static void eval_print_class(const co_confusion *confusion, int64_t label)
{
    const int64_t *row = confusion->count + label * confusion->classes;
    int64_t all = 0, other = -1;
    char count[32];

    for (int64_t k = 0; k < confusion->classes; k++) {
        all += row[k];
        if (k != label && row[k] > 0 && (other < 0 || row[k] > row[other]))
            other = k;
    }
    if (all == 0)
        return;
    printf("%7" PRId64 " %10s   %.4f", label, co_format_count(count, sizeof(count), (uint64_t)all),
           (double)row[label] / (double)all);
    if (other >= 0)
        printf("   %" PRId64 " (%s)", other,
               co_format_count(count, sizeof(count), (uint64_t)row[other]));
    putchar('\n');
}

static void eval_print_classes(const co_confusion *confusion)
{
    if (!confusion->count)
        return;
    printf("\n  class    samples accuracy   most often confused with\n");
    for (int64_t i = 0; i < confusion->classes; i++)
        eval_print_class(confusion, i);
}

/* NumPy's format 1.0, whose header fills 128 bytes. */
static co_status eval_write_logits(const char *path, const co_logits *logits)
{
    static const char magic[] = "\x93NUMPY\x01\x00\x76"; /* its last byte and the NUL: 118 */
    const size_t n = (size_t)logits->samples * (size_t)logits->classes;
    co_atomic_file *file = NULL;
    char header[118];
    int length;

    CO_TRY(co_atomic_open(&file, path));
    memset(header, ' ', sizeof(header));
    length =
        snprintf(header, sizeof(header),
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%" PRIu64 ", %" PRId64 "), }",
                 logits->samples, logits->classes);
    header[length] = ' ';
    header[sizeof(header) - 1] = '\n';
    fwrite(magic, 1, sizeof(magic), co_atomic_stream(file));
    fwrite(header, 1, sizeof(header), co_atomic_stream(file));
    fwrite(logits->value, sizeof(*logits->value), n, co_atomic_stream(file));
    return co_atomic_commit(file);
}

static co_status eval_measure(co_eval_summary *result, co_confusion *confusion,
                              const eval_options *o, const co_train_options *run,
                              const char *weights)
{
    co_logits logits;
    co_status st;

    if (!o->logits)
        return co_evaluate_classes(result, confusion, run, weights);
    st = co_evaluate_logits(result, confusion, &logits, run, weights);
    if (st == CO_OK && confusion && !confusion->count)
        st = co_fail(CO_E_USAGE, "--classes: for networks that classify; this one gives other "
                                 "values");
    if (st == CO_OK)
        st = eval_write_logits(o->logits, &logits);
    co_logits_free(&logits);
    return st;
}

static co_status eval_run(const void *options, int n, const char *const *argument)
{
    const eval_options *o = options;
    co_train_options run = {.set = o->set.text, .ranks = (int)o->ranks, .quiet = true};
    co_confusion confusion = {.count = NULL};
    co_eval_summary result;
    cli_source source;

    (void)n;
    CO_TRY(cli_source_find(&source, argument[0], o->checkpoint, o->config));
    run.config_path = source.config;
    run.run_dir = source.run_dir[0] ? source.run_dir : NULL;
    if (o->logits)
        CO_TRY(cli_check_output(o->logits, CLI_NPY, (const char *const[]){source.weights, NULL}));
    CO_TRY(eval_measure(&result, o->classes ? &confusion : NULL, o, &run, source.weights));
    if (co_launch_is_root() && o->json) {
        eval_print_json(&result, &confusion);
    } else if (co_launch_is_root()) {
        eval_print(&result, source.weights);
        eval_print_classes(&confusion);
    }
    co_confusion_free(&confusion);
    return CO_OK;
}

const co_command co_command_eval = {
    .name = "eval",
    .summary = "measure weights on the test split",
    .about =
        "Each test sample counts exactly once, for any number of ranks. A run directory means\n"
        "its final.safetensors (while there is none, its latest checkpoint) and its config.yaml;\n"
        "with --checkpoint one of its checkpoints. Those are measured as they were in the run:\n"
        "with `ema` by their moving average. For other weights whose names and shapes fit the\n"
        "model, name the config. --classes adds the accuracy of each\n"
        "class; with --json the confusion matrix. --logits writes what the network gives for each\n"
        "sample, in the order of the set, for numpy.load.",
    .example = "  cohort eval runs/first\n"
               "  cohort eval runs/first --checkpoint best\n"
               "  cohort eval lenet.safetensors --config configs/lenet-sync.yaml --json",
    .arguments = eval_arguments,
    .options = eval_option_table,
    .options_size = sizeof(eval_options),
    .run = eval_run,
};
