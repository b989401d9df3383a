/*
 * eval.c - `cohort eval`: how good weights are on the test split.
 *
 * Finds out which config and which weights belong together; measuring is co_evaluate's.
 */
#include <string.h>
#include <sys/stat.h>

#include <cohort/train.h>

#include "cli/cli.h"
#include "core/fs.h"
#include "telemetry/format.h"

#define EVAL_MAX_PATH 4096

typedef struct eval_options {
    const char *config;
    int64_t ranks;
    cli_list set;
    bool json;
} eval_options;

static const cli_argument eval_arguments[] = {
    {"RUN_DIR|FILE", false, "a run directory, or weights as a .safetensors file"},
    {NULL, false, NULL},
};

static const cli_option eval_option_table[] = {
    {"config", 'c', CLI_TEXT, offsetof(eval_options, config), "CONFIG", 0, 0,
     "model and data; default: config.yaml beside the weights"},
    {"ranks", 'n', CLI_COUNT, offsetof(eval_options, ranks), "N", 1, 1024,
     "ranks that share the work; default: the config's"},
    {"set", 's', CLI_LIST, offsetof(eval_options, set), "KEY=VALUE", 0, 0,
     "change the config, e.g. data.path=DIR; repeatable"},
    {"json", 0, CLI_FLAG, offsetof(eval_options, json), NULL, 0, 0,
     "print one JSON object instead of a table"},
    CLI_OPTIONS_END,
};

static co_status eval_join(char *out, const char *dir, size_t n, const char *file)
{
    if (n + strlen(file) + 2 > EVAL_MAX_PATH)
        return co_fail(CO_E_USAGE, "the path is too long: %s", dir);
    snprintf(out, EVAL_MAX_PATH, "%.*s%s%s", (int)n, dir, n && dir[n - 1] != '/' ? "/" : "", file);
    return CO_OK;
}

/* Weights and config that `path` stands for. */
static co_status eval_find(char *weights, char *config, const char *path)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return co_fail(CO_E_DATA, "%s: no such run directory or weights file", path);
    if (S_ISDIR(info.st_mode)) {
        CO_TRY(eval_join(weights, path, strlen(path), "final.safetensors"));
        return eval_join(config, path, strlen(path), "config.yaml");
    } else {
        const char *slash = strrchr(path, '/');

        CO_TRY(eval_join(weights, path, 0, path));
        return eval_join(config, path, slash ? (size_t)(slash - path) + 1 : 0, "config.yaml");
    }
}

static void eval_print(const co_eval_summary *result, const char *weights, bool json)
{
    char count[32];

    if (json) {
        printf("{\"test_samples\": %llu, \"test_loss\": %.9g, \"test_accuracy\": %.9g",
               (unsigned long long)result->count, result->loss, result->accuracy);
        if (result->accuracy_top5 >= 0)
            printf(", \"test_accuracy_top5\": %.9g", result->accuracy_top5);
        printf("}\n");
        return;
    }
    printf("weights        %s\n", weights);
    printf("test samples   %s\n", co_format_count(count, sizeof(count), result->count));
    printf("loss           %.4f\n", result->loss);
    printf("accuracy       %.4f\n", result->accuracy);
    if (result->accuracy_top5 >= 0)
        printf("top-5          %.4f\n", result->accuracy_top5);
}

static co_status eval_run(const void *options, int n, const char *const *argument)
{
    const eval_options *o = options;
    char weights[EVAL_MAX_PATH], config[EVAL_MAX_PATH];
    co_train_options run = {.set = o->set.text, .ranks = (int)o->ranks, .quiet = true};
    co_eval_summary result;

    (void)n;
    CO_TRY(eval_find(weights, config, argument[0]));
    run.config_path = o->config ? o->config : config;
    if (!o->config && !co_fs_exists(config))
        return co_fail(CO_E_USAGE, "%s is not there: name the weights' config with --config",
                       config);
    CO_TRY(co_evaluate(&result, &run, weights));
    if (cli_is_root())
        eval_print(&result, weights, o->json);
    return CO_OK;
}

const co_command co_command_eval = {
    .name = "eval",
    .summary = "measure weights on the test split",
    .about =
        "Each test sample counts exactly once, for any number of ranks. A run directory means\n"
        "its final.safetensors and its config.yaml; for other weights whose names and shapes\n"
        "fit the model, name the config.",
    .example = "  cohort eval runs/first\n"
               "  cohort eval lenet.safetensors --config configs/lenet-sync.yaml --json",
    .arguments = eval_arguments,
    .options = eval_option_table,
    .options_size = sizeof(eval_options),
    .run = eval_run,
};
