/*
 * test_device_cuda_last.c - the operators of images on a GPU, in channels-last: what they read, and
 * the gradients that arrive, against the reference kernels. With the arguments "standin some" of a
 * part of the table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/backends.h"
#include "backends/cuda/cuda.h"
#include "device/ops_laws.h"
#include "device/ops_on_gpu.h"
#include "standin/open_gpu.h"

static bool some;

/* ---- the source and a loss, whose images have their channels last ---- */

static size_t bytes_of(const co_tensor *tensor)
{
    return cuda_count_of(tensor) * sizeof(float);
}

static co_status source_plan(co_call *call)
{
    cuda_set_last(call->out[0]);
    call->scratch_bytes = bytes_of(call->out[0]);
    return CO_OK;
}

static co_status source_forward_last(co_call *call, const co_run *run)
{
    co_tensor sum = *call->in[0], *out = call->out[0];

    sum.data = call->scratch;
    call->out[0] = &sum;
    CO_TRY(source_forward(call, run));
    call->out[0] = out;
    cuda_bring_last(call->queue, out->data, CO_F32, &sum);
    return CO_OK;
}

static const co_kernel source_kernel = {
    .op = "source",
    .plan = source_plan,
    .forward = source_forward_last,
    .backward = source_backward,
};

static const co_kernel plain_source_kernel = {
    .op = "source", .forward = source_forward, .backward = source_backward};
static const co_kernel *const plain_source_kernels[] = {&plain_source_kernel, NULL};

/* The plain gradient is at the end of the scratch memory. */
static co_status loss_plan_backward(co_call *call)
{
    cuda_set_last(call->grad_in[0]);
    call->scratch_bytes += bytes_of(call->grad_in[0]);
    return CO_OK;
}

static co_status loss_backward(co_call *call, const co_run *run)
{
    co_tensor plain = *call->in[0], *last = call->grad_in[0];

    plain.data = (char *)call->scratch + call->scratch_bytes - bytes_of(&plain);
    call->grad_in[0] = &plain;
    CO_TRY(co_cuda_mse_loss.backward(call, run));
    call->grad_in[0] = last;
    cuda_bring_last(call->queue, last->data, last->dtype, &plain);
    return CO_OK;
}

/* ---- tests ---- */

static void check_table(const co_kernel *const *kernels)
{
    static const char *const all[] = {"batchnorm", "pool", "images", "itself", "dropout2d", NULL};
    static const char *const part[] = {"whole vectors", "relu images", "itself", "dropout2d", NULL};
    const co_backend test = {.name = "test", .kernels = kernels, .device = "cuda"};
    const co_backend *const backends[] = {&test, &co_backend_cuda, NULL};
    const ops_way way = {.backends = backends,
                         .loss = "mse_loss",
                         .with = some ? part : all,
                         .tolerance = TOLERANCE,
                         .half_tolerance = HALF_TOLERANCE,
                         .all_half = !some};
    co_device *device = open_gpu();
    const int n = ops_check_table(device, &way);

    co_cuda_close(device);
    assert_true(n > (some ? 10 : 60));
}

static void last_channels_agree_with_reference(void **state)
{
    co_kernel loss = co_cuda_mse_loss;
    const co_kernel *const kernels[] = {&source_kernel, &loss, NULL};

    (void)state;
    loss.plan_backward = loss_plan_backward;
    loss.backward = loss_backward;
    check_table(kernels);
}

/* They are copied to the layout of what was read. */
static void last_channels_take_plain_gradients(void **state)
{
    static const co_kernel *const kernels[] = {&source_kernel, NULL};

    (void)state;
    check_table(kernels);
}

/* Gradients are copied to the plain layout. */
static void last_gradients_reach_plain_tensors(void **state)
{
    co_kernel loss = co_cuda_mse_loss;
    const co_kernel *const kernels[] = {&plain_source_kernel, &loss, NULL};

    (void)state;
    loss.plan_backward = loss_plan_backward;
    loss.backward = loss_backward;
    check_table(kernels);
}

/* From the first convolution to the last pixel no step copies an image to another layout, but for
   the gradient of the test's own source; sums and ReLU are no steps. */
static void last_channels_stay_through_a_residual_network(void **state)
{
    static const ops_case net = {
        "residual network",
        3,
        {3, {3, 6, 5}},
        "conv2d {out: 16, kernel: 3, bias: false}; batchnorm; relu; keep;"
        "conv2d {out: 16, kernel: 3, padding: 1, bias: false}; batchnorm; add; relu;"
        "maxpool {kernel: 2}; adaptive_avgpool {size: 1}; flatten; linear {out: 5}",
        true};
    static const co_backend test = {
        .name = "test", .kernels = plain_source_kernels, .device = "cuda"};
    static const co_backend *const backends[] = {&test, &co_backend_cuda, NULL};
    const ops_way way = {.backends = backends,
                         .loss = "mse_loss",
                         .tolerance = TOLERANCE,
                         .half_tolerance = HALF_TOLERANCE,
                         .all_half = true};
    co_device *device = open_gpu();
    char steps[512], library[64];

    (void)state;
    ops_check_case(device, &net, &way, true);
    if (co_cuda_dnn(library, sizeof(library)) == CO_OK) {
        ops_write_steps(steps, sizeof(steps), device, &net, &way);
        assert_string_equal(steps,
                            "source conv2d batchnorm+relu conv2d batchnorm+add+relu maxpool "
                            "adaptive_avgpool flatten linear mse_loss of 16 bits "
                            "mse_loss of 16 bits linear flatten "
                            "adaptive_avgpool maxpool batchnorm+add+relu conv2d batchnorm+relu "
                            "conv2d unpack source");
    }
    co_cuda_close(device);
}

/* In fp32, but where the library has only a substitute for that, as on an H100: then in 16 bits. */
static void gradients_of_filters_are_rounded_only_where_fp32_has_no_engine(void **state)
{
    static const ops_case net = {
        "filters", 3, {3, {16, 6, 5}}, "conv2d {out: 16, kernel: 3, bias: false}; flatten", true};
    static const co_backend test = {
        .name = "test", .kernels = plain_source_kernels, .device = "cuda"};
    static const co_backend *const backends[] = {&test, &co_backend_cuda, NULL};
    const ops_way way = {.backends = backends, .loss = "mse_loss"};
    char library[64];
    co_device *device;

    (void)state;
    if (!standin || co_cuda_dnn(library, sizeof(library)) != CO_OK)
        skip();
    device = open_gpu();
    assert_int_equal(ops_rounds_filters(device, &net, &way), getenv("STANDIN_UNFUSED") != NULL);
    co_cuda_close(device);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_channels_agree_with_reference),
        cmocka_unit_test(last_channels_take_plain_gradients),
        cmocka_unit_test(last_gradients_reach_plain_tensors),
        cmocka_unit_test(last_channels_stay_through_a_residual_network),
        cmocka_unit_test(gradients_of_filters_are_rounded_only_where_fp32_has_no_engine),
    };

    open_gpu_begin(argc, argv);
    some = argc > 2 && strcmp(argv[2], "some") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
