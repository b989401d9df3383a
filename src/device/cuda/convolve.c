/*
 * convolve.c - cuDNN, opened at run time: an engine for each graph, and its runs.
 *
 * What the library's documentation calls an engine is a family of kernels; of those that it
 * proposes, in the order of the time that they should take, the first is taken that is
 * deterministic, rounds no operand, and fits into the workspace.
 */
#include "device/cuda/convolve.h"

#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "device/cuda/convolve_graph.h"

#define CONV_LIBRARY   "cudnn"
#define CONV_MAJOR     9
#define CONV_MISSING   "cuDNN is missing"
#define CONV_NO_ENGINE "cuDNN has no deterministic engine for it"
#define CONV_WORKSPACE ((int64_t)256 << 20) /* of an engine, at most */
#define CONV_ENGINES   32                   /* proposals that are looked at */

static const char *const conv_names[] = {CONV_FUNCTIONS(CUDA_NAME)};

/* ---- the library ---- */

static bool conv_load(conv_calls *out)
{
    const cuda_library library = {conv_names, sizeof(*out) / sizeof(void *), out};

    return cuda_open_library(&library, CONV_LIBRARY, CONV_MAJOR, CONV_MAJOR);
}

co_status co_cuda_dnn(char *out, size_t size)
{
    conv_calls call;
    size_t version;

    if (!conv_load(&call))
        return co_fail(CO_E_UNSUPPORTED,
                       "cuda: " CONV_MISSING " (lib" CONV_LIBRARY ".so.%d); "
                       "install it (CUDA's repository: libcudnn9-cuda-13)",
                       CONV_MAJOR);
    version = call.cudnnGetVersion();
    snprintf(out, size, "cuDNN %zu.%zu.%zu", version / 10000, version / 100 % 100, version % 100);
    return CO_OK;
}

static co_status conv_fail(const cuda_dnn *dnn, cudnnStatus_t result, const char *what)
{
    return co_fail(CO_E_FAILED, "cuda: cuDNN: %s: %s (%d)", what,
                   dnn->call.cudnnGetErrorString(result), (int)result);
}

co_status cuda_conv_open(cuda_device *device)
{
    cuda_dnn *dnn = co_calloc(1, sizeof(*dnn));
    cudnnStatus_t result;

    if (!dnn)
        return CO_E_NOMEM;
    if (!conv_load(&dnn->call)) {
        co_free(dnn);
        return CO_OK;
    }
    result = dnn->call.cudnnCreate(&dnn->handle);
    if (result != CUDNN_STATUS_SUCCESS) {
        (void)co_fail(CO_E_FAILED,
                      "cuda: cuDNN does not start: %s (%d); install one that fits the driver, or "
                      "remove it: convolutions then run on our own kernels",
                      dnn->call.cudnnGetErrorString(result), (int)result);
        co_free(dnn);
        return CO_E_FAILED;
    }
    device->dnn = dnn;
    return CO_OK;
}

static void conv_destroy(cuda_conv *c)
{
    const conv_calls *call = &c->device->dnn->call;

    if (c->plan)
        (void)call->cudnnBackendDestroyDescriptor(c->plan);
    while (c->n_own > 0)
        (void)call->cudnnBackendDestroyDescriptor(c->own[--c->n_own]);
    co_free(c);
}

void cuda_conv_close(cuda_device *device)
{
    cuda_dnn *dnn = device->dnn;

    if (!dnn)
        return;
    while (dnn->all) {
        cuda_conv *c = dnn->all;

        dnn->all = c->next;
        conv_destroy(c);
    }
    (void)dnn->call.cudnnDestroy(dnn->handle);
    co_free(dnn);
    device->dnn = NULL;
}

/* ---- choosing ---- */

/* The first `room` elements of an attribute; the library's number may be that of all there are. */
static cudnnStatus_t conv_read(const conv_calls *call, conv_desc from,
                               cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                               int64_t room, int64_t *n, void *out)
{
    const cudnnStatus_t result = call->cudnnBackendGetAttribute(from, name, type, room, n, out);

    if (*n > room)
        *n = room;
    return result;
}

