/*
 * convolve.c - cuDNN, opened at run time: convolutions as graphs of one operation.
 *
 * What the library's documentation calls an engine is a family of kernels; of those that it
 * proposes, in the order of the time that they should take, the first is taken that is
 * deterministic, rounds no operand, and fits into the workspace.
 */
#include "device/cuda/convolve.h"

#include <cudnn_graph.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"
#include "device/cuda/internal.h"

#define CONV_LIBRARY   "cudnn"
#define CONV_MAJOR     9
#define CONV_MISSING   "cuDNN is missing"
#define CONV_NO_ENGINE "cuDNN has no deterministic engine for it"
#define CONV_WORKSPACE ((int64_t)256 << 20) /* of an engine, at most */
#define CONV_ENGINES   32                   /* proposals that are looked at */
#define CONV_OPERANDS  3                    /* x, w, y; their ids are 1, 2, 3 */
#define CONV_OWN       8                    /* descriptors of a convolution, at most */

#define CONV_FUNCTIONS(X)                                                                          \
    X(cudnnGetVersion)                                                                             \
    X(cudnnGetErrorString)                                                                         \
    X(cudnnCreate)                                                                                 \
    X(cudnnDestroy)                                                                                \
    X(cudnnSetStream)                                                                              \
    X(cudnnBackendCreateDescriptor)                                                                \
    X(cudnnBackendDestroyDescriptor)                                                               \
    X(cudnnBackendSetAttribute)                                                                    \
    X(cudnnBackendGetAttribute)                                                                    \
    X(cudnnBackendFinalize)                                                                        \
    X(cudnnBackendExecute)

typedef struct conv_calls {
    CONV_FUNCTIONS(CUDA_MEMBER)
} conv_calls;

static const char *const conv_names[] = {CONV_FUNCTIONS(CUDA_NAME)};

/* The library on one GPU. */
struct cuda_dnn {
    conv_calls call;
    cudnnHandle_t handle;
    cuda_conv *all; /* owned */
};

struct cuda_conv {
    cuda_conv *next;
    const cuda_device *device; /* borrowed */
    cuda_conv_shape shape;
    cudnnBackendDescriptor_t own[CONV_OWN], plan;
    int n_own;
    int64_t workspace;
};

typedef cudnnBackendDescriptor_t conv_desc;

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
        (void)conv_fail(dnn, result, "it does not start");
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

/* ---- descriptors ---- */

typedef struct conv_attribute {
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t n;
    const void *value;
} conv_attribute;

/* With the attributes (n), finalized. */
static cudnnStatus_t conv_describe(conv_desc *out, const conv_calls *call,
                                   cudnnBackendDescriptorType_t type,
                                   const conv_attribute *attribute, size_t n)
{
    conv_desc desc = NULL;
    cudnnStatus_t result = call->cudnnBackendCreateDescriptor(type, &desc);

    for (size_t i = 0; i < n && result == CUDNN_STATUS_SUCCESS; i++)
        result = call->cudnnBackendSetAttribute(desc, attribute[i].name, attribute[i].type,
                                                attribute[i].n, attribute[i].value);
    if (result == CUDNN_STATUS_SUCCESS)
        result = call->cudnnBackendFinalize(desc);
    if (result == CUDNN_STATUS_SUCCESS)
        *out = desc;
    else if (desc)
        (void)call->cudnnBackendDestroyDescriptor(desc);
    return result;
}

#define CONV_DESCRIBE(out, call, type, attributes)                                                 \
    conv_describe(out, call, type, attributes, sizeof(attributes) / sizeof((attributes)[0]))

/* The same for one that the convolution keeps. */
static cudnnStatus_t conv_keep(conv_desc *out, cuda_conv *c, cudnnBackendDescriptorType_t type,
                               const conv_attribute *attribute, size_t n)
{
    const cudnnStatus_t result = conv_describe(out, &c->device->dnn->call, type, attribute, n);

    if (result == CUDNN_STATUS_SUCCESS)
        c->own[c->n_own++] = *out;
    return result;
}

#define CONV_KEEP(out, c, type, attributes)                                                        \
    conv_keep(out, c, type, attributes, sizeof(attributes) / sizeof((attributes)[0]))

