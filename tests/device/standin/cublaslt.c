/*
 * cublaslt.c - products of matrices without a GPU, by plain loops on the stream. Descriptors have
 * the attributes that Cohort sets, and every other one is refused. Found as libcublasLt.so.13.
 */
#include <cublasLt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/half.h"
#include "standin/standin.h"

#define WORKSPACE ((size_t)1 << 16) /* of each algorithm; filled with rubbish */
#define ALGORITHM 0x5eed            /* in what the heuristic returns */

struct cublasLtContext {
    int unused;
};

typedef struct product {
    cublasComputeType_t compute;
    cublasOperation_t a, b;
    cublasLtEpilogue_t epilogue;
    const void *bias;
    void *kept; /* the auxiliary matrix */
    int64_t kept_row;
} product;

typedef struct layout {
    cudaDataType type;
    uint64_t rows, cols;
} layout;

typedef struct preference {
    uint64_t workspace;
    uint32_t reductions, aligned; /* how many operands */
} preference;

/* ---- descriptors ---- */

STANDIN_EXPORT size_t CUBLASWINAPI cublasLtGetVersion(void)
{
    return 130002;
}

STANDIN_EXPORT const char *CUBLASWINAPI cublasLtGetStatusString(cublasStatus_t status)
{
    (void)status;
    return "of the stand-in";
}

