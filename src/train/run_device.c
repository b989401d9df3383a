/*
 * run_device.c - ranks take their GPUs: rank i of a machine the GPU i. With ranks_per_gpu as many
 * ranks share one as there must, up to that number.
 *
 * Only ranks ask for GPUs, and no process that starts ranks: CUDA does not survive a fork. So what
 * is missing is found when the ranks have started.
 */
#include "train/run_device.h"

#include <stdio.h>
#include <string.h>

#include "backends/backends.h"
#include "comm/nccl.h"
#include "comm/queued.h"
#include "core/log.h"
#include "core/roof.h"
#include "device/cuda/cuda.h"
#include "train/trainer.h"

#define RUN_DEVICE_MAX_SHARE 64

static const char *const run_device_names[] = {"cpu", "auto", "cuda", NULL};

enum { RUN_EXCHANGE_AUTO, RUN_EXCHANGE_NCCL, RUN_EXCHANGE_HOST };
static const char *const run_exchange_names[] = {"auto", "nccl", "host", NULL};

static const char *const run_device_steps_names[] = {"auto", NULL};

const co_key co_run_device_keys[] = {
    {"name", CO_KEY_CHOICE, offsetof(co_run_device, name), "cpu", 0, 0, run_device_names,
     "cpu, cuda for NVIDIA's GPUs, or auto: GPUs if each rank of the machine has one"},
    {"index", CO_KEY_INT, offsetof(co_run_device, index), "-1", -1, CO_CUDA_MAX_GPUS - 1, NULL,
     "of the one GPU for all ranks of a machine; -1: rank i takes GPU i"},
    {"ranks_per_gpu", CO_KEY_INT, offsetof(co_run_device, ranks_per_gpu), "1", 1,
     RUN_DEVICE_MAX_SHARE, NULL,
     "most ranks of a machine that share a GPU, if it has fewer GPUs than ranks"},
    {"tf32", CO_KEY_BOOL, offsetof(co_run_device, tf32), "false", 0, 0, NULL,
     "products of fp32 on the GPU's tensor cores, which use 10 bits of a factor's mantissa"},
    {"graphs", CO_KEY_BOOL, offsetof(co_run_device, graphs), "true", 0, 0, NULL,
     "a step as one CUDA graph for each size of batch; false: kernel after kernel"},
    {"steps_per_launch", CO_KEY_INT, offsetof(co_run_device, steps_per_launch), "auto", 1,
     CO_RUN_DEVICE_STEPS, run_device_steps_names,
     "steps in one CUDA graph, where the samples are in the GPU's memory; auto: several for small "
     "networks"},
    {"exchange", CO_KEY_CHOICE, offsetof(co_run_device, exchange), "auto", 0, 0, run_exchange_names,
     "nccl: between GPUs, each of one rank; host: through the host's memory; auto: nccl if it is "
     "there"},
    {"data_mib", CO_KEY_INT, offsetof(co_run_device, data_mib), "-1", -1, 1 << 24, NULL,
     "most of the GPU's memory for samples, which are then drawn there; -1: a quarter of what is "
     "free; 0: batches are read on the host"},
    CO_KEYS_END,
};

co_status co_run_device_read(co_run_device *out, const co_value *value, co_arena *arena)
{
    const bool scalar = value && value->kind == CO_VALUE_SCALAR;
    co_value name = {.kind = CO_VALUE_SCALAR}, *item = &name;
    const char *key = "name";
    co_value map = {.kind = CO_VALUE_MAP, .n = 1, .item = &item, .key = &key};

    if (scalar) {
        name = *value;
        map.source = value->source;
        map.line = value->line;
        map.column = value->column;
    }
    CO_TRY(co_keys_read(out, co_run_device_keys, scalar ? &map : value, "device", arena));
    if (out->index >= 0 && out->name != CO_RUN_DEVICE_CUDA)
        return co_value_fail(value, "device: index goes only with `name: cuda`");
    if (out->tf32 && out->name == CO_RUN_DEVICE_CPU)
        return co_value_fail(value, "device: tf32 is of GPUs");
    if (out->data_mib >= 0 && out->name == CO_RUN_DEVICE_CPU)
        return co_value_fail(value, "device: data_mib is of GPUs");
    if (out->steps_per_launch > 0 && out->name == CO_RUN_DEVICE_CPU)
        return co_value_fail(value, "device: steps_per_launch is of GPUs");
    if (out->ranks_per_gpu > 1 && out->name == CO_RUN_DEVICE_CPU)
        return co_value_fail(value, "device: ranks_per_gpu is of GPUs");
    return CO_OK;
}

