/* run_device.h - the config key `device`: where ranks train. */
#ifndef CO_TRAIN_RUN_DEVICE_H
#define CO_TRAIN_RUN_DEVICE_H

#include <cohort/comm.h>

#include "core/config.h"

struct co_device;
struct co_job;
struct co_roof;

typedef struct co_run_device {
    int name;      /* co_run_device_name */
    int64_t index; /* of the GPU; -1: by the rank's place among those of its machine */
    int64_t ranks_per_gpu;
    bool tf32, graphs;
    int64_t data_mib;         /* of samples in the GPU's memory; -1: by what is free */
    int64_t steps_per_launch; /* 0: auto */
    int exchange;             /* how ranks exchange what is on GPUs */
} co_run_device;

typedef enum co_run_device_name {
    CO_RUN_DEVICE_CPU = 0,
    CO_RUN_DEVICE_AUTO,
    CO_RUN_DEVICE_CUDA
} co_run_device_name;

/* Most steps in a launch. */
#define CO_RUN_DEVICE_STEPS 16

extern const co_key co_run_device_keys[];

/* A name, or a map; NULL: the CPU. */
co_status co_run_device_read(co_run_device *out, const co_value *value, co_arena *arena);
/* In a rank, before it uses its model: brings that to its device, if it is not the CPU. Collective.
   CO_E_UNSUPPORTED says what is missing. */
co_status co_job_enter_device(struct co_job *job, co_comm *comm);

/* The same for who has no job: *out stays NULL on the CPU; else the caller closes it, by
   co_cuda_close, after co_comm_release_devices. Ranks with a GPU each exchange by NCCL. */
co_status co_run_device_join(struct co_device **out, const co_run_device *wanted, co_comm *comm,
                             bool quiet);

/* For a process that starts no ranks. *out stays NULL on the CPU; else the caller closes it, by
   co_cuda_close. */
co_status co_run_device_open(struct co_device **out, const co_run_device *device);

/* What the rank's GPU can do, measured; NULL: what its `threads` cores can, while `ranks` of the
   machine measure at once. */
co_status co_run_roof(struct co_roof *out, struct co_device *device, int threads, int ranks);

#endif