/* Whether what the library notes about the engine rules it out. */
static bool conv_is_ruled_out(const cuda_conv *c, const cudnnBackendNumericalNote_t *note,
                              int64_t n)
{
    const bool exact = c->shape.in == CO_F32 && !c->device->tf32;
    bool out = false;

    for (int64_t i = 0; i < n; i++)
        out = out || note[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
              note[i] == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS ||
              note[i] == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION ||
              (note[i] == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && exact);
    return out;
}

static cudnnStatus_t conv_check_engine(const cuda_conv *c, conv_desc config)
{
    const conv_calls *call = &c->device->dnn->call;
    cudnnBackendNumericalNote_t note[CUDNN_NUMERICAL_NOTE_TYPE_COUNT];
    conv_desc engine = NULL;
    int64_t n = 0;
    cudnnStatus_t result =
        call->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &engine);

    if (result == CUDNN_STATUS_SUCCESS)
        result = call->cudnnBackendGetAttribute(config, CUDNN_ATTR_ENGINECFG_ENGINE,
                                                CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &n, &engine);
    if (result == CUDNN_STATUS_SUCCESS)
        result = conv_read(call, engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                           CUDNN_TYPE_NUMERICAL_NOTE, CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, note);
    if (engine)
        (void)call->cudnnBackendDestroyDescriptor(engine);
    if (result == CUDNN_STATUS_SUCCESS && conv_is_ruled_out(c, note, n))
        result = CUDNN_STATUS_NOT_SUPPORTED;
    return result;
}

/* c->plan and its workspace, if the engine may be taken and works. */
static cudnnStatus_t conv_try(cuda_conv *c, conv_desc config)
{
    const conv_calls *call = &c->device->dnn->call;
    const conv_attribute set[] = {
        {CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &c->device->dnn->handle},
        {CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config}};
    cudnnStatus_t result = conv_check_engine(c, config);
    int64_t n = 0;

    if (result == CUDNN_STATUS_SUCCESS)
        result = CONV_DESCRIBE(&c->plan, call, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, set);
    if (result != CUDNN_STATUS_SUCCESS)
        return result;
    result = call->cudnnBackendGetAttribute(c->plan, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                            CUDNN_TYPE_INT64, 1, &n, &c->workspace);
    if (result == CUDNN_STATUS_SUCCESS && c->workspace <= CONV_WORKSPACE)
        return result;
    (void)call->cudnnBackendDestroyDescriptor(c->plan);
    c->plan = NULL;
    return CUDNN_STATUS_NOT_SUPPORTED;
}

/* The first of the proposals that can be taken. */
static cudnnStatus_t conv_choose(cuda_conv *c, conv_desc graph, cudnnBackendHeurMode_t mode)
{
    const conv_calls *call = &c->device->dnn->call;
    const conv_attribute set[] = {
        {CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &graph},
        {CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode}};
    conv_desc proposals = NULL, config[CONV_ENGINES] = {NULL};
    int64_t n = 0;
    cudnnStatus_t result =
        CONV_DESCRIBE(&proposals, call, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, set);

    if (result != CUDNN_STATUS_SUCCESS)
        return result;
    for (int i = 0; i < CONV_ENGINES && result == CUDNN_STATUS_SUCCESS; i++)
        result = call->cudnnBackendCreateDescriptor(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, &config[i]);
    if (result == CUDNN_STATUS_SUCCESS)
        result = conv_read(call, proposals, CUDNN_ATTR_ENGINEHEUR_RESULTS,
                           CUDNN_TYPE_BACKEND_DESCRIPTOR, CONV_ENGINES, &n, config);
    for (int64_t i = 0; i < n && !c->plan && result == CUDNN_STATUS_SUCCESS; i++)
        (void)conv_try(c, config[i]);
    for (int i = 0; i < CONV_ENGINES; i++)
        if (config[i])
            (void)call->cudnnBackendDestroyDescriptor(config[i]);
    (void)call->cudnnBackendDestroyDescriptor(proposals);
    return result == CUDNN_STATUS_SUCCESS && !c->plan ? CUDNN_STATUS_NOT_SUPPORTED : result;
}

