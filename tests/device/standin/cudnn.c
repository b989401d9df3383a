/*
 * cudnn.c - convolutions without a GPU, by plain loops on the stream. Descriptors have the
 * attributes that Cohort sets, each of one type and count, and every other one is refused. Found as
 * libcudnn.so.9. With STANDIN_UNFUSED in the environment it has no engine for two operations, and
 * for gradients of filters in floats from 16 bits nothing but a substitute.
 */
#include <cudnn_graph.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"
#include "standin/standin.h"

#define WORKSPACE 4096 /* of each plan; filled with rubbish */
#define MOST      7    /* attributes of a descriptor */

struct cudnnContext {
    cudaStream_t stream;
};

/* What may be set, in the order in which it is kept. */
typedef struct rule {
    cudnnBackendDescriptorType_t of;
    cudnnBackendAttributeName_t name;
    cudnnBackendAttributeType_t type;
    int64_t n, least; /* values; 0: n of them */
} rule;

#define SEVERAL(of, name, type, n, least)                                                          \
    {                                                                                              \
        CUDNN_BACKEND_##of##_DESCRIPTOR, CUDNN_ATTR_##name, CUDNN_TYPE_##type, n, least            \
    }
#define OTHER(of, name, type, n) SEVERAL(of, name, type, n, 0)
#define TENSOR(name, type, n)    OTHER(TENSOR, TENSOR_##name, type, n)
#define WINDOWS(name, type, n)   OTHER(CONVOLUTION, CONVOLUTION_##name, type, n)
#define PART(kind, short, name, type)                                                              \
    OTHER(OPERATION_CONVOLUTION_##kind, OPERATION_CONVOLUTION_##short##_##name, type, 1)
#define OPERATION(kind, short, x, w, y)                                                            \
    PART(kind, short, x, BACKEND_DESCRIPTOR), PART(kind, short, w, BACKEND_DESCRIPTOR),            \
        PART(kind, short, y, BACKEND_DESCRIPTOR),                                                  \
        PART(kind, short, CONV_DESC, BACKEND_DESCRIPTOR), PART(kind, short, ALPHA, FLOAT),         \
        PART(kind, short, BETA, FLOAT)

static const rule rules[] = {
    TENSOR(UNIQUE_ID, INT64, 1),
    TENSOR(DATA_TYPE, DATA_TYPE, 1),
    TENSOR(BYTE_ALIGNMENT, INT64, 1),
    TENSOR(DIMENSIONS, INT64, 4),
    TENSOR(STRIDES, INT64, 4),
    TENSOR(IS_VIRTUAL, BOOLEAN, 1),
    WINDOWS(COMP_TYPE, DATA_TYPE, 1),
    WINDOWS(CONV_MODE, CONVOLUTION_MODE, 1),
    WINDOWS(SPATIAL_DIMS, INT64, 1),
    WINDOWS(PRE_PADDINGS, INT64, 2),
    WINDOWS(POST_PADDINGS, INT64, 2),
    WINDOWS(FILTER_STRIDES, INT64, 2),
    WINDOWS(DILATIONS, INT64, 2),
    OPERATION(FORWARD, FORWARD, X, W, Y),
    OPERATION(BACKWARD_DATA, BWD_DATA, DX, W, DY),
    OPERATION(BACKWARD_FILTER, BWD_FILTER, X, DW, DY),
    OTHER(OPERATIONGRAPH, OPERATIONGRAPH_HANDLE, HANDLE, 1),
    SEVERAL(OPERATIONGRAPH, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, 2, 1),
    OTHER(POINTWISE, POINTWISE_MODE, POINTWISE_MODE, 1),
    OTHER(POINTWISE, POINTWISE_MATH_PREC, DATA_TYPE, 1),
    OTHER(OPERATION_POINTWISE, OPERATION_POINTWISE_PW_DESCRIPTOR, BACKEND_DESCRIPTOR, 1),
    OTHER(OPERATION_POINTWISE, OPERATION_POINTWISE_XDESC, BACKEND_DESCRIPTOR, 1),
    OTHER(OPERATION_POINTWISE, OPERATION_POINTWISE_BDESC, BACKEND_DESCRIPTOR, 1),
    OTHER(OPERATION_POINTWISE, OPERATION_POINTWISE_YDESC, BACKEND_DESCRIPTOR, 1),
    OTHER(ENGINEHEUR, ENGINEHEUR_OPERATION_GRAPH, BACKEND_DESCRIPTOR, 1),
    OTHER(ENGINEHEUR, ENGINEHEUR_MODE, HEUR_MODE, 1),
    OTHER(EXECUTION_PLAN, EXECUTION_PLAN_HANDLE, HANDLE, 1),
    OTHER(EXECUTION_PLAN, EXECUTION_PLAN_ENGINE_CONFIG, BACKEND_DESCRIPTOR, 1),
    SEVERAL(VARIANT_PACK, VARIANT_PACK_UNIQUE_IDS, INT64, 4, 3),
    SEVERAL(VARIANT_PACK, VARIANT_PACK_DATA_POINTERS, VOID_PTR, 4, 3),
    OTHER(VARIANT_PACK, VARIANT_PACK_WORKSPACE, VOID_PTR, 1),
};
#define RULES ((int)(sizeof(rules) / sizeof(rules[0])))

/* The engines that are proposed, in this order, and what is noted about them. */
typedef enum engine {
    NONDETERMINISTIC,
    DOWN_CONVERTING,
    BROKEN, /* no plan can be made */
    TF32,   /* on tensor cores: rounds operands of fp32 */
    PLAIN,
    ENGINES
} engine;

typedef struct descriptor {
    cudnnBackendDescriptorType_t type;
    bool finalized;
    unsigned set; /* bit i: the i-th attribute of its type */
    union {
        int64_t whole[4];
        float real[4];
        int32_t number[8];
        struct descriptor *other[4];
        void *pointer[4];
    } value[MOST];
    const struct descriptor *graph; /* of an engine's configuration, and of a plan */
    engine engine;                  /* likewise, and of an engine */
} descriptor;

static descriptor *of(cudnnBackendDescriptor_t desc)
{
    return (descriptor *)desc;
}

/* ---- the library ---- */

STANDIN_EXPORT size_t CUDNNWINAPI cudnnGetVersion(void)
{
    return 91300;
}

STANDIN_EXPORT const char *CUDNNWINAPI cudnnGetErrorString(cudnnStatus_t status)
{
    (void)status;
    return "of the stand-in";
}

STANDIN_EXPORT cudnnStatus_t CUDNNWINAPI cudnnCreate(cudnnHandle_t *out)
{
    *out = calloc(1, sizeof(**out));
    return *out ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_ALLOC_FAILED;
}

STANDIN_EXPORT cudnnStatus_t CUDNNWINAPI cudnnDestroy(cudnnHandle_t handle)
{
    free(handle);
    return CUDNN_STATUS_SUCCESS;
}

STANDIN_EXPORT cudnnStatus_t CUDNNWINAPI cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    handle->stream = stream;
    return CUDNN_STATUS_SUCCESS;
}

