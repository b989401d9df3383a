/*
 * cuda.h - NVIDIA GPUs. The driver and its compiler are opened when they are first asked for;
 * nothing is linked. A build without CUDA's headers has the same functions, which refuse.
 *
 * A process that has asked for a GPU must not fork ranks that use one: CUDA does not survive that.
 */
#ifndef CO_DEVICE_CUDA_CUDA_H
#define CO_DEVICE_CUDA_CUDA_H

#include <stdint.h>

#include "core/roof.h"
#include "device/device.h"

#define CO_CUDA_MAX_GPUS 16

typedef struct co_cuda_gpu {
    char name[128];   /* "NVIDIA H200" */
    int major, minor; /* compute capability */
    uint64_t memory;  /* bytes */
} co_cuda_gpu;

typedef struct co_cuda_machine {
    char driver[96]; /* "580.82.07, CUDA 13.0" */
    int n;           /* at most CO_CUDA_MAX_GPUS */
    co_cuda_gpu gpu[CO_CUDA_MAX_GPUS];
    uint32_t peers[CO_CUDA_MAX_GPUS]; /* bit k: it can read and write the memory of GPU k itself */
} co_cuda_machine;

/* CO_E_UNSUPPORTED, with the remedy: not in this build, no driver, one that is too old, no GPU. */
co_status co_cuda_probe(co_cuda_machine *out);
/* "NVRTC 13.0"; CO_E_UNSUPPORTED where it is missing, with the package that has it. */
co_status co_cuda_compiler(char *out, size_t size);

/* "cuBLASLt 13.0.2", likewise. Products of matrices work without it, more slowly. */
co_status co_cuda_blas(char *out, size_t size);
/* "cuDNN 9.13.0", likewise, for convolutions. */
co_status co_cuda_dnn(char *out, size_t size);
/* "NCCL 2.28.9", likewise, which moves data between the GPUs of several ranks. */
co_status co_cuda_nccl(char *out, size_t size);

typedef struct co_cuda_options {
    int index; /* of the GPU */
    bool tf32; /* products of fp32 on tensor cores, by 10 bits of each factor's mantissa */
} co_cuda_options;

/* A GPU as a device. CO_E_UNSUPPORTED as above; CO_E_NOMEM. */
co_status co_cuda_open(co_device **out, const co_cuda_options *options);
/* All that it has made is freed; takes NULL. */
void co_cuda_close(co_device *device);

/* What a GPU that is open can do at most, measured in less than a second: multiply-adds in fp32,
   large products in each type by cuBLASLt, bytes moved by a = b + s c. CO_E_UNSUPPORTED: another
   device. */
co_status co_cuda_roof(co_roof *out, co_device *device);

#endif
