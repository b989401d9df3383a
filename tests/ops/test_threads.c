/*
 * test_threads.c - own loops give the same bits with 1, 2, 3 and 4 threads: layers large enough to
 * be shared. (oneDNN's convolutions add up the gradients of weights thread by thread: theirs have
 * other bits with other numbers of threads.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cases.h"
#include "core/isa.h"
#include "half_loops.h"

#define MOST_THREADS 4

static void compare(const float *got, const float *want, size_t n, const char *what, int threads)
{
    if (n && memcmp(got, want, n * sizeof(float)) != 0)
        fail_msg("%s: other bits with %d threads than with one", what, threads);
}

static void check_on(const ops_case *c, const co_backend *const *backends, co_dtype low)
{
    harness *h = cases_create(c);
    harness_mode mode = {
        .backends = backends, .training = true, .threads = 1, .precision = {.low = low}};
    harness_result want;

    assert_int_equal(harness_measure(&want, h, &mode, true), CO_OK);
    for (mode.threads = 2; mode.threads <= MOST_THREADS; mode.threads++) {
        harness_result got;

        assert_int_equal(harness_measure(&got, h, &mode, true), CO_OK);
        compare(got.out, want.out, want.n_out, "output", mode.threads);
        compare(got.loss, want.loss, want.n_loss, "loss", mode.threads);
        compare(got.grad, want.grad, want.n_grad, "gradient", mode.threads);
        compare(got.buffer, want.buffer, want.n_buffer, "statistics", mode.threads);
        harness_result_free(&got);
    }
    harness_result_free(&want);
    harness_destroy(h);
}

static void check(const ops_case *c)
{
    check_on(c, co_backends_find("cpu"), CO_F32);
}

static void skip_below(co_isa level)
{
    if (!co_isa_has(level)) {
        print_message("skipped: no kernel of this layer without %s\n", co_isa_title(level));
        skip();
    }
}

static void check_with_avx512(const char *net, int64_t batch)
{
    const ops_case c = {net, batch, {3, {64, 16, 16}}, net, true};

    skip_below(CO_ISA_AVX512);
    check(&c);
}

static void winograd_convolution_of_any_threads_same_bits(void **state)
{
    (void)state;
    check_with_avx512("conv2d {out: 64, kernel: 3, padding: 1}", 8);
}

static void winograd_convolution_in_bf16_of_any_threads_same_bits(void **state)
{
    static const ops_case small = {"conv2d of tiles of 7",
                                   9,
                                   {3, {64, 14, 14}},
                                   "conv2d {out: 96, kernel: 3, padding: 1}",
                                   true};
    static const ops_case parts = {"conv2d of weights in parts",
                                   8,
                                   {3, {272, 7, 7}},
                                   "conv2d {out: 512, kernel: 3, padding: 1}",
                                   true};

    (void)state;
    skip_below(CO_ISA_AVX512_BF16);
    check_on(&small, co_backends_find("cpu"), CO_BF16);
    check_on(&parts, co_backends_find("cpu"), CO_BF16);
}

static void batch_norm_with_relu_of_any_threads_same_bits(void **state)
{
    (void)state;
    check_with_avx512("conv2d {out: 64, kernel: 3, padding: 1}; batchnorm; relu", 8);
}

static void convolution_of_small_images_of_any_threads_same_bits(void **state)
{
    (void)state;
    check_with_avx512("conv2d {out: 64, kernel: 3, padding: 1}; maxpool {kernel: 8};"
                      "conv2d {out: 256, kernel: 3, padding: 1}",
                      8);
}

static void adaptive_pooling_of_any_threads_same_bits(void **state)
{
    (void)state;
    check_with_avx512("conv2d {out: 64, kernel: 3, padding: 1}; adaptive_avgpool {size: 12}", 16);
}

static void linear_layer_of_any_threads_same_bits(void **state)
{
    static const ops_case few = {"linear", 64, {1, {512}}, "linear {out: 400}", false};
    static const ops_case many = {
        "linear", 400, {1, {128}}, "linear {out: 84}; log_softmax", false};

    (void)state;
    skip_below(CO_ISA_AVX2);
    check(&few);
    check(&many);
}

static void losses_of_any_threads_same_bits(void **state)
{
    static const char *const nets[] = {
        "scale {factor: 20}; tanh; scale {factor: 9}; cross_entropy {label_smoothing: 0.1}",
        "log_softmax; nll_loss", "mse_loss", "l1_loss", "bce_with_logits_loss"};

    (void)state;
    for (size_t i = 0; i < sizeof(nets) / sizeof(nets[0]); i++) {
        const ops_case c = {nets[i], 37, {1, {5000}}, nets[i], false};

        check(&c);
    }
}

static void direct_convolution_of_any_threads_same_bits(void **state)
{
    static const char *const nets[] = {
        "conv2d {out: 40, kernel: 7, stride: 2, padding: 3}; relu;"
        "maxpool {kernel: 3, stride: 2, padding: 1}",
        "conv2d {out: 96, kernel: 1}; keep; conv2d {out: 96, kernel: 3, stride: 1, dilation: 2,"
        "padding: 2}; add; avgpool {kernel: 2}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(nets) / sizeof(nets[0]); i++) {
        const ops_case few = {nets[i], 8, {3, {3, 40, 40}}, nets[i], true};
        const ops_case many = {nets[i], 8, {3, {64, 24, 24}}, nets[i], true};

        check(&few);
        check(&many);
    }
}

static void products_of_bf16_of_any_threads_same_bits(void **state)
{
    static const char *const net =
        "conv2d {out: 96, kernel: 1}; batchnorm; relu; conv2d {out: 64, kernel: 3, stride: 2};"
        "flatten; linear {out: 48}";
    static const char *const forms[] = {"tiles", "pairs", "floats"};
    const ops_case c = {net, 9, {3, {32, 9, 9}}, net, true};

    (void)state;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (half_loops_find(forms[i]))
            check_on(&c, half_loops_find(forms[i])->backends, CO_BF16);
}

static void convolutions_before_pooling_of_any_threads_same_bits(void **state)
{
    static const ops_case c = {
        "sparse",
        118,
        {3, {1, 28, 28}},
        "conv2d {out: 10, kernel: 5}; maxpool {kernel: 2}; relu;"
        "conv2d {out: 20, kernel: 5}; dropout2d {p: 0.5}; maxpool {kernel: 2}; relu; flatten;"
        "linear {out: 50}; relu; dropout {p: 0.5}; linear {out: 10}",
        true};

    (void)state;
    check(&c);
}

static void convolutions_alone_of_any_threads_same_bits(void **state)
{
    static const ops_case c = {"dense",
                               118,
                               {3, {1, 12, 12}},
                               "conv2d {out: 10, kernel: 3, padding: 1}; batchnorm;"
                               "conv2d {out: 6, kernel: 5, padding: 2}; dropout {p: 0.5};"
                               "conv2d {out: 20, kernel: 3}; maxpool {kernel: 3, stride: 2}",
                               true};

    (void)state;
    check(&c);
}

static void winograd_of_samples_as_lanes_of_any_threads_same_bits(void **state)
{
    static const ops_case c = {"winograd",
                               70,
                               {3, {3, 16, 16}},
                               "conv2d {out: 20, kernel: 3, padding: 1}; relu;"
                               "conv2d {out: 20, kernel: 3, padding: 1}; maxpool {kernel: 2}; relu",
                               true};

    (void)state;
    check(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(winograd_convolution_of_any_threads_same_bits),
        cmocka_unit_test(winograd_convolution_in_bf16_of_any_threads_same_bits),
        cmocka_unit_test(batch_norm_with_relu_of_any_threads_same_bits),
        cmocka_unit_test(convolution_of_small_images_of_any_threads_same_bits),
        cmocka_unit_test(adaptive_pooling_of_any_threads_same_bits),
        cmocka_unit_test(linear_layer_of_any_threads_same_bits),
        cmocka_unit_test(losses_of_any_threads_same_bits),
        cmocka_unit_test(direct_convolution_of_any_threads_same_bits),
        cmocka_unit_test(products_of_bf16_of_any_threads_same_bits),
        cmocka_unit_test(convolutions_before_pooling_of_any_threads_same_bits),
        cmocka_unit_test(convolutions_alone_of_any_threads_same_bits),
        cmocka_unit_test(winograd_of_samples_as_lanes_of_any_threads_same_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