/* ---- descriptors ---- */

STANDIN_EXPORT cudnnStatus_t CUDNNWINAPI
cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *out)
{
    bool known =
        type == CUDNN_BACKEND_ENGINECFG_DESCRIPTOR || type == CUDNN_BACKEND_ENGINE_DESCRIPTOR;
    descriptor *d;

    for (int i = 0; i < RULES; i++)
        known = known || rules[i].of == type;
    d = known ? calloc(1, sizeof(*d)) : NULL;
    if (!d)
        return CUDNN_STATUS_NOT_SUPPORTED;
    d->type = type;
    *out = d;
    return CUDNN_STATUS_SUCCESS;
}

STANDIN_EXPORT cudnnStatus_t CUDNNWINAPI
cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t desc)
{
    free(desc);
    return CUDNN_STATUS_SUCCESS;
}

static size_t size_of(cudnnBackendAttributeType_t type)
{
    switch (type) {
    case CUDNN_TYPE_DATA_TYPE:
    case CUDNN_TYPE_CONVOLUTION_MODE:
    case CUDNN_TYPE_HEUR_MODE:
    case CUDNN_TYPE_POINTWISE_MODE:
    case CUDNN_TYPE_FLOAT:
        return 4;
    case CUDNN_TYPE_BOOLEAN:
        return sizeof(bool);
    default:
        return 8;
    }
}

