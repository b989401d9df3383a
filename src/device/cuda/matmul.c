/*
 * matmul.c - cuBLASLt, opened at run time.
 *
 * The library's matrices are column-major: a row-major matrix is the transposed one there, so what
 * is computed is d^T = b^T a^T, with the operands exchanged.
 */
#include "device/cuda/matmul.h"

#include <cublasLt.h>
#include <stdio.h>

#include "core/mem.h"
#include "device/cuda/internal.h"

#define MATMUL_LIBRARY   "cublasLt"
#define MATMUL_MISSING   "cuBLASLt is missing"
#define MATMUL_WORKSPACE ((size_t)32 << 20) /* of an algorithm, at most */
#define MATMUL_KEPT      8                  /* of which rows of what GELU keeps are multiples */

#define MATMUL_FUNCTIONS(X)                                                                        \
    X(cublasLtGetVersion)                                                                          \
    X(cublasLtGetStatusString)                                                                     \
    X(cublasLtCreate)                                                                              \
    X(cublasLtDestroy)                                                                             \
    X(cublasLtMatmulDescCreate)                                                                    \
    X(cublasLtMatmulDescDestroy)                                                                   \
    X(cublasLtMatmulDescSetAttribute)                                                              \
    X(cublasLtMatrixLayoutCreate)                                                                  \
    X(cublasLtMatrixLayoutDestroy)                                                                 \
    X(cublasLtMatmulPreferenceCreate)                                                              \
    X(cublasLtMatmulPreferenceDestroy)                                                             \
    X(cublasLtMatmulPreferenceSetAttribute)                                                        \
    X(cublasLtMatmulAlgoGetHeuristic)                                                              \
    X(cublasLtMatmul)

typedef struct matmul_calls {
    MATMUL_FUNCTIONS(CUDA_MEMBER)
} matmul_calls;

static const char *const matmul_names[] = {MATMUL_FUNCTIONS(CUDA_NAME)};

/* The library on one GPU. */
struct cuda_blas {
    matmul_calls call;
    cublasLtHandle_t handle;
};

struct cuda_matmul {
    const cuda_device *device; /* borrowed */
    cublasLtMatmulDesc_t desc;
    cublasLtMatrixLayout_t a, b, d; /* as the library sees them: a is our b */
    cublasLtMatmulAlgo_t algo;
    size_t workspace;
    bool bias, keeps;
};

static co_status matmul_fail(const cuda_blas *blas, cublasStatus_t result, const char *what)
{
    return co_fail(CO_E_FAILED, "cuda: cuBLASLt: %s: %s (%d)", what,
                   blas->call.cublasLtGetStatusString(result), (int)result);
}

/* ---- the library ---- */

static bool matmul_load(matmul_calls *out, int driver_version)
{
    const cuda_library library = {matmul_names, sizeof(*out) / sizeof(void *), out};

    return cuda_open_library(&library, MATMUL_LIBRARY, cuda_latest_major(driver_version),
                             CUDA_FIRST_MAJOR);
}

co_status co_cuda_blas(char *out, size_t size)
{
    const cuda_driver *cu = NULL;
    matmul_calls call;
    size_t version;
    int driver = 0;

    CO_TRY(cuda_open_driver(&cu, &driver));
    if (!matmul_load(&call, driver))
        return co_fail(CO_E_UNSUPPORTED,
                       "cuda: " MATMUL_MISSING " (lib" MATMUL_LIBRARY ".so.%d); install it "
                       "(CUDA's repository: libcublas-%d-0; Debian: libcublaslt12)",
                       cuda_latest_major(driver), cuda_latest_major(driver));
    version = call.cublasLtGetVersion();
    snprintf(out, size, "cuBLASLt %zu.%zu.%zu", version / 10000, version / 100 % 100,
             version % 100);
    return CO_OK;
}

co_status cuda_matmul_open(cuda_device *device)
{
    cuda_blas *blas = co_calloc(1, sizeof(*blas));
    cublasStatus_t result;

    if (!blas)
        return CO_E_NOMEM;
    if (!matmul_load(&blas->call, device->version)) {
        co_free(blas);
        return CO_OK;
    }
    result = blas->call.cublasLtCreate(&blas->handle);
    if (result != CUBLAS_STATUS_SUCCESS) {
        (void)matmul_fail(blas, result, "it does not start");
        co_free(blas);
        return CO_E_FAILED;
    }
    device->blas = blas;
    return CO_OK;
}

void cuda_matmul_close(cuda_device *device)
{
    if (device->blas)
        (void)device->blas->call.cublasLtDestroy(device->blas->handle);
    co_free(device->blas);
    device->blas = NULL;
}

/* ---- one product ---- */

static cudaDataType_t matmul_type(co_dtype dtype)
{
    return dtype == CO_BF16 ? CUDA_R_16BF : dtype == CO_F16 ? CUDA_R_16F : CUDA_R_32F;
}

