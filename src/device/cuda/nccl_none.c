/* nccl_none.c - a build without the header of NCCL. */
#include "device/cuda/cuda.h"
#include "device/cuda/nccl.h"

static co_status none_refuse(void)
{
    return co_fail(CO_E_UNSUPPORTED, "cuda: NCCL is not in this build; install its header (CUDA's "
                                     "repository: libnccl-dev), and build again");
}

co_status co_cuda_nccl(char *out, size_t size)
{
    (void)out;
    (void)size;
    return none_refuse();
}

co_status cuda_nccl_check(void)
{
    return none_refuse();
}

co_status cuda_nccl_make_id(unsigned char id[CUDA_NCCL_ID])
{
    (void)id;
    return none_refuse();
}

co_status cuda_nccl_join(cuda_nccl **out, co_device *device, const unsigned char id[CUDA_NCCL_ID],
                         int rank, int ranks)
{
    (void)out;
    (void)device;
    (void)id;
    (void)rank;
    (void)ranks;
    return none_refuse();
}

co_status cuda_nccl_ready(bool *ready, const cuda_nccl *nccl)
{
    (void)ready;
    (void)nccl;
    return none_refuse();
}

co_status cuda_nccl_run(cuda_nccl *nccl, co_queue *queue, const cuda_nccl_op *op, size_t count)
{
    (void)nccl;
    (void)queue;
    (void)op;
    (void)count;
    return none_refuse();
}

co_status cuda_nccl_leave(cuda_nccl *nccl)
{
    (void)nccl;
    return none_refuse();
}

void cuda_nccl_destroy(cuda_nccl *nccl)
{
    (void)nccl;
}

void cuda_nccl_abort(cuda_nccl *nccl)
{
    (void)nccl;
}

bool cuda_nccl_registers(void)
{
    return false;
}

bool cuda_nccl_alloc(void **out, size_t bytes)
{
    (void)out;
    (void)bytes;
    return false;
}

void cuda_nccl_free(void *block)
{
    (void)block;
}

co_status cuda_nccl_register(void **handle, cuda_nccl *nccl, void *at, size_t bytes)
{
    (void)handle;
    (void)nccl;
    (void)at;
    (void)bytes;
    return none_refuse();
}

void cuda_nccl_deregister(cuda_nccl *nccl, void *handle)
{
    (void)nccl;
    (void)handle;
}