/* Settings of the CPU's kernels, and ranks that share weights in its memory. */
static co_status run_device_check(const co_job *job)
{
    const co_spec *spec = &job->spec;
    const char *what = strcmp(spec->backend, "auto") != 0                            ? "backend"
                       : spec->kernels.layers || co_kernels_are_open(&spec->kernels) ? "kernels"
                       : spec->convolution != CO_SPEC_CONVOLUTION_AUTO               ? "convolution"
                                                                                     : NULL;

    if (job->replica)
        return co_value_fail(spec->strategy,
                             "the strategy '%s' has weights that ranks share in "
                             "memory of the CPU; train with `device: cpu`",
                             co_spec_strategy_name(spec));
    if (!what)
        return CO_OK;
    return co_value_fail(spec->device_value,
                         "%s: chooses among kernels of the CPU; leave it out, or train with "
                         "`device: cpu`",
                         what);
}

/* The place of this rank on its machine, and how many there are; `comm` NULL: the only one. */
static int run_device_local(int *ranks, co_comm *comm)
{
    const co_comm *local = comm ? co_comm_local(comm) : NULL;

    *ranks = local ? co_comm_size(local) : 1;
    return local ? co_comm_rank(local) : 0;
}

/* Too few GPUs, though each takes as many ranks as the config allows. */
static co_status run_device_too_few(const co_run_device *device, int ranks, int gpus,
                                    const co_cuda_machine *machine)
{
    const int share = (ranks + gpus - 1) / gpus;
    char sharing[96] = "";

    if (share <= RUN_DEVICE_MAX_SHARE)
        snprintf(sharing, sizeof(sharing),
                 ", or let %d share one: `device: {name: cuda, "
                 "%sranks_per_gpu: %d}`",
                 share, device->index >= 0 ? "index: ..., " : "", share);
    return co_fail(CO_E_UNSUPPORTED,
                   "device: %d ranks of this machine, and %d of NVIDIA's GPUs%s (%s), each for %d: "
                   "start fewer ranks%s",
                   ranks, gpus, device->index >= 0 ? " by its index" : "", machine->gpu[0].name,
                   (int)device->ranks_per_gpu, sharing);
}

/* What a rank has found. */
typedef struct run_device_place {
    int index;  /* of its GPU */
    bool alone; /* no other rank has it */
} run_device_place;

/* CO_E_UNSUPPORTED: there is no GPU for the rank. */
static co_status run_device_find(run_device_place *out, co_cuda_machine *machine,
                                 const co_run_device *device, co_comm *comm)
{
    int ranks, place = run_device_local(&ranks, comm), gpus;

    CO_TRY(co_cuda_probe(machine));
    gpus = device->index >= 0 ? 1 : machine->n;
    if (ranks > gpus * (int)device->ranks_per_gpu)
        return run_device_too_few(device, ranks, gpus, machine);
    out->index = device->index >= 0 ? (int)device->index : place / ((ranks + gpus - 1) / gpus);
    out->alone = ranks <= gpus;
    return CO_OK;
}

/* With `auto` all ranks use GPUs, or none does. */
static co_status run_device_agree(bool *gpu, co_comm *comm)
{
    int64_t all = *gpu;

    CO_TRY(co_comm_allreduce(comm, &all, &all, 1, CO_I64, CO_MIN));
    *gpu = all != 0;
    return CO_OK;
}

