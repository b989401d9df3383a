/*
 * source.h - weights that a command is given, and the network that they belong to.
 */
#ifndef CO_CLI_SOURCE_H
#define CO_CLI_SOURCE_H

#include "cli/cli.h"

#define SOURCE_MAX_PATH 4096

typedef struct cli_source {
    char weights[SOURCE_MAX_PATH]; /* a .safetensors file */
    char config[SOURCE_MAX_PATH];
} cli_source;

/* What `path` is: a run directory, a checkpoint's folder, or a file. Of a run directory
   `checkpoint` ("best", "latest" or a step; NULL) chooses; by default its final weights and,
   while there are none, the latest checkpoint. The config is `config`, or if that is NULL the
   config.yaml of the run that the weights are in. CO_E_DATA when there are no weights, CO_E_USAGE
   when there is no config. */
co_status cli_source_find(cli_source *out, const char *path, const char *checkpoint,
                          const char *config);

/* "3,224,224" to a shape of three sizes from 1 to 65,536. */
co_status cli_source_parse_shape(co_shape *out, const char *text);

/* The config's network with these weights, as cli_network_open has it; the plan is not compiled.
   Its samples are like `shape` (NULL: what the file says of itself, else the config's data), and of
   as many classes as the file says, else the data. */
co_status cli_source_open(cli_network *out, const co_train_options *options, const char *weights,
                          const char *shape);

#endif
