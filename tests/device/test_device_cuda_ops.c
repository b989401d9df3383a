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

static void ops_on_a_gpu_agree_with_reference(void **state)
{
    static const co_backend *const backends[] = {&co_backend_cuda, &source_backend, NULL};
    static const char *const without[] = {"attention", "embedding", "positions", NULL};
    const ops_way way = {.backends = backends,
                         .loss = "mse_loss",
                         .without = without,
                         .tolerance = TOLERANCE,
                         .half_tolerance = HALF_TOLERANCE};
    co_device *device = open_gpu();

    (void)state;
    assert_true(ops_check_table(device, &way) > 100);
    co_cuda_close(device);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_on_a_gpu_agree_with_reference),
    };

    open_gpu_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