static bool conv_is(const cuda_conv *c, const cuda_conv_shape *s)
{
    const cuda_conv_shape *own = &c->shape;

    return own->kind == s->kind && own->in == s->in && own->out == s->out && own->bias == s->bias &&
           own->bias_type == s->bias_type && own->rated == s->rated &&
           memcmp(own->x, s->x, sizeof(s->x)) == 0 && memcmp(own->w, s->w, sizeof(s->w)) == 0 &&
           memcmp(own->y, s->y, sizeof(s->y)) == 0 &&
           memcmp(own->stride, s->stride, sizeof(s->stride)) == 0 &&
           memcmp(own->padding, s->padding, sizeof(s->padding)) == 0 &&
           memcmp(own->dilation, s->dilation, sizeof(s->dilation)) == 0;
}

static co_status conv_create(cuda_conv **out, const cuda_device *device,
                             const cuda_conv_shape *shape)
{
    cuda_conv *c = co_calloc(1, sizeof(*c));
    conv_desc graph = NULL;
    cudnnStatus_t result;

    if (!c)
        return CO_E_NOMEM;
    c->device = device;
    c->shape = *shape;
    result = conv_describe_graph(&graph, c);
    if (result == CUDNN_STATUS_SUCCESS)
        result = conv_choose(c, graph, CUDNN_HEUR_MODE_A);
    if (graph && !c->plan && !shape->rated)
        result = conv_choose(c, graph, CUDNN_HEUR_MODE_FALLBACK);
    if (result == CUDNN_STATUS_SUCCESS) {
        *out = c;
        return CO_OK;
    }
    conv_destroy(c);
    return co_fail(CO_E_UNSUPPORTED, "cuda: " CONV_NO_ENGINE ": %s (%d)",
                   device->dnn->call.cudnnGetErrorString(result), (int)result);
}

co_status cuda_conv_find(const cuda_conv **out, const char **why, co_device *base,
                         const cuda_conv_shape *shape)
{
    const cuda_device *device = (const cuda_device *)base;
    cuda_dnn *dnn = device->dnn;
    cuda_conv *c;

    *why = dnn ? CONV_NO_ENGINE : CONV_MISSING;
    if (!dnn)
        return co_fail(CO_E_UNSUPPORTED, "cuda: " CONV_MISSING);
    CO_TRY(cuda_enter(device));
    for (c = dnn->all; c && !conv_is(c, shape);)
        c = c->next;
    if (!c) {
        CO_TRY(conv_create(&c, device, shape));
        c->next = dnn->all;
        dnn->all = c;
    }
    if (out)
        *out = c;
    return CO_OK;
}

/* ---- running ---- */

size_t cuda_conv_workspace(const cuda_conv *c)
{
    return (size_t)c->workspace;
}

co_status cuda_conv_run(const cuda_conv *c, co_queue *queue, const cuda_conv_operands *o)
{
    const cuda_dnn *dnn = c->device->dnn;
    const int64_t id[CONV_BIAS] = {1, 2, 3, CONV_BIAS},
                  n = c->shape.bias ? CONV_BIAS : CONV_OPERANDS;
    void *const at[CONV_BIAS] = {o->x, o->w, o->y, o->bias};
    const conv_attribute set[] = {
        {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, n, id},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, n, at},
        {CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &o->workspace}};
    conv_desc pack = NULL;
    cudnnStatus_t result;

    CO_TRY(cuda_enter(c->device));
    result = dnn->call.cudnnSetStream(dnn->handle, ((cuda_queue *)queue)->stream);
    if (result == CUDNN_STATUS_SUCCESS)
        result = CONV_DESCRIBE(&pack, &dnn->call, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, set);
    if (result == CUDNN_STATUS_SUCCESS)
        result = dnn->call.cudnnBackendExecute(dnn->handle, c->plan, pack);
    if (pack)
        (void)dnn->call.cudnnBackendDestroyDescriptor(pack);
    return result == CUDNN_STATUS_SUCCESS ? CO_OK : conv_fail(dnn, result, "a convolution");
}