STANDIN_EXPORT cudnnStatus_t CUDNNWINAPI cudnnBackendSetAttribute(cudnnBackendDescriptor_t desc,
                                                                  cudnnBackendAttributeName_t name,
                                                                  cudnnBackendAttributeType_t type,
                                                                  int64_t n, const void *value)
{
    descriptor *d = of(desc);
    int at = 0;

    for (int i = 0; i < RULES && !d->finalized; at += rules[i].of == d->type, i++) {
        if (rules[i].of != d->type || rules[i].name != name)
            continue;
        if (rules[i].type != type || n > rules[i].n ||
            n < (rules[i].least ? rules[i].least : rules[i].n))
            return CUDNN_STATUS_BAD_PARAM;
        memcpy(&d->value[at], value, (size_t)n * size_of(type));
        d->set |= 1U << at;
        return CUDNN_STATUS_SUCCESS;
    }
    return CUDNN_STATUS_NOT_SUPPORTED;
}

/* Every attribute is set, and every other descriptor that is named is finalized. */
static bool is_complete(const descriptor *d)
{
    bool complete = true;
    int at = 0;

    for (int i = 0; i < RULES; i++) {
        if (rules[i].of != d->type)
            continue;
        complete =
            complete && (d->set >> at & 1) &&
            (rules[i].type != CUDNN_TYPE_BACKEND_DESCRIPTOR || d->value[at].other[0]->finalized);
        at++;
    }
    return complete;
}

STANDIN_EXPORT cudnnStatus_t CUDNNWINAPI cudnnBackendFinalize(cudnnBackendDescriptor_t desc)
{
    descriptor *d = of(desc);

    if (!is_complete(d))
        return CUDNN_STATUS_BAD_PARAM;
    if (d->type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) {
        d->graph = d->value[1].other[0]->graph;
        d->engine = d->value[1].other[0]->engine;
        if (d->engine == BROKEN)
            return CUDNN_STATUS_NOT_SUPPORTED;
    }
    d->finalized = true;
    return CUDNN_STATUS_SUCCESS;
}

static void get_notes(int64_t *n, cudnnBackendNumericalNote_t *out, engine e)
{
    *n = 0;
    if (e == NONDETERMINISTIC)
        out[(*n)++] = CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC;
    if (e == DOWN_CONVERTING)
        out[(*n)++] = CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS;
    if (e == TF32 || e == DOWN_CONVERTING)
        out[(*n)++] = CUDNN_NUMERICAL_NOTE_TENSOR_CORE;
}

/* Whether there are engines for a graph, for such a question. */
static bool has_engines(const descriptor *graph, cudnnBackendHeurMode_t mode)
{
    const descriptor *first = graph->value[1].other[0];
    cudnnDataType_t type[2]; /* of images, and of filters */

    if (!getenv("STANDIN_UNFUSED"))
        return true;
    for (int i = 0; i < 2; i++)
        type[i] = (cudnnDataType_t)first->value[i].other[0]->value[1].number[0];
    return !graph->value[1].other[1] &&
           (mode == CUDNN_HEUR_MODE_FALLBACK || type[0] == CUDNN_DATA_FLOAT ||
            type[1] != CUDNN_DATA_FLOAT ||
            first->type != CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
}

STANDIN_EXPORT cudnnStatus_t CUDNNWINAPI cudnnBackendGetAttribute(cudnnBackendDescriptor_t desc,
                                                                  cudnnBackendAttributeName_t name,
                                                                  cudnnBackendAttributeType_t type,
                                                                  int64_t wanted, int64_t *n,
                                                                  void *out)
{
    const descriptor *d = (const descriptor *)desc;
    descriptor **other = out;

    if (!d->finalized)
        return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        const bool any =
            has_engines(d->value[0].other[0], (cudnnBackendHeurMode_t)d->value[1].number[0]);

        for (*n = 0; *n < ENGINES && *n < wanted && any; (*n)++) {
            other[*n]->graph = d->value[0].other[0];
            other[*n]->engine = (engine)*n;
            other[*n]->finalized = true;
        }
    } else if (name == CUDNN_ATTR_ENGINECFG_ENGINE && type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
        (*other)->engine = d->engine;
        (*other)->finalized = true;
        *n = 1;
    } else if (name == CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && type == CUDNN_TYPE_NUMERICAL_NOTE &&
               wanted == CUDNN_NUMERICAL_NOTE_TYPE_COUNT) {
        get_notes(n, out, d->engine);
    } else if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE && type == CUDNN_TYPE_INT64) {
        *(int64_t *)out = WORKSPACE;
        *n = 1;
    } else {
        return CUDNN_STATUS_NOT_SUPPORTED;
    }
    return CUDNN_STATUS_SUCCESS;
}

