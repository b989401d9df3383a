/*
 * nccl.c - NCCL, opened at run time. Its communicators do not block: a call that needs other ranks
 * returns at once, and whoever made it asks whether it has been accepted.
 */
#include "device/cuda/nccl.h"

#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "device/cuda/internal.h"

#define NCCL_LIBRARY     "nccl"
#define NCCL_MAJOR_KNOWN 2
#define NCCL_OLDEST      21800 /* 2.18 */

#define NCCL_FUNCTIONS(X)                                                                          \
    X(ncclGetVersion)                                                                              \
    X(ncclGetUniqueId)                                                                             \
    X(ncclGetErrorString)                                                                          \
    X(ncclGetLastError)                                                                            \
    X(ncclCommInitRankConfig)                                                                      \
    X(ncclCommGetAsyncError)                                                                       \
    X(ncclCommFinalize)                                                                            \
    X(ncclCommDestroy)                                                                             \
    X(ncclCommAbort)                                                                               \
    X(ncclGroupStart)                                                                              \
    X(ncclGroupEnd)                                                                                \
    X(ncclAllReduce)                                                                               \
    X(ncclReduce)                                                                                  \
    X(ncclBroadcast)                                                                               \
    X(ncclAllGather)                                                                               \
    X(ncclReduceScatter)                                                                           \
    X(ncclSend)                                                                                    \
    X(ncclRecv)

/* Since 2.19; it works without them. */
#define NCCL_BUFFER_FUNCTIONS(X)                                                                   \
    X(ncclMemAlloc)                                                                                \
    X(ncclMemFree)                                                                                 \
    X(ncclCommRegister)                                                                            \
    X(ncclCommDeregister)

typedef struct nccl_calls {
    NCCL_FUNCTIONS(CUDA_MEMBER)
} nccl_calls;

typedef struct nccl_buffer_calls {
    NCCL_BUFFER_FUNCTIONS(CUDA_MEMBER)
} nccl_buffer_calls;

static const char *const nccl_names[] = {NCCL_FUNCTIONS(CUDA_NAME)};
static const char *const nccl_buffer_names[] = {NCCL_BUFFER_FUNCTIONS(CUDA_NAME)};

static pthread_mutex_t nccl_lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock until it is open, then constant. */
static int nccl_version;
static nccl_calls nccl;
static nccl_buffer_calls nccl_buffer; /* all NULL: the library is older */

struct cuda_nccl {
    const cuda_device *device; /* borrowed */
    ncclComm_t comm;
};

_Static_assert(sizeof(ncclUniqueId) == CUDA_NCCL_ID, "an id is as long as others think");

/* ---- the library ---- */

static co_status nccl_open(void)
{
    const cuda_library library = {nccl_names, sizeof(nccl) / sizeof(void *), &nccl};
    const cuda_library buffers = {nccl_buffer_names, sizeof(nccl_buffer) / sizeof(void *),
                                  &nccl_buffer};
    int version = 0;

    if (nccl_version)
        return CO_OK;
    if (!cuda_open_library(&library, NCCL_LIBRARY, NCCL_MAJOR_KNOWN, NCCL_MAJOR_KNOWN))
        return co_fail(CO_E_UNSUPPORTED,
                       "cuda: NCCL is missing (lib" NCCL_LIBRARY ".so.2); install "
                       "it (CUDA's repository: libnccl2)");
    if (nccl.ncclGetVersion(&version) != ncclSuccess || version < NCCL_OLDEST)
        return co_fail(CO_E_UNSUPPORTED, "cuda: NCCL %d.%d is too old; install 2.18 or later",
                       version / 10000, version / 100 % 100);
    if (!cuda_open_library(&buffers, NCCL_LIBRARY, NCCL_MAJOR_KNOWN, NCCL_MAJOR_KNOWN))
        nccl_buffer = (nccl_buffer_calls){NULL};
    nccl_version = version;
    return CO_OK;
}

co_status cuda_nccl_check(void)
{
    co_status st;

    pthread_mutex_lock(&nccl_lock);
    st = nccl_open();
    pthread_mutex_unlock(&nccl_lock);
    return st;
}

co_status co_cuda_nccl(char *out, size_t size)
{
    CO_TRY(cuda_nccl_check());
    snprintf(out, size, "NCCL %d.%d.%d", nccl_version / 10000, nccl_version / 100 % 100,
             nccl_version % 100);
    return CO_OK;
}

static co_status nccl_fail(ncclResult_t result, ncclComm_t comm, const char *what)
{
    const char *more = nccl.ncclGetLastError(comm);

    return co_fail(CO_E_FAILED,
                   "cuda: NCCL: %s: %s (%d)%s%s; NCCL_DEBUG=WARN in the environment shows more",
                   what, nccl.ncclGetErrorString(result), (int)result, more && *more ? ": " : "",
                   more ? more : "");
}

/* What has begun and is not done is no failure. */
static co_status nccl_begun(ncclResult_t result, ncclComm_t comm, const char *what)
{
    return result == ncclSuccess || result == ncclInProgress ? CO_OK
                                                             : nccl_fail(result, comm, what);
}

/* ---- a communicator ---- */

co_status cuda_nccl_make_id(unsigned char id[CUDA_NCCL_ID])
{
    ncclUniqueId made;
    ncclResult_t result;

    CO_TRY(cuda_nccl_check());
    result = nccl.ncclGetUniqueId(&made);
    if (result != ncclSuccess)
        return nccl_fail(result, NULL, "no id for the ranks");
    memcpy(id, made.internal, CUDA_NCCL_ID);
    return CO_OK;
}

