/* test_device_cuda_ops.c - the operator table on a GPU, against the reference kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <cohort/ext/vector.h>

#include "backends/backends.h"
#include "device/ops_laws.h"
#include "standin/open_gpu.h"

/* Other orders of addition, and exp and log of a GPU. */
#define TOLERANCE 2e-5F
/* A value that is rounded to 16 bits the other way, further on. */
#define HALF_TOLERANCE 3e-2F

static bool is_of_library(const co_kernel *kernel)
{
    return kernel->name &&
           (strcmp(kernel->name, "cublaslt") == 0 || strcmp(kernel->name, "cudnn") == 0);
}

/* ---- the op by which test networks begin: y = x + value ---- */

static const co_vector_ops *vector_of(const co_call *call)
{
    return call->queue->device->ops->vector;
}

static co_status source_forward(co_call *call, const co_run *run)
{
    const size_t n = (size_t)co_shape_count(&call->in[0]->shape);

    (void)run;
    vector_of(call)->axpby(call->queue, call->out[0]->data, 1, call->in[0]->data, 1,
                           call->param[0].data, n);
    return CO_OK;
}

static co_status source_backward(co_call *call, const co_run *run)
{
    const size_t n = (size_t)co_shape_count(&call->in[0]->shape);
    const float *dy = call->grad_out[0]->data;
    float *grad = call->grad_param[0].data;

    if (run->accumulate)
        vector_of(call)->add(call->queue, grad, dy, n);
    else
        vector_of(call)->copy(call->queue, grad, dy, n);
    return CO_OK;
}

static const co_kernel source_kernel = {
    .op = "source",
    .forward = source_forward,
    .backward = source_backward,
};

static const co_kernel *const source_kernels[] = {&source_kernel, NULL};
static const co_backend source_backend = {
    .name = "test", .kernels = source_kernels, .device = "cuda"};

static int check_table(const co_backend *const *backends, const char *const *with)
{
    const ops_way way = {.backends = backends,
                         .loss = "mse_loss",
                         .with = with,
                         .tolerance = TOLERANCE,
                         .half_tolerance = HALF_TOLERANCE};
    co_device *device = open_gpu();
    const int n = ops_check_table(device, &way);

    co_cuda_close(device);
    return n;
}

static void ops_on_a_gpu_agree_with_reference(void **state)
{
    static const co_backend *const backends[] = {&co_backend_cuda, &source_backend, NULL};

    (void)state;
    assert_true(check_table(backends, NULL) > 100);
}

/* Those of our own that libraries have, too. */
static void ops_without_libraries_agree_with_reference(void **state)
{
    static const char *const with[] = {"linear", "conv2d", NULL};
    const co_kernel *kernels[64] = {NULL};
    co_backend own = co_backend_cuda;
    const co_backend *const backends[] = {&own, &source_backend, NULL};
    size_t n = 0, left_out = 0;

    (void)state;
    for (const co_kernel *const *k = own.kernels; *k; k++)
        if (is_of_library(*k))
            left_out++;
        else
            kernels[n++] = *k;
    assert_true(left_out > 0 && n < sizeof(kernels) / sizeof(kernels[0]));
    own.kernels = kernels;
    assert_true(check_table(backends, with) > 5);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_on_a_gpu_agree_with_reference),
        cmocka_unit_test(ops_without_libraries_agree_with_reference),
    };

    open_gpu_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
