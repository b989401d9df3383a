/*
 * source.c - finds the weights and the config that a command means, and builds the network.
 *
 * Files written by Cohort record the shape of their samples, so that the data need not be there;
 * for others the config's data is opened. Does not train and starts no rank.
 */
#include "cli/source.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/fs.h"
#include "data/data.h"
#include "state/checkpoint.h"

#define SOURCE_MAX_SIZE    65536 /* of each dimension of a sample */
#define SOURCE_MAX_CLASSES (1 << 20)

/* For files found in a run directory, not named by the user. */
static const co_open_rule source_rule = {.status = CO_E_DATA, .own = true};
static const co_open_rule source_config_rule = {
    .status = CO_E_USAGE, .own = true, .max = CO_CONFIG_MAX_BYTES};

/* The weights of one checkpoint of a run; `which` as for co_checkpoint_find. */
static co_status source_find_checkpoint(cli_source *out, const char *run_dir, const char *which)
{
    char folder[CO_CHECKPOINT_MAX_PATH];

    CO_TRY(co_checkpoint_find(folder, run_dir, which));
    return co_checkpoint_weights(out->weights, folder);
}

static co_status source_find_in_folder(cli_source *out, const char *path, const char *checkpoint)
{
    char manifest[SOURCE_MAX_PATH];

    if (checkpoint)
        return source_find_checkpoint(out, path, checkpoint);
    CO_TRY(co_fs_join(manifest, sizeof(manifest), path, CO_MANIFEST_NAME));
    if (co_fs_exists(manifest))
        return co_checkpoint_weights(out->weights, path);
    CO_TRY(co_fs_join(out->weights, sizeof(out->weights), path, "final.safetensors"));
    if (co_fs_exists(out->weights))
        return co_open_check(out->weights, &source_rule);
    if (source_find_checkpoint(out, path, "latest") == CO_OK)
        return CO_OK;
    if (co_error_status() != CO_E_DATA)
        return co_error_status();
    return co_fail(CO_E_DATA, "%s: has no final.safetensors, and no checkpoint that is whole",
                   path);
}

static co_status source_find_weights(cli_source *out, const char *path, const char *checkpoint)
{
    struct stat info;

    if (stat(path, &info) != 0)
        return co_fail(CO_E_DATA, "%s: no such run directory or weights file", path);
    if (S_ISDIR(info.st_mode))
        return source_find_in_folder(out, path, checkpoint);
    if (checkpoint)
        return co_fail(CO_E_USAGE, "--checkpoint is for a run directory; %s is a file", path);
    return co_fs_join(out->weights, sizeof(out->weights), path, "");
}

/* The nearest config.yaml, in the weights' folder or above. */
static co_status source_find_config(cli_source *out)
{
    const char *name;

    if (!co_fs_find_above(out->config, sizeof(out->config), out->weights, "config.yaml"))
        return co_fail(CO_E_USAGE,
                       "no config.yaml beside %s: name the weights' config with --config CONFIG",
                       out->weights);
    name = strrchr(out->config, '/');
    snprintf(out->run_dir, sizeof(out->run_dir), "%.*s",
             name && name != out->config ? (int)(name - out->config) : 1, name ? out->config : ".");
    return co_open_check(out->config, &source_config_rule);
}

co_status cli_source_find(cli_source *out, const char *path, const char *checkpoint,
                          const char *config)
{
    out->run_dir[0] = '\0';
    CO_TRY(source_find_weights(out, path, checkpoint));
    if (config)
        return co_fs_join(out->config, sizeof(out->config), config, "");
    return source_find_config(out);
}

static bool source_read_sizes(int64_t *out, int n, const char *text, int64_t max)
{
    for (int i = 0; i < n; i++) {
        char *end;

        if (*text < '0' || *text > '9')
            return false;
        out[i] = strtoll(text, &end, 10);
        if (out[i] < 1 || out[i] > max || *end != (i + 1 < n ? ',' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}

static co_status source_parse_shape(co_shape *out, const char *text)
{
    for (out->ndim = 3; out->ndim > 0; out->ndim -= 2)
        if (source_read_sizes(out->dim, out->ndim, text, SOURCE_MAX_SIZE))
            return CO_OK;
    return co_fail(CO_E_USAGE,
                   "--shape takes channels, height and width from 1 to %d, e.g. 3,224,224, or the "
                   "length of a sequence, not '%s'",
                   SOURCE_MAX_SIZE, text);
}

/* Shape and classes from the file's metadata; 0 dimensions or 0 classes where it has none. */
static void source_read_metadata(cli_network *net, const co_safetensors *file)
{
    const char *sample = co_safetensors_metadata(file, CO_MODEL_SAMPLE_KEY);
    const char *classes = co_safetensors_metadata(file, CO_MODEL_CLASSES_KEY);

    for (int n = 1; sample && n < CO_MAX_DIMS && !net->sample.ndim; n++)
        if (source_read_sizes(net->sample.dim, n, sample, SOURCE_MAX_SIZE))
            net->sample.ndim = n;
    if (!classes || !source_read_sizes(&net->classes, 1, classes, SOURCE_MAX_CLASSES))
        net->classes = 0;
}

static co_status source_read_data(cli_network *net)
{
    co_dataset *data;

    if (net->sample.ndim && net->classes)
        return CO_OK;
    CO_TRY(co_dataset_open_value(&data, net->spec.data, net->spec.config, CO_SPLIT_TEST));
    if (!net->sample.ndim)
        net->sample = *co_dataset_shape(data);
    if (!net->classes)
        net->classes = co_dataset_classes(data);
    co_dataset_destroy(data);
    return CO_OK;
}

static co_status source_build(cli_network *net, const char *weights)
{
    CO_TRY(co_spec_create_model(&net->model, &net->spec, &net->sample, net->classes));
    return co_model_load(net->model, weights);
}

co_status cli_source_open(cli_network *out, const co_train_options *options, const char *weights,
                          const char *shape)
{
    co_safetensors *file = NULL;
    co_status st;

    memset(out, 0, sizeof(*out));
    CO_TRY(co_safetensors_open(&file, weights));
    source_read_metadata(out, file);
    co_safetensors_close(file);
    st = co_spec_open(&out->spec, options);
    if (st == CO_OK && shape)
        st = source_parse_shape(&out->sample, shape);
    if (st == CO_OK)
        st = source_read_data(out);
    if (st == CO_OK)
        st = source_build(out, weights);
    if (st != CO_OK)
        cli_network_close(out);
    return st;
}
