/* source.h - the weights that a command is given, and their network. */
#ifndef CO_CLI_SOURCE_H
#define CO_CLI_SOURCE_H

#include "cli/cli.h"

#define SOURCE_MAX_PATH 4096

typedef struct cli_source {
    char weights[SOURCE_MAX_PATH]; /* a .safetensors file */
    char config[SOURCE_MAX_PATH];
    char run_dir[SOURCE_MAX_PATH]; /* "": the config is not that of a run with these weights */
} cli_source;

/* Find weights and config. `path` is a run directory, a checkpoint's folder, or a file. In a run
   directory `checkpoint` ("best", "latest", a step) chooses; NULL: the final weights or, if there
   are none yet, the latest checkpoint. The config is `config` or, if NULL, the config.yaml of the
   weights' run. CO_E_DATA: no weights; CO_E_USAGE: no config. */
co_status cli_source_find(cli_source *out, const char *path, const char *checkpoint,
                          const char *config);

/* Open the config's network with these weights, like cli_network_open; the plan is not compiled.
   The shape of a sample is `shape`, or if NULL the file's, else the data's; the number of classes
   is the file's, else the data's. */
co_status cli_source_open(cli_network *out, const co_train_options *options, const char *weights,
                          const char *shape);

#endif