/* ---- convolutions ---- */

typedef struct operand {
    int64_t dim[4], stride[4];
    cudnnDataType_t type;
    void *at;
} operand;

typedef struct work {
    operand t[4]; /* x, w, y, what is added */
    int result;   /* which of them */
    bool bias;
    int64_t padding[2], stride[2], dilation[2];
    void *workspace;
    engine engine;
} work;

static size_t count_of(const operand *t)
{
    return (size_t)(t->dim[0] * t->dim[1] * t->dim[2] * t->dim[3]);
}

static size_t place(const operand *t, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (size_t)(a * t->stride[0] + b * t->stride[1] + c * t->stride[2] + d * t->stride[3]);
}

static co_dtype half_type(const operand *t)
{
    return t->type == CUDNN_DATA_HALF ? CO_F16 : CO_BF16;
}

/* In floats, in the order in memory; zeros for the result. NULL: no memory. */
static float *read_floats(const work *w, int i, const void *from)
{
    const operand *t = &w->t[i];
    float *out = calloc(count_of(t), sizeof(*out));

    if (!out || i == w->result)
        return out;
    if (t->type == CUDNN_DATA_FLOAT)
        memcpy(out, from, count_of(t) * sizeof(*out));
    else
        co_half_widen(out, from, count_of(t), half_type(t));
    for (size_t e = 0; e < count_of(t) && w->engine == TF32 && t->type == CUDNN_DATA_FLOAT; e++) {
        uint32_t bits;

        memcpy(&bits, &out[e], sizeof(bits));
        bits &= ~0x1fffU;
        memcpy(&out[e], &bits, sizeof(bits));
    }
    return out;
}

/* What element (r, s) of all filters has with one place of the result. */
static void convolve_tap(const work *w, float *const v[4], const int64_t at[3], int64_t r,
                         int64_t s)
{
    const operand *x = &w->t[0], *f = &w->t[1], *y = &w->t[2];
    const int64_t channels = f->dim[1], each = y->dim[1] / (x->dim[1] / channels);
    const int64_t h = at[1] * w->stride[0] - w->padding[0] + r * w->dilation[0];
    const int64_t q = at[2] * w->stride[1] - w->padding[1] + s * w->dilation[1];
    float *images, *results;

    if (h < 0 || h >= x->dim[2] || q < 0 || q >= x->dim[3])
        return;
    images = v[0] + place(x, at[0], 0, h, q);
    results = v[2] + place(y, at[0], 0, at[1], at[2]);
    for (int64_t o = 0; o < y->dim[1]; o++) {
        float *image = images + o / each * channels, *filter = v[1] + place(f, o, 0, r, s);
        float sum = results[o];

        for (int64_t c = 0; c < channels && w->result == 2; c++)
            sum += image[c] * filter[c];
        for (int64_t c = 0; c < channels && w->result == 0; c++)
            image[c] += sum * filter[c];
        for (int64_t c = 0; c < channels && w->result == 1; c++)
            filter[c] += sum * image[c];
        results[o] = sum;
    }
}

static void convolve(const work *w, float *const v[4])
{
    const operand *f = &w->t[1], *y = &w->t[2];
    int64_t at[3];

    for (at[0] = 0; at[0] < y->dim[0]; at[0]++)
        for (at[1] = 0; at[1] < y->dim[2]; at[1]++)
            for (at[2] = 0; at[2] < y->dim[3]; at[2]++)
                for (int64_t k = 0; k < f->dim[2] * f->dim[3]; k++)
                    convolve_tap(w, v, at, k / f->dim[3], k % f->dim[3]);
}

static void add_bias(const work *w, float *const v[4])
{
    const size_t channels = (size_t)w->t[2].dim[1];

    for (size_t i = 0; w->bias && i < count_of(&w->t[2]); i++)
        v[2][i] += v[3][i % channels];
}

static co_status run(void *what, mock_memory *memory)
{
    const work *w = what;
    const operand *out = &w->t[w->result];
    void *to = mock_memory_reach(memory, out->at);
    const int n = w->bias ? 4 : 3;
    float *v[4] = {NULL};
    bool all = true;

    memset(mock_memory_reach(memory, w->workspace), 0xa5, WORKSPACE);
    for (int i = 0; i < n; i++) {
        v[i] = read_floats(w, i, mock_memory_reach(memory, w->t[i].at));
        all = all && v[i];
    }
    if (all) {
        convolve(w, v);
        add_bias(w, v);
    }
    if (all && out->type == CUDNN_DATA_FLOAT)
        memcpy(to, v[w->result], count_of(out) * sizeof(float));
    else if (all)
        co_half_round(to, v[w->result], count_of(out), half_type(out));
    for (int i = 0; i < n; i++)
        free(v[i]);
    return all ? CO_OK : CO_E_NOMEM;
}