static cublasStatus_t matmul_set(const cuda_matmul *m, cublasLtMatmulDescAttributes_t attribute,
                                 const void *value, size_t size)
{
    return m->device->blas->call.cublasLtMatmulDescSetAttribute(m->desc, attribute, value, size);
}

static cublasLtEpilogue_t matmul_epilogue(const cuda_matmul_shape *s)
{
    switch (s->gelu) {
    case CUDA_MATMUL_GELU:
        return s->bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case CUDA_MATMUL_GELU_KEEP:
        return s->bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case CUDA_MATMUL_GELU_GRADIENT:
        return CUBLASLT_EPILOGUE_DGELU;
    case CUDA_MATMUL_NO_GELU:
    default:
        return s->bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    }
}

static cublasStatus_t matmul_describe_epilogue(const cuda_matmul *m, const cuda_matmul_shape *s)
{
    const cublasLtEpilogue_t epilogue = matmul_epilogue(s);
    const uintptr_t some = CO_DEVICE_ALIGN; /* how both will be aligned */
    const int64_t row = s->n;
    cublasStatus_t result = CUBLAS_STATUS_SUCCESS;

    if (epilogue != CUBLASLT_EPILOGUE_DEFAULT)
        result = matmul_set(m, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue));
    if (result == CUBLAS_STATUS_SUCCESS && m->bias)
        result = matmul_set(m, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &some, sizeof(some));
    if (result == CUBLAS_STATUS_SUCCESS && m->keeps)
        result = matmul_set(m, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &some, sizeof(some));
    if (result == CUBLAS_STATUS_SUCCESS && m->keeps)
        result = matmul_set(m, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &row, sizeof(row));
    return result;
}

static cublasStatus_t matmul_describe_product(cuda_matmul *m, const cuda_matmul_shape *s)
{
    const cublasOperation_t swap = CUBLAS_OP_T;
    const bool tf32 = s->in == CO_F32 && (s->tf32 || m->device->tf32);
    cublasStatus_t result = m->device->blas->call.cublasLtMatmulDescCreate(
        &m->desc, tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F);

    if (result == CUBLAS_STATUS_SUCCESS && s->b_transposed)
        result = matmul_set(m, CUBLASLT_MATMUL_DESC_TRANSA, &swap, sizeof(swap));
    if (result == CUBLAS_STATUS_SUCCESS && s->a_transposed)
        result = matmul_set(m, CUBLASLT_MATMUL_DESC_TRANSB, &swap, sizeof(swap));
    return result == CUBLAS_STATUS_SUCCESS ? matmul_describe_epilogue(m, s) : result;
}

/* A row-major (rows, cols). */
static cublasStatus_t matmul_describe(cublasLtMatrixLayout_t *out, const cuda_matmul *m,
                                      co_dtype dtype, uint32_t rows, uint32_t cols)
{
    return m->device->blas->call.cublasLtMatrixLayoutCreate(out, matmul_type(dtype), cols, rows,
                                                            cols);
}

static cublasStatus_t matmul_describe_matrices(cuda_matmul *m, const cuda_matmul_shape *s)
{
    cublasStatus_t result = matmul_describe(&m->a, m, s->in, s->b_transposed ? s->n : s->k,
                                            s->b_transposed ? s->k : s->n);

    if (result == CUBLAS_STATUS_SUCCESS)
        result = matmul_describe(&m->b, m, s->in, s->a_transposed ? s->k : s->m,
                                 s->a_transposed ? s->m : s->k);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = matmul_describe(&m->d, m, s->out, s->m, s->n);
    return result;
}

/* What an algorithm may do: parts of a sum are kept apart and added in order, never in place. */
static cublasStatus_t matmul_prefer(cublasLtMatmulPreference_t preference, const matmul_calls *call)
{
    static const cublasLtMatmulPreferenceAttributes_t alignments[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    const uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, align = CO_DEVICE_ALIGN;
    const uint64_t workspace = MATMUL_WORKSPACE;
    cublasStatus_t result = call->cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace));

    if (result == CUBLAS_STATUS_SUCCESS)
        result = call->cublasLtMatmulPreferenceSetAttribute(
            preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
            sizeof(reductions));
    for (size_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]); i++)
        if (result == CUBLAS_STATUS_SUCCESS)
            result = call->cublasLtMatmulPreferenceSetAttribute(preference, alignments[i], &align,
                                                                sizeof(align));
    return result;
}

/* The first of the library's proposals, which are in the order of the time that they should take.
 */
