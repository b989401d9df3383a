/*
 * network.c - builds and compiles the network of a config as rank 0 would have it.
 *
 * For commands that print a network. Does not train and starts no rank.
 */
#include <string.h>

#include "backends/backends.h"
#include "cli/cli.h"
#include "core/thread.h"
#include "data/data.h"
#include "device/cuda/cuda.h"

static co_status network_read_shape(cli_network *net)
{
    co_dataset *data;

    CO_TRY(co_dataset_open_value(&data, net->spec.data, net->spec.config, CO_SPLIT_TRAIN));
    net->sample = *co_dataset_shape(data);
    net->classes = co_dataset_classes(data);
    co_dataset_destroy(data);
    return CO_OK;
}

static co_status network_build(cli_network *net)
{
    CO_TRY(network_read_shape(net));
    net->batch = co_spec_part(&net->spec);
    return co_spec_create_model(&net->model, &net->spec, &net->sample, net->classes);
}

co_status cli_network_open(cli_network *out, const co_train_options *options)
{
    co_status st;

    memset(out, 0, sizeof(*out));
    CO_TRY(co_spec_open(&out->spec, options));
    st = network_build(out);
    if (st != CO_OK)
        cli_network_close(out);
    return st;
}

co_status cli_network_enter_device(cli_network *net)
{
    CO_TRY(co_run_device_open(&net->device, &net->spec.device));
    if (!net->device)
        return CO_OK;
    return co_model_move(net->model, net->device, co_backends_on(co_device_name(net->device)));
}

co_status cli_network_compile(cli_network *net)
{
    co_plan_options options;

    CO_TRY(cli_network_enter_device(net));
    options = co_model_plan_options(net->model, (int64_t)net->batch, true);
    options.threads = co_thread_cores();
    return co_plan_create(&net->plan, net->model->graph, net->model->store, &options);
}

void cli_network_close(cli_network *net)
{
    co_plan_destroy(net->plan);
    co_model_destroy(net->model);
    co_cuda_close(net->device);
    co_spec_unload(&net->spec);
    memset(net, 0, sizeof(*net));
}