static bool take_operand(operand *out, const descriptor *tensor, const descriptor *pack, int i)
{
    const int64_t *dim = tensor->value[3].whole, *stride = tensor->value[4].whole;

    memcpy(out->dim, dim, sizeof(out->dim));
    memcpy(out->stride, stride, sizeof(out->stride));
    out->type = (cudnnDataType_t)tensor->value[1].number[0];
    out->at = pack->value[1].pointer[i];
    return tensor->value[0].whole[0] == pack->value[0].whole[i] && !tensor->value[5].number[0] &&
           (uintptr_t)out->at % (uintptr_t)tensor->value[2].whole[0] == 0 && stride[1] == 1 &&
           stride[3] == dim[1] && stride[2] == dim[3] * dim[1] && stride[0] == dim[2] * stride[2];
}

/* A second operation: what the first leaves in floats, and nowhere in memory, plus a number for
   each channel. *y becomes what it writes. */
static bool take_bias(work *w, const descriptor **y, const descriptor *sum, const descriptor *pack)
{
    const descriptor *how = sum->value[0].other[0], *bias = sum->value[2].other[0];
    const int64_t *dim = bias->value[3].whole, *sums = (*y)->value[3].whole;
    const bool good = sum->type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR && w->result == 2 &&
                      how->value[0].number[0] == CUDNN_POINTWISE_ADD &&
                      how->value[1].number[0] == CUDNN_DATA_FLOAT && sum->value[1].other[0] == *y &&
                      (*y)->value[5].number[0] && (*y)->value[1].number[0] == CUDNN_DATA_FLOAT &&
                      dim[0] == 1 && dim[1] == sums[1] && dim[2] == 1 && dim[3] == 1 &&
                      memcmp(sums, sum->value[3].other[0]->value[3].whole, 4 * sizeof(*sums)) == 0;

    *y = sum->value[3].other[0];
    w->bias = true;
    return take_operand(&w->t[3], bias, pack, 3) && good;
}

STANDIN_EXPORT cudnnStatus_t CUDNNWINAPI cudnnBackendExecute(cudnnHandle_t handle,
                                                             cudnnBackendDescriptor_t plan,
                                                             cudnnBackendDescriptor_t pack)
{
    const descriptor *p = of(plan), *v = of(pack), *operation = p->graph->value[1].other[0];
    const descriptor *windows = operation->value[3].other[0], *sum = p->graph->value[1].other[1];
    const descriptor *tensor[3];
    work w = {.workspace = v->value[2].pointer[0], .engine = p->engine};
    bool good = p->finalized && v->finalized && w.workspace && operation->value[4].real[0] == 1 &&
                operation->value[5].real[0] == 0 &&
                windows->value[0].number[0] == CUDNN_DATA_FLOAT &&
                windows->value[1].number[0] == CUDNN_CROSS_CORRELATION &&
                memcmp(windows->value[3].whole, windows->value[4].whole, sizeof(w.padding)) == 0;

    w.result = operation->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ? 2
               : operation->type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR
                   ? 0
                   : 1;
    for (int i = 0; i < 3; i++)
        tensor[i] = operation->value[i].other[0];
    if (sum)
        good = take_bias(&w, &tensor[2], sum, v) && good;
    for (int i = 0; i < 3; i++)
        good = take_operand(&w.t[i], tensor[i], v, i) && good;
    memcpy(w.padding, windows->value[3].whole, sizeof(w.padding));
    memcpy(w.stride, windows->value[5].whole, sizeof(w.stride));
    memcpy(w.dilation, windows->value[6].whole, sizeof(w.dilation));
    if (!good || w.engine == NONDETERMINISTIC || w.engine == DOWN_CONVERTING)
        return CUDNN_STATUS_BAD_PARAM;
    if (mock_enqueue((co_queue *)(void *)handle->stream, run, &w, sizeof(w)) != CO_OK)
        return CUDNN_STATUS_EXECUTION_FAILED;
    return CUDNN_STATUS_SUCCESS;
}
