/*
 * cli.h - the command interface, and what commands share.
 *
 * A command is one file with one co_command and one line in main.c's table. Its table of options
 * drives parsing, checking and --help.
 */
#ifndef CO_CLI_CLI_H
#define CO_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cohort/status.h>

#include "graph/plan.h"
#include "launch/child.h"
#include "launch/root.h"
#include "model/model.h"
#include "train/spec.h"

typedef enum cli_option_type {
    CLI_FLAG,  /* bool */
    CLI_COUNT, /* int64_t, min <= value <= max */
    CLI_TEXT,  /* const char *, borrowed from argv */
    CLI_LIST   /* cli_list: repeatable */
} cli_option_type;

#define CLI_MAX_LIST 256

/* Values of a repeated option; text[n] is NULL. */
typedef struct cli_list {
    int n;
    const char *text[CLI_MAX_LIST + 1];
} cli_list;

typedef struct cli_option {
    const char *name; /* "run-dir"; NULL ends the list */
    char letter;      /* 'n'; 0: none */
    cli_option_type type;
    size_t offset;     /* of the field in the command's option struct */
    const char *value; /* "DIR", for --help; NULL for a flag */
    int64_t min, max;  /* CLI_COUNT */
    const char *help;  /* one line */
} cli_option;

#define CLI_OPTIONS_END                                                                            \
    {                                                                                              \
        NULL, 0, CLI_FLAG, 0, NULL, 0, 0, NULL                                                     \
    }

typedef struct cli_argument {
    const char *name; /* "CONFIG"; "IMAGE...", the last: one or more; NULL ends the list */
    bool optional;
    const char *help;
} cli_argument;

typedef struct co_command {
    const char *name;              /* "train", or two words: "bench train" */
    const char *summary;           /* one line, for the list of commands */
    const char *about;             /* what it does, for --help */
    const char *example;           /* command lines, indented by two spaces */
    const cli_argument *arguments; /* NULL: none */
    const cli_option *options;     /* NULL: none but --help */
    size_t options_size;           /* of the struct that options fill in */
    const void *defaults;          /* a struct of that size; NULL: zeros */
    /* `argument` has n entries followed by NULL. */
    co_status (*run)(const void *options, int n, const char *const *argument);
} co_command;

/* --- options.c --- */

/* A parsed command line. */
typedef struct cli_parsed {
    void *options;         /* the command's struct, defaults filled in */
    const char **argument; /* room for argc + 1 entries */
    int n_argument;
    bool help; /* --help was given: ignore everything else */
} cli_parsed;

/* Parse argv[0..argc), which follows the command's name. CO_E_USAGE names the error and the
   remedy. */
co_status cli_parse(cli_parsed *out, const co_command *command, int argc, const char *const *argv);
void cli_print_help(FILE *out, const co_command *command);

/* --- output.c --- */

/* Print a cell of a table: UTF-8, of which a character takes a column, and blanks up to `width`. */
void cli_print_cell(const char *text, int width);

/* What has been printed, at once. That nobody reads it any more is no error. */
co_status cli_flush_output(void);

/* Of JSON on standard output: names hold what must not reach a terminal; nine digits give the same
   float back. */
#define CLI_JSON_STYLE (JSON_REAL_PRECISION(9) | JSON_PRESERVE_ORDER | JSON_ENSURE_ASCII)

/* CO_E_USAGE if this is one of several processes that were not started by an MPI launcher.
   `command` and `config` are what the user typed. */
co_status cli_check_started(const char *command, const char *config);

/* CO_E_INTERRUPTED or CO_E_TERMINATED if this process has been asked to end, while the signals of a
   co_child_guard are blocked. */
co_status cli_check_signal(const co_child_guard *guard);

/* Kinds of files that commands write. */
typedef enum cli_output {
    CLI_ONNX,
    CLI_SAFETENSORS,
    CLI_PACK,
    CLI_PLOT,
    CLI_NPY,
    CLI_HTML
} cli_output;
/* CO_E_USAGE if `path` exists and is not of that kind, or is one of `inputs` (ends with NULL). */
co_status cli_check_output(const char *path, cli_output kind, const char *const *inputs);

/* --- data_source.c --- */

/* A data set given by a config file, or by the value of its `data:`. */
typedef struct cli_data {
    co_config *config;     /* owned */
    const co_value *value; /* inside config */
} cli_data;
co_status cli_data_open(cli_data *out, const char *text, const cli_list *set);
void cli_data_close(cli_data *source);

/* --- network.c --- */

/* A config's network in this process, to inspect it; not for training. */
typedef struct cli_network {
    co_spec spec;
    co_shape sample; /* (C, H, W) */
    int64_t classes;
    uint64_t batch;           /* largest number of samples that a rank gets in a step */
    co_model *model;          /* owned */
    co_plan *plan;            /* owned; of `batch`, with backward; NULL until compiled */
    struct co_device *device; /* owned; NULL: the CPU, or not there yet */
} cli_network;

/* Opens the training data to learn the shape of its samples. */
co_status cli_network_open(cli_network *out, const co_train_options *options);
/* Brings the model to the config's device. */
co_status cli_network_enter_device(cli_network *net);
co_status cli_network_compile(cli_network *net);
void cli_network_close(cli_network *net);

/* --- configs.c --- */

#define CLI_MAX_PATH 4096

/* Resolve CONFIG: `name` if there is such a file, else the installed config of that name, which is
   logged. CO_E_USAGE if there is neither; suggests a similar name. */
co_status cli_config_find(char out[CLI_MAX_PATH], const char *name);
/* Print the installed configs, one per line. */
void cli_configs_print(void);

/* --- plugins.c --- */

/* Load the files of the command's --plugin, and those that the config it was given names. */
co_status cli_plugins_load(const co_command *command, const void *options,
                           const char *const *argument);

/* The option table entry for --plugin. */
#define CLI_PLUGIN_OPTION(options)                                                                 \
    {                                                                                              \
        "plugin", 0, CLI_LIST, offsetof(options, plugins), "FILE", 0, 0,                           \
            "load this plugin first; repeatable"                                                   \
    }

/* --- inspect_run.c --- */

/* Whether a folder is a run directory; print what it holds. */
bool cli_inspect_is_run(const char *dir);
co_status cli_inspect_run(const char *dir);

/* --- inspect_checkpoint.c --- */

/* Verify a checkpoint's folder and print it. */
co_status cli_inspect_checkpoint(const char *folder);

/* --- commands: one file each --- */

extern const co_command co_command_train, co_command_eval, co_command_list, co_command_doctor,
    co_command_data_info, co_command_data_pack, co_command_data_partition, co_command_inspect,
    co_command_compare, co_command_bench_train, co_command_bench_comm, co_command_bench_data,
    co_command_bench_ops, co_command_bench_kernels, co_command_export, co_command_generate,
    co_command_import, co_command_ctl, co_command_data_tokenize, co_command_predict,
    co_command_runs, co_command_data_get, co_command_slurm, co_command_report,
    co_command_data_shard, co_command_plan, co_command_watch;
extern const co_command co_command_explain, co_command_init, co_command_tune;

#endif
