/*
 * peer_forward.c - what a network gives for given inputs, as bare floats, for comparisons with
 * other programs.
 *
 *   peer_forward CONFIG WEIGHTS INPUT OUTPUT
 *
 * CONFIG is a config of which the network and the data's shape and classes count; INPUT holds
 * samples (N, C, H, W) as little-endian floats, OUTPUT becomes (N, classes).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "core/fs.h"
#include "core/mem.h"

#define FORWARD_MAX_BYTES ((size_t)1 << 30)

static co_status forward_write(const char *path, const co_plan *plan, size_t n)
{
    co_atomic_file *file;

    CO_TRY(co_atomic_open(&file, path));
    fwrite(co_plan_output(plan), sizeof(float), n, co_atomic_stream(file));
    return co_atomic_commit(file);
}

static co_status forward_run(cli_network *net, const uint8_t *input, size_t bytes, const char *path)
{
    const size_t sample = (size_t)co_shape_count(&net->sample), n = bytes / 4 / sample;
    const co_plan_options options = {.batch = (int64_t)n, .backends = net->model->backends};
    uint32_t *index = co_calloc(n ? n : 1, sizeof(*index));
    const co_run run = {.sample = index};
    co_status st = index ? CO_OK : CO_E_NOMEM;

    if (st == CO_OK && (n == 0 || n * sample * 4 != bytes))
        st = co_fail(CO_E_DATA, "the input has no whole number of samples");
    if (st == CO_OK)
        st = co_model_setup(net->model, 1);
    if (st == CO_OK)
        st = co_plan_create(&net->plan, net->model->graph, net->model->store, &options);
    if (st == CO_OK) {
        memcpy(co_plan_input(net->plan), input, bytes);
        memset(co_plan_label(net->plan), 0, n * sizeof(int32_t));
        st = co_plan_forward(net->plan, &run);
    }
    if (st == CO_OK)
        st = forward_write(path, net->plan, n * (size_t)net->model->classes);
    co_free(index);
    return st;
}

int main(int argc, char **argv)
{
    cli_network net = {.model = NULL};
    uint8_t *input = NULL;
    size_t bytes = 0;
    co_status st = CO_E_USAGE;

    if (argc == 5)
        st = cli_network_open(&net, &(co_train_options){.config_path = argv[1]});
    if (st == CO_OK)
        st = co_model_load(net.model, argv[2]);
    if (st == CO_OK)
        st = co_fs_read(&input, &bytes, argv[3], FORWARD_MAX_BYTES, CO_E_DATA);
    if (st == CO_OK)
        st = forward_run(&net, input, bytes, argv[4]);
    if (st != CO_OK)
        fprintf(stderr, "peer_forward: %s\n", co_error_message());
    co_free(input);
    cli_network_close(&net);
    return st == CO_OK ? 0 : 1;
}