static cublasStatus_t matmul_choose(cuda_matmul *m)
{
    const matmul_calls *call = &m->device->blas->call;
    cublasLtMatmulHeuristicResult_t found;
    cublasLtMatmulPreference_t preference;
    cublasStatus_t result = call->cublasLtMatmulPreferenceCreate(&preference);
    int n = 0;

    if (result != CUBLAS_STATUS_SUCCESS)
        return result;
    result = matmul_prefer(preference, call);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = call->cublasLtMatmulAlgoGetHeuristic(m->device->blas->handle, m->desc, m->a, m->b,
                                                      m->d, m->d, preference, 1, &found, &n);
    if (result == CUBLAS_STATUS_SUCCESS && n < 1)
        result = CUBLAS_STATUS_NOT_SUPPORTED;
    if (result == CUBLAS_STATUS_SUCCESS)
        result = found.state;
    if (result == CUBLAS_STATUS_SUCCESS) {
        m->algo = found.algo;
        m->workspace = found.workspaceSize;
    }
    (void)call->cublasLtMatmulPreferenceDestroy(preference);
    return result;
}

static co_status matmul_plan(cuda_matmul *m, const cuda_matmul_shape *shape)
{
    const cuda_blas *blas = m->device->blas;
    cublasStatus_t result = matmul_describe_product(m, shape);

    if (result == CUBLAS_STATUS_SUCCESS)
        result = matmul_describe_matrices(m, shape);
    if (result == CUBLAS_STATUS_SUCCESS)
        result = matmul_choose(m);
    if (result == CUBLAS_STATUS_NOT_SUPPORTED)
        return co_fail(CO_E_UNSUPPORTED, "cuda: cuBLASLt has no algorithm for %u x %u x %u",
                       shape->m, shape->n, shape->k);
    return result == CUBLAS_STATUS_SUCCESS ? CO_OK : matmul_fail(blas, result, "a product");
}

co_status cuda_matmul_create(cuda_matmul **out, co_device *base, const cuda_matmul_shape *shape)
{
    const cuda_device *device = (const cuda_device *)base;
    cuda_matmul *m;
    co_status st;

    if (!device->blas)
        return co_fail(CO_E_UNSUPPORTED, "cuda: " MATMUL_MISSING);
    if (shape->gelu != CUDA_MATMUL_NO_GELU && (shape->out == CO_F32 || shape->n % MATMUL_KEPT))
        return co_fail(CO_E_UNSUPPORTED,
                       "cuda: cuBLASLt's GELU is used in 16 bits, for rows of a multiple of %d",
                       MATMUL_KEPT);
    CO_TRY(cuda_enter(device));
    m = co_calloc(1, sizeof(*m));
    if (!m)
        return CO_E_NOMEM;
    m->device = device;
    m->bias = shape->bias;
    m->keeps = shape->gelu == CUDA_MATMUL_GELU_KEEP || shape->gelu == CUDA_MATMUL_GELU_GRADIENT;
    st = matmul_plan(m, shape);
    if (st != CO_OK) {
        cuda_matmul_destroy(m);
        return st;
    }
    *out = m;
    return CO_OK;
}

void cuda_matmul_destroy(cuda_matmul *m)
{
    const matmul_calls *call;

    if (!m)
        return;
    call = &m->device->blas->call;
    if (m->desc)
        (void)call->cublasLtMatmulDescDestroy(m->desc);
    if (m->a)
        (void)call->cublasLtMatrixLayoutDestroy(m->a);
    if (m->b)
        (void)call->cublasLtMatrixLayoutDestroy(m->b);
    if (m->d)
        (void)call->cublasLtMatrixLayoutDestroy(m->d);
    co_free(m);
}

const char *cuda_matmul_refuses(co_device *device, const cuda_matmul_shape *shape)
{
    cuda_matmul *m = NULL;
    const co_status st = cuda_matmul_create(&m, device, shape);

    cuda_matmul_destroy(m);
    if (!((const cuda_device *)device)->blas)
        return MATMUL_MISSING;
    return st == CO_OK ? NULL : "cuBLASLt has no algorithm for it";
}

size_t cuda_matmul_workspace(const cuda_matmul *m)
{
    return m->workspace;
}

co_status cuda_matmul_run(const cuda_matmul *m, co_queue *queue, const cuda_matmul_operands *o)
{
    const cuda_blas *blas = m->device->blas;
    const float one = 1, beta = o->accumulate ? 1 : 0;
    cublasStatus_t result = CUBLAS_STATUS_SUCCESS;

    CO_TRY(cuda_enter(m->device));
    if (m->bias)
        result = matmul_set(m, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &o->bias, sizeof(o->bias));
    if (result == CUBLAS_STATUS_SUCCESS && m->keeps)
        result =
            matmul_set(m, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &o->kept, sizeof(o->kept));
    if (result == CUBLAS_STATUS_SUCCESS)
        result = blas->call.cublasLtMatmul(
            blas->handle, m->desc, &one, o->b, m->a, o->a, m->b, &beta, o->d, m->d, o->d, m->d,
            &m->algo, o->workspace, m->workspace, (cudaStream_t)((cuda_queue *)queue)->stream);
    return result == CUBLAS_STATUS_SUCCESS ? CO_OK : matmul_fail(blas, result, "a product");
}