STANDIN_EXPORT cublasStatus_t CUBLASWINAPI cublasLtCreate(cublasLtHandle_t *out)
{
    *out = calloc(1, sizeof(**out));
    return *out ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

STANDIN_EXPORT cublasStatus_t CUBLASWINAPI cublasLtDestroy(cublasLtHandle_t handle)
{
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

STANDIN_EXPORT cublasStatus_t CUBLASWINAPI cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *out,
                                                                    cublasComputeType_t compute,
                                                                    cudaDataType_t scale)
{
    product *p = calloc(1, sizeof(*p));

    if (!p || scale != CUDA_R_32F ||
        (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32)) {
        free(p);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *p = (product){.compute = compute,
                   .a = CUBLAS_OP_N,
                   .b = CUBLAS_OP_N,
                   .epilogue = CUBLASLT_EPILOGUE_DEFAULT};
    *out = (cublasLtMatmulDesc_t)(void *)p;
    return CUBLAS_STATUS_SUCCESS;
}

STANDIN_EXPORT cublasStatus_t CUBLASWINAPI cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc)
{
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set(void *to, size_t own, const void *value, size_t size)
{
    if (size != own)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, value, size);
    return CUBLAS_STATUS_SUCCESS;
}

static int is_gelu(cublasLtEpilogue_t epilogue)
{
    return epilogue == CUBLASLT_EPILOGUE_GELU || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS ||
           epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

static int has_bias(cublasLtEpilogue_t epilogue)
{
    return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS ||
           epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
}

static int has_kept(cublasLtEpilogue_t epilogue)
{
    return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS ||
           epilogue == CUBLASLT_EPILOGUE_DGELU;
}

STANDIN_EXPORT cublasStatus_t CUBLASWINAPI
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                               const void *value, size_t size)
{
    product *p = (product *)(void *)desc;

    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(&p->a, sizeof(p->a), value, size);
    case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(&p->b, sizeof(p->b), value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
        if (set(&p->epilogue, sizeof(p->epilogue), value, size) != CUBLAS_STATUS_SUCCESS ||
            !(p->epilogue == CUBLASLT_EPILOGUE_BIAS || is_gelu(p->epilogue) ||
              p->epilogue == CUBLASLT_EPILOGUE_DGELU))
            return CUBLAS_STATUS_INVALID_VALUE;
        return CUBLAS_STATUS_SUCCESS;
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
        return set(&p->kept, sizeof(p->kept), value, size);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
        return set(&p->kept_row, sizeof(p->kept_row), value, size);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(&p->bias, sizeof(p->bias), value, size);
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

STANDIN_EXPORT cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *out,
                                                                      cudaDataType type,
                                                                      uint64_t rows, uint64_t cols,
                                                                      int64_t ld)
{
    layout *l = calloc(1, sizeof(*l));

    if (!l || rows < 1 || cols < 1 || ld != (int64_t)rows ||
        (type != CUDA_R_32F && type != CUDA_R_16F && type != CUDA_R_16BF)) {
        free(l);
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    *l = (layout){type, rows, cols};
    *out = (cublasLtMatrixLayout_t)(void *)l;
    return CUBLAS_STATUS_SUCCESS;
}

STANDIN_EXPORT cublasStatus_t CUBLASWINAPI cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t desc)
{
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- the heuristic ---- */

STANDIN_EXPORT cublasStatus_t CUBLASWINAPI
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *out)
{
    preference *made = calloc(1, sizeof(*made));

    *out = (cublasLtMatmulPreference_t)made;
    return made ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

STANDIN_EXPORT cublasStatus_t CUBLASWINAPI
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t desc)
{
    free(desc);
    return CUBLAS_STATUS_SUCCESS;
}

STANDIN_EXPORT cublasStatus_t CUBLASWINAPI cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t desc, cublasLtMatmulPreferenceAttributes_t attribute,
    const void *value, size_t size)
{
    preference *p = (preference *)(void *)desc;
    uint32_t align = 0;

    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(&p->workspace, sizeof(p->workspace), value, size);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set(&p->reductions, sizeof(p->reductions), value, size);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        p->aligned++;
        if (set(&align, sizeof(align), value, size) != CUBLAS_STATUS_SUCCESS || align != 64)
            return CUBLAS_STATUS_INVALID_VALUE;
        return CUBLAS_STATUS_SUCCESS;
    default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
}

/* Whether op(a) op(b) has the shape of d, and the library such types. */
static int is_product(const product *p, const layout *a, const layout *b, const layout *d)
{
    const int swap_a = p->a != CUBLAS_OP_N, swap_b = p->b != CUBLAS_OP_N;
    const uint64_t k = swap_a ? a->rows : a->cols;

    return (swap_a ? a->cols : a->rows) == d->rows && (swap_b ? b->rows : b->cols) == d->cols &&
           (swap_b ? b->cols : b->rows) == k && a->type == b->type &&
           (d->type == a->type || d->type == CUDA_R_32F) &&
           (p->compute == CUBLAS_COMPUTE_32F || a->type == CUDA_R_32F);
}

/* Pointers that go with the epilogue; the auxiliary matrix as the library's header wants it, and 16
   bits where GELU is. */
static int is_complete(const product *p, const layout *d)
{
    if (has_bias(p->epilogue) != (p->bias != NULL) || has_kept(p->epilogue) != (p->kept != NULL))
        return 0;
    if ((is_gelu(p->epilogue) || has_kept(p->epilogue)) && d->type == CUDA_R_32F)
        return 0;
    return !p->kept || (p->kept_row == (int64_t)d->rows && p->kept_row % 8 == 0 &&
                        (uintptr_t)p->kept % 16 == 0);
}

STANDIN_EXPORT cublasStatus_t CUBLASWINAPI cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
    cublasLtMatmulPreference_t wish, int wanted, cublasLtMatmulHeuristicResult_t *out, int *n)
{
    const product *p = (const product *)(const void *)desc;
    const preference *w = (const preference *)(const void *)wish;

    if (!handle || c != d || wanted != 1 || w->aligned != 4 || w->workspace < WORKSPACE ||
        w->reductions != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE ||
        !is_complete(p, (const layout *)(const void *)d) ||
        !is_product(p, (const layout *)(const void *)a, (const layout *)(const void *)b,
                    (const layout *)(const void *)d))
        return CUBLAS_STATUS_INVALID_VALUE;
    memset(out, 0, sizeof(*out));
    out->algo.data[0] = ALGORITHM;
    out->workspaceSize = WORKSPACE;
    out->state = CUBLAS_STATUS_SUCCESS;
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- products ---- */

typedef struct work {
    product p;
    layout a, b, d;
    const void *from_a, *from_b;
    void *to, *workspace;
    float beta;
} work;

static co_dtype half_type(cudaDataType type)
{
    return type == CUDA_R_16F ? CO_F16 : CO_BF16;
}

/* A copy in floats. NULL: no memory. */
static float *read_floats(const layout *l, const void *from)
{
    const size_t n = l->rows * l->cols;
    float *out = malloc(n * sizeof(*out));

    if (out && l->type == CUDA_R_32F)
        memcpy(out, from, n * sizeof(*out));
    else if (out)
        co_half_widen(out, from, n, half_type(l->type));
    return out;
}

static float read_at(const layout *l, const void *from, size_t i)
{
    float value;

    if (l->type == CUDA_R_32F)
        return ((const float *)from)[i];
    co_half_widen(&value, (const uint16_t *)from + i, 1, half_type(l->type));
    return value;
}

static void write_at(const layout *l, void *to, size_t i, float value)
{
    if (l->type == CUDA_R_32F)
        ((float *)to)[i] = value;
    else
        co_half_round((uint16_t *)to + i, &value, 1, half_type(l->type));
}

/* Element (row, col) of op(m), where m is column-major. */
static size_t place(const layout *l, cublasOperation_t op, uint64_t row, uint64_t col)
{
    return op == CUBLAS_OP_N ? col * l->rows + row : row * l->rows + col;
}

static float gelu_tanh(float x)
{
    return tanhf(0.7978845608F * (x + 0.044715F * x * x * x));
}

static float gelu_slope(float x)
{
    const float t = gelu_tanh(x);

    return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * 0.7978845608F * (1 + 0.134145F * x * x);
}

/* What the epilogue makes of element `at`. */
static float finish(const work *w, float sum, void *kept, size_t at)
{
    if (kept && w->p.epilogue == CUBLASLT_EPILOGUE_DGELU)
        return sum * gelu_slope(read_at(&w->d, kept, at));
    if (kept)
        write_at(&w->d, kept, at, sum);
    return is_gelu(w->p.epilogue) ? 0.5F * sum * (1 + gelu_tanh(sum)) : sum;
}

static void multiply(const work *w, const float *a, const float *b, mock_memory *memory)
{
    const void *bias = w->p.bias ? mock_memory_reach(memory, w->p.bias) : NULL;
    void *kept = w->p.kept ? mock_memory_reach(memory, w->p.kept) : NULL;
    void *to = mock_memory_reach(memory, w->to);
    const uint64_t k = w->p.a == CUBLAS_OP_N ? w->a.cols : w->a.rows;

    for (uint64_t col = 0; col < w->d.cols; col++)
        for (uint64_t row = 0; row < w->d.rows; row++) {
            const size_t at = col * w->d.rows + row;
            float sum = 0;

            for (uint64_t i = 0; i < k; i++)
                sum += a[place(&w->a, w->p.a, row, i)] * b[place(&w->b, w->p.b, i, col)];
            if (w->beta != 0)
                sum += w->beta * read_at(&w->d, to, at);
            if (bias)
                sum += read_at(&w->d, bias, row);
            write_at(&w->d, to, at, finish(w, sum, kept, at));
        }
}

static co_status run(void *what, mock_memory *memory)
{
    const work *w = what;
    float *a = read_floats(&w->a, mock_memory_reach(memory, w->from_a));
    float *b = read_floats(&w->b, mock_memory_reach(memory, w->from_b));

    memset(mock_memory_reach(memory, w->workspace), 0xa5, WORKSPACE);
    if (a && b)
        multiply(w, a, b, memory);
    free(a);
    free(b);
    return a && b ? CO_OK : CO_E_NOMEM;
}

STANDIN_EXPORT cublasStatus_t CUBLASWINAPI cublasLtMatmul(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
    cublasLtMatrixLayout_t a_desc, const void *b, cublasLtMatrixLayout_t b_desc, const void *beta,
    const void *c, cublasLtMatrixLayout_t c_desc, void *d, cublasLtMatrixLayout_t d_desc,
    const cublasLtMatmulAlgo_t *algo, void *workspace, size_t workspace_bytes, cudaStream_t stream)
{
    const work w = {.p = *(const product *)(const void *)desc,
                    .a = *(const layout *)(const void *)a_desc,
                    .b = *(const layout *)(const void *)b_desc,
                    .d = *(const layout *)(const void *)d_desc,
                    .from_a = a,
                    .from_b = b,
                    .to = d,
                    .workspace = workspace,
                    .beta = *(const float *)beta};

    if (!handle || *(const float *)alpha != 1 || c != d || c_desc != d_desc ||
        algo->data[0] != ALGORITHM || !workspace || workspace_bytes < WORKSPACE ||
        (w.beta != 0 && w.beta != 1) || !is_complete(&w.p, &w.d) ||
        (w.beta != 0 && w.p.epilogue != CUBLASLT_EPILOGUE_DEFAULT))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (mock_enqueue((co_queue *)(void *)stream, run, &w, sizeof(w)) != CO_OK)
        return CUBLAS_STATUS_EXECUTION_FAILED;
    return CUBLAS_STATUS_SUCCESS;
}