/* NCCL beside the transport, if the config lets it and all ranks have it. */
static co_status run_device_connect(co_device *device, int exchange, bool alone, co_comm *comm,
                                    bool quiet)
{
    bool all = alone;
    co_status st;

    if (co_comm_size(comm) == 1 || exchange == RUN_EXCHANGE_HOST)
        return CO_OK;
    CO_TRY(run_device_agree(&all, comm));
    if (!all && exchange == RUN_EXCHANGE_NCCL)
        return co_fail(CO_E_UNSUPPORTED, "device: exchange: nccl needs a GPU for each rank, and "
                                         "some share one; leave it out, or start fewer ranks");
    st = all ? co_nccl_open(comm, device) : CO_E_UNSUPPORTED;
    if (st == CO_E_UNSUPPORTED && exchange == RUN_EXCHANGE_AUTO) {
        if (all && co_comm_rank(comm) == 0 && !quiet)
            co_log(CO_LOG_INFO, "device: ranks exchange through the host's memory; %s",
                   co_error_message());
        return CO_OK;
    }
    return st;
}

co_status co_run_device_open(co_device **out, const co_run_device *device)
{
    co_cuda_options options = {.tf32 = device->tf32};
    co_cuda_machine machine;
    run_device_place place = {0};
    co_status st;

    if (device->name == CO_RUN_DEVICE_CPU)
        return CO_OK;
    st = run_device_find(&place, &machine, device, NULL);
    if (st != CO_OK)
        return device->name == CO_RUN_DEVICE_AUTO ? CO_OK : st;
    options.index = place.index;
    return co_cuda_open(out, &options);
}

co_status co_run_device_join(co_device **out, const co_run_device *wanted, co_comm *comm,
                             bool quiet)
{
    const bool speaks = co_comm_rank(comm) == 0 && !quiet;
    bool gpu = wanted->name != CO_RUN_DEVICE_CPU;
    co_cuda_options options = {.tf32 = wanted->tf32};
    co_cuda_machine machine;
    run_device_place place = {0};

    if (!gpu)
        return CO_OK;
    if (wanted->name == CO_RUN_DEVICE_AUTO) {
        gpu = run_device_find(&place, &machine, wanted, comm) == CO_OK;
        if (!gpu && speaks)
            co_log(CO_LOG_INFO, "device: the CPU; %s", co_error_message());
        CO_TRY(run_device_agree(&gpu, comm));
        if (!gpu)
            return CO_OK;
    } else {
        CO_TRY(run_device_find(&place, &machine, wanted, comm));
    }
    options.index = place.index;
    CO_TRY(co_cuda_open(out, &options));
    CO_TRY(run_device_connect(*out, wanted->exchange, place.alone, comm, quiet));
    if (speaks)
        co_log(CO_LOG_INFO, "device: GPU %d (%s)%s", options.index, machine.gpu[options.index].name,
               comm->nccl ? "; ranks exchange by NCCL" : "");
    return CO_OK;
}

/* Gradients, as NCCL's buffer: sums over ranks take the same part of each. Not with shards, whose
   parts go from there to other memory. */
static co_status run_device_register(const co_job *job, co_comm *comm)
{
    const co_store *store = job->model->store;

    return job->spec.shards ? CO_OK : co_nccl_register(comm, store->grad, store->n * sizeof(float));
}

co_status co_job_enter_device(co_job *job, co_comm *comm)
{
    const co_run_device *wanted = &job->spec.device;
    co_status st;

    if (wanted->name == CO_RUN_DEVICE_CUDA)
        CO_TRY(run_device_check(job));
    CO_TRY(co_run_device_join(&job->device, wanted, comm, job->quiet));
    if (!job->device)
        return CO_OK;
    st = wanted->name == CO_RUN_DEVICE_AUTO ? run_device_check(job) : CO_OK; /* GPUs were found */
    if (st != CO_OK) {
        co_comm_release_devices(comm);
        return st;
    }
    CO_TRY(co_model_move(job->model, job->device, co_backends_on(co_device_name(job->device))));
    return run_device_register(job, comm);
}

co_status co_run_roof(co_roof *out, co_device *device, int threads, int ranks)
{
    return device ? co_cuda_roof(out, device) : co_roof_measure(out, threads, ranks);
}
