/*
 * cli.h - what a command of the command line is, and what commands share.
 *
 * A command is one file with one co_command and one line in main.c's table. Its options are a
 * table too: parsing, checking and --help all work from it.
 */
#ifndef CO_CLI_CLI_H
#define CO_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cohort/status.h>

#include "graph/plan.h"
#include "model/model.h"
#include "train/spec.h"

typedef enum cli_option_type {
    CLI_FLAG,  /* bool */
    CLI_COUNT, /* int64_t, min <= value <= max */
    CLI_TEXT,  /* const char *, borrowed from argv */
    CLI_LIST   /* cli_list: may be given again and again */
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
    const char *name; /* "CONFIG"; NULL ends the list */
    bool optional;
    const char *help;
} cli_argument;

typedef struct co_command {
    const char *name;              /* "train", or two words: "bench train" */
    const char *summary;           /* one line, for the list of commands */
    const char *about;             /* what it does, for --help */
    const char *example;           /* command lines, each indented by two */
    const cli_argument *arguments; /* NULL: none */
    const cli_option *options;     /* NULL: none but --help */
    size_t options_size;           /* of the struct that options fill in */
    const void *defaults;          /* such a struct; NULL: zeros */
    /* `argument` has n entries, and a NULL after them. */
    co_status (*run)(const void *options, int n, const char *const *argument);
} co_command;

/* --- options.c --- */

/* What a command line came to. */
typedef struct cli_parsed {
    void *options;         /* the command's struct, defaults filled in */
    const char **argument; /* room for argc + 1 entries */
    int n_argument;
    bool help; /* --help was met: nothing else counts */
} cli_parsed;

/* Read argv[0..argc), what follows the command's name. CO_E_USAGE names the offence and the
   remedy. */
co_status cli_parse(cli_parsed *out, const co_command *command, int argc, const char *const *argv);
void cli_print_help(FILE *out, const co_command *command);

/* --- output.c --- */

/* Whether this process speaks for the run: under mpiexec every rank comes back from a launch. */
bool cli_is_root(void);

/* CO_E_USAGE, with what to type instead, for one of several processes that no MPI launcher has
   started. `command` and its CONFIG are what was typed. */
co_status cli_check_started(const char *command, const char *config);

/* What a file of the user's is that a command replaces. */
typedef enum cli_output { CLI_ONNX, CLI_SAFETENSORS, CLI_PACK, CLI_PLOT } cli_output;
/* A file of that kind alone is replaced, and none of `inputs`, which NULL ends. */
co_status cli_check_output(const char *path, cli_output kind, const char *const *inputs);

/* --- data_source.c --- */

/* A data set by "FILE.yaml", a config, or by the value of `data:` in one. */
typedef struct cli_data {
    co_config *config;     /* owned */
    const co_value *value; /* in it */
} cli_data;
co_status cli_data_open(cli_data *out, const char *text, const cli_list *set);
void cli_data_close(cli_data *source);

/* --- network.c --- */

/* A config's network in this process: for looking at, not for training. */
typedef struct cli_network {
    co_spec spec;
    co_shape sample; /* (C, H, W) */
    int64_t classes;
    uint64_t batch;  /* samples of one rank in a step: the largest share */
    co_model *model; /* owned */
    co_plan *plan;   /* owned; of `batch`, with backward; NULL until compiled */
} cli_network;

/* Opens the config's training data to learn what the samples look like. */
co_status cli_network_open(cli_network *out, const co_train_options *options);
co_status cli_network_compile(cli_network *net);
void cli_network_close(cli_network *net);

/* --- configs.c --- */

#define CLI_MAX_PATH 4096

/* The file that CONFIG means: `name` itself where there is such a file, else the config of that
   name that came with the program, which is logged. CO_E_USAGE: neither, and what looks like it. */
co_status cli_config_find(char out[CLI_MAX_PATH], const char *name);
/* Names of those that came with the program, a line each. */
void cli_configs_print(void);

/* --- plugins.c --- */

/* Of a command with the option `plugin`: its files, and those of the config that it was given. */
co_status cli_plugins_load(const co_command *command, const void *options,
                           const char *const *argument);

/* The row of that option. */
#define CLI_PLUGIN_OPTION(options)                                                                 \
    {                                                                                              \
        "plugin", 0, CLI_LIST, offsetof(options, plugins), "FILE", 0, 0,                           \
            "load this plugin first; repeatable"                                                   \
    }

/* --- inspect_run.c --- */

/* Whether a folder is a run's, and what it holds. */
bool cli_inspect_is_run(const char *dir);
co_status cli_inspect_run(const char *dir);

/* --- inspect_checkpoint.c --- */

/* Shows a checkpoint's folder, after checking all of it. */
co_status cli_inspect_checkpoint(const char *folder);

/* --- commands: one file each --- */

extern const co_command co_command_train, co_command_eval, co_command_list, co_command_doctor,
    co_command_data_info, co_command_data_pack, co_command_data_partition, co_command_inspect,
    co_command_compare, co_command_bench_train, co_command_bench_comm, co_command_bench_data,
    co_command_bench_ops, co_command_export, co_command_import, co_command_ctl;

#endif
