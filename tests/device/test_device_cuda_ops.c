/* test_device_cuda_ops.c - the operator table on a GPU, against the reference kernels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backends/backends.h"
#include "device/ops_laws.h"
#include "device/ops_on_gpu.h"
#include "standin/open_gpu.h"

static bool is_of_library(const co_kernel *kernel)
{
    return kernel->name &&
           (strcmp(kernel->name, "cublaslt") == 0 || strcmp(kernel->name, "cudnn") == 0);
}

static const co_kernel source_kernel = {
    .op = "source",
    .forward = source_forward,
    .backward = source_backward,
};

static const co_kernel *const source_kernels[] = {&source_kernel, NULL};
static const co_backend source_backend = {
    .name = "test", .kernels = source_kernels, .device = "cuda"};

static ops_way way_of(const co_backend *const *backends, const char *const *with)
{
    return (ops_way){.backends = backends,
                     .loss = "mse_loss",
                     .with = with,
                     .tolerance = TOLERANCE,
                     .half_tolerance = HALF_TOLERANCE};
}

static int check_table(const co_backend *const *backends, const char *const *with)
{
    const ops_way way = way_of(backends, with);
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

/* In 16 bits: with its gradient in the next product, without where another layer reads the result,
   and not at all where the library cannot. */
static void ops_of_linear_with_gelu_agree_with_reference(void **state)
{
    static const struct {
        ops_case c;
        const char *steps;
    } cases[] = {
        {{"gelu in products",
          6,
          {1, {8}},
          "linear {out: 24}; gelu {approximate: tanh};"
          "linear {out: 16, bias: false}; gelu {approximate: tanh}; linear {out: 5}",
          false},
         "source linear+gelu linear+gelu linear mse_loss of 16 bits "
         "mse_loss of 16 bits linear<gelu linear+gelu<gelu linear+gelu source"},
        {{"gelu read twice",
          6,
          {1, {8}},
          "linear {out: 16}; gelu {approximate: tanh}; keep;"
          "linear {out: 16}; add",
          false},
         "source linear+gelu linear add mse_loss of 16 bits mse_loss of 16 bits add linear add "
         "linear+gelu source"},
        {{"gelu of odd rows",
          6,
          {1, {8}},
          "linear {out: 12}; gelu {approximate: tanh};"
          "linear {out: 8}",
          false},
         "source linear gelu linear mse_loss of 16 bits mse_loss of 16 bits linear gelu linear "
         "source"},
        {{"gelu by erf",
          6,
          {1, {8}},
          "linear {out: 16}; gelu {approximate: none};"
          "linear {out: 8}",
          false},
         "source linear gelu linear mse_loss of 16 bits mse_loss of 16 bits linear gelu linear "
         "source"},
    };
    static const co_backend *const backends[] = {&co_backend_cuda, &source_backend, NULL};
    const ops_way way = way_of(backends, NULL);
    co_device *device = open_gpu();
    char steps[256], library[64];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ops_check_case(device, &cases[i].c, &way, true);
        if (!standin || co_cuda_blas(library, sizeof(library)) != CO_OK)
            continue; /* the library may be another, or none */
        ops_write_steps(steps, sizeof(steps), device, &cases[i].c, &way);
        assert_string_equal(steps, cases[i].steps);
    }
    co_cuda_close(device);
}

/* In bf16 and fp16: what moves queries, keys and values, and what compares logits. */
static void ops_in_16_bits_agree_with_reference(void **state)
{
    static const char *const with[] = {"rotary", "concat",        "patches",     "first",
                                       "loss",   "cross_entropy", "log_softmax", NULL};
    static const co_backend *const backends[] = {&co_backend_cuda, &source_backend, NULL};
    ops_way way = way_of(backends, with);
    co_device *device = open_gpu();

    (void)state;
    way.all_half = true;
    assert_true(ops_check_table(device, &way) > 20);
    co_cuda_close(device);
}

/* In bf16 and fp16: heads of less than a kernel's room, of all of it and of odd parts, sequences
   of part of a block's rows, and of more. */
static void ops_of_attention_on_tensor_cores_agree_with_reference(void **state)
{
    static const ops_case cases[] = {
        {"heads of 8", 2, {2, {5, 48}}, "attention {heads: 2}", false},
        {"1 position", 3, {2, {1, 24}}, "attention {heads: 1}", false},
        {"a tile and 1", 1, {2, {65, 72}}, "attention {heads: 1}", false},
        {"a block's rows and 2", 1, {2, {130, 96}}, "attention {heads: 2}", false},
        {"both ways", 2, {2, {200, 48}}, "attention {heads: 1, causal: false}", false},
        {"heads of 64", 1, {2, {70, 192}}, "attention {heads: 1}", false},
        {"heads of 72", 1, {2, {33, 216}}, "attention {heads: 1}", false},
        {"heads of 128", 1, {2, {80, 384}}, "attention {heads: 1}", false},
        {"shared keys", 2, {2, {37, 80}}, "attention {heads: 6, kv_heads: 2}", false},
        {"shared keys of more than a block",
         1,
         {2, {140, 64}},
         "attention {heads: 4, kv_heads: 2, causal: false}",
         false},
        {"dropout", 2, {2, {70, 64}}, "attention {heads: 4, kv_heads: 2, dropout: 0.3}", false},
    };
    static const co_backend *const backends[] = {&co_backend_cuda, &source_backend, NULL};
    ops_way way = way_of(backends, NULL);
    co_device *device = open_gpu();
    char kernel[32];

    (void)state;
    way.all_half = true;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ops_check_case(device, &cases[i], &way, true);
        ops_write_kernel(kernel, sizeof(kernel), device, &cases[i], &way, "attention");
        if (standin)
            assert_string_equal(kernel, "tensor-cores");
    }
    co_cuda_close(device);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_on_a_gpu_agree_with_reference),
        cmocka_unit_test(ops_without_libraries_agree_with_reference),
        cmocka_unit_test(ops_of_linear_with_gelu_agree_with_reference),
        cmocka_unit_test(ops_in_16_bits_agree_with_reference),
        cmocka_unit_test(ops_of_attention_on_tensor_cores_agree_with_reference),
    };

    open_gpu_begin(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