static cudnnStatus_t conv_describe_tensor(conv_desc *out, cuda_conv *c, int64_t id,
                                          const int64_t dim[4], co_dtype dtype)
{
    const cudnnDataType_t type = dtype == CO_BF16  ? CUDNN_DATA_BFLOAT16
                                 : dtype == CO_F16 ? CUDNN_DATA_HALF
                                                   : CUDNN_DATA_FLOAT;
    const int64_t stride[] = {dim[1] * dim[2] * dim[3], 1, dim[3] * dim[1], dim[1]};
    const int64_t align = CO_DEVICE_ALIGN;
    const conv_attribute set[] = {{CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id},
                                  {CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
                                  {CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &align},
                                  {CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dim},
                                  {CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, stride}};

    return CONV_KEEP(out, c, CUDNN_BACKEND_TENSOR_DESCRIPTOR, set);
}

static cudnnStatus_t conv_describe_windows(conv_desc *out, cuda_conv *c)
{
    const cuda_conv_shape *s = &c->shape;
    const cudnnDataType_t type = CUDNN_DATA_FLOAT;
    const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
    const int64_t dims = 2;
    const conv_attribute set[] = {
        {CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type},
        {CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode},
        {CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &dims},
        {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, s->padding},
        {CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, s->padding},
        {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, s->stride},
        {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, s->dilation}};

    return CONV_KEEP(out, c, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, set);
}

/* The operation of each kind, and its attributes. */
static const struct {
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
} conv_kinds[CUDA_CONV_COUNT] = {
    [CUDA_CONV_FORWARD] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                           CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
    [CUDA_CONV_INPUT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
    [CUDA_CONV_WEIGHT] = {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA},
};

static cudnnStatus_t conv_describe_operands(conv_desc out[CONV_OPERANDS], cuda_conv *c)
{
    const cuda_conv_shape *s = &c->shape;
    const int64_t *const dim[] = {s->x, s->w, s->y};
    static const cuda_conv_kind writes[] = {CUDA_CONV_INPUT, CUDA_CONV_WEIGHT, CUDA_CONV_FORWARD};
    cudnnStatus_t result = CUDNN_STATUS_SUCCESS;

    for (int i = 0; i < CONV_OPERANDS && result == CUDNN_STATUS_SUCCESS; i++)
        result =
            conv_describe_tensor(&out[i], c, i + 1, dim[i], s->kind == writes[i] ? s->out : s->in);
    return result;
}

/* A graph of the one operation. */
static cudnnStatus_t conv_describe_graph(conv_desc *out, cuda_conv *c)
{
    const cuda_conv_kind kind = c->shape.kind;
    const float one = 1, zero = 0;
    conv_desc operand[CONV_OPERANDS] = {NULL}, windows = NULL, operation = NULL;
    const conv_attribute of_operation[] = {
        {conv_kinds[kind].x, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operand[0]},
        {conv_kinds[kind].w, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operand[1]},
        {conv_kinds[kind].y, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operand[2]},
        {conv_kinds[kind].conv, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &windows},
        {conv_kinds[kind].alpha, CUDNN_TYPE_FLOAT, 1, &one},
        {conv_kinds[kind].beta, CUDNN_TYPE_FLOAT, 1, &zero}};
    const conv_attribute of_graph[] = {
        {CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &c->device->dnn->handle},
        {CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &operation}};
    cudnnStatus_t result = conv_describe_operands(operand, c);

    if (result == CUDNN_STATUS_SUCCESS)
        result = conv_describe_windows(&windows, c);
    if (result == CUDNN_STATUS_SUCCESS)
        result = CONV_KEEP(&operation, c, conv_kinds[kind].type, of_operation);
    if (result == CUDNN_STATUS_SUCCESS)
        result = CONV_KEEP(out, c, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, of_graph);
    return result;
}

/* ---- choosing ---- */

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
        result = call->cudnnBackendGetAttribute(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE,
                                                CUDNN_TYPE_NUMERICAL_NOTE,
                                                CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &n, note);
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
        result =
            call->cudnnBackendGetAttribute(proposals, CUDNN_ATTR_ENGINEHEUR_RESULTS,
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

    return own->kind == s->kind && own->in == s->in && own->out == s->out &&
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
    if (graph && !c->plan)
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
    const int64_t id[CONV_OPERANDS] = {1, 2, 3};
    void *const at[CONV_OPERANDS] = {o->x, o->w, o->y};
    const conv_attribute set[] = {
        {CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, CONV_OPERANDS, id},
        {CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, CONV_OPERANDS, at},
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