co_status cuda_nccl_join(cuda_nccl **out, co_device *device, const unsigned char id[CUDA_NCCL_ID],
                         int rank, int ranks)
{
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId all;
    cuda_nccl *n;

    CO_TRY(cuda_nccl_check());
    CO_TRY(cuda_enter((const cuda_device *)device));
    n = co_calloc(1, sizeof(*n));
    if (!n)
        return CO_E_NOMEM;
    n->device = (const cuda_device *)device;
    ((cuda_device *)device)->nccl = true;
    memcpy(all.internal, id, CUDA_NCCL_ID);
    config.blocking = 0;
    *out = n;
    return nccl_begun(nccl.ncclCommInitRankConfig(&n->comm, ranks, all, rank, &config), NULL,
                      "ranks do not find each other");
}

co_status cuda_nccl_ready(bool *ready, const cuda_nccl *n)
{
    ncclResult_t state = ncclSuccess, result;

    result = nccl.ncclCommGetAsyncError(n->comm, &state);
    if (result == ncclSuccess)
        result = state;
    *ready = result == ncclSuccess;
    return nccl_begun(result, n->comm, "it has failed");
}

co_status cuda_nccl_leave(cuda_nccl *n)
{
    CO_TRY(cuda_enter(n->device));
    return nccl_begun(nccl.ncclCommFinalize(n->comm), n->comm, "it does not end");
}

void cuda_nccl_destroy(cuda_nccl *n)
{
    if (n && n->comm && cuda_enter(n->device) == CO_OK)
        (void)nccl.ncclCommDestroy(n->comm);
    co_free(n);
}

void cuda_nccl_abort(cuda_nccl *n)
{
    if (n && n->comm && cuda_enter(n->device) == CO_OK)
        (void)nccl.ncclCommAbort(n->comm);
    co_free(n);
}

/* ---- buffers ---- */

bool cuda_nccl_registers(void)
{
    return nccl_buffer.ncclCommRegister != NULL;
}

bool cuda_nccl_alloc(void **out, size_t bytes)
{
    return nccl_buffer.ncclMemAlloc(out, bytes) == ncclSuccess;
}

void cuda_nccl_free(void *block)
{
    (void)nccl_buffer.ncclMemFree(block);
}

co_status cuda_nccl_register(void **handle, cuda_nccl *n, void *at, size_t bytes)
{
    ncclResult_t result;

    CO_TRY(cuda_enter(n->device));
    result = nccl_buffer.ncclCommRegister(n->comm, at, bytes, handle);
    return result == ncclSuccess ? CO_OK : nccl_fail(result, n->comm, "no buffer is registered");
}

void cuda_nccl_deregister(cuda_nccl *n, void *handle)
{
    if (cuda_enter(n->device) == CO_OK)
        (void)nccl_buffer.ncclCommDeregister(n->comm, handle);
}

/* ---- operations ---- */

static const ncclDataType_t nccl_types[CO_DTYPE_COUNT] = {
    [CO_F32] = ncclFloat32, [CO_F64] = ncclFloat64,   [CO_I32] = ncclInt32,  [CO_I64] = ncclInt64,
    [CO_U8] = ncclUint8,    [CO_BF16] = ncclBfloat16, [CO_F16] = ncclFloat16};

static const ncclRedOp_t nccl_ops[CO_REDUCE_OP_COUNT] = {[CO_SUM] = ncclSum,
                                                         [CO_PROD] = ncclProd,
                                                         [CO_MIN] = ncclMin,
                                                         [CO_MAX] = ncclMax,
                                                         [CO_AVG] = ncclAvg};

static ncclResult_t nccl_give(const cuda_nccl *n, CUstream stream, const cuda_nccl_op *o)
{
    const ncclDataType_t type = nccl_types[o->dtype];

    switch (o->kind) {
    case CUDA_NCCL_ALLREDUCE:
        return nccl.ncclAllReduce(o->in, o->out, o->count, type, nccl_ops[o->op], n->comm, stream);
    case CUDA_NCCL_REDUCE:
        return nccl.ncclReduce(o->in, o->out, o->count, type, nccl_ops[o->op], o->peer, n->comm,
                               stream);
    case CUDA_NCCL_BROADCAST:
        return nccl.ncclBroadcast(o->out, o->out, o->count, type, o->peer, n->comm, stream);
    case CUDA_NCCL_ALLGATHER:
        return nccl.ncclAllGather(o->in, o->out, o->count, type, n->comm, stream);
    case CUDA_NCCL_REDUCE_SCATTER:
        return nccl.ncclReduceScatter(o->in, o->out, o->count, type, nccl_ops[o->op], n->comm,
                                      stream);
    case CUDA_NCCL_SEND:
        return nccl.ncclSend(o->in, o->count, type, o->peer, n->comm, stream);
    default:
        return nccl.ncclRecv(o->out, o->count, type, o->peer, n->comm, stream);
    }
}

co_status cuda_nccl_run(cuda_nccl *n, co_queue *queue, const cuda_nccl_op *op, size_t count)
{
    CUstream stream = ((const cuda_queue *)queue)->stream;
    ncclResult_t result, ended;

    CO_TRY(cuda_enter(n->device));
    result = nccl.ncclGroupStart();
    if (result != ncclSuccess)
        return nccl_fail(result, n->comm, "operations are refused");
    for (size_t i = 0; i < count && (result == ncclSuccess || result == ncclInProgress); i++)
        result = nccl_give(n, stream, &op[i]);
    ended = nccl.ncclGroupEnd();
    CO_TRY(nccl_begun(result, n->comm, "an operation is refused"));
    return nccl_begun(ended, n->comm, "operations are refused");
}
