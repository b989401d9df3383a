/*
 * test_refusals.c - invalid layers are rejected when the network is built, with the layer's name
 * and the reason; every failed allocation is an error.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "cases.h"
#include "core/mem.h"

#define IMAGE                                                                                      \
    {                                                                                              \
        3,                                                                                         \
        {                                                                                          \
            4, 6, 5                                                                                \
        }                                                                                          \
    }
#define ROW                                                                                        \
    {                                                                                              \
        1,                                                                                         \
        {                                                                                          \
            7                                                                                      \
        }                                                                                          \
    }
#define SEQUENCE                                                                                   \
    {                                                                                              \
        2,                                                                                         \
        {                                                                                          \
            5, 9                                                                                   \
        }                                                                                          \
    }

#define LONG_SEQUENCE                                                                              \
    {                                                                                              \
        2,                                                                                         \
        {                                                                                          \
            131073, 3                                                                              \
        }                                                                                          \
    }

static const struct {
    co_shape sample;
    const char *net, *message;
} refusals[] = {
    {IMAGE, "conv2d", "the key 'out' is missing (output channels)"},
    {IMAGE, "conv2d {out: 3}", "the key 'kernel' is missing"},
    {IMAGE, "conv2d {out: 0, kernel: 3}", "key 'out': expected a whole number from 1 to 1048576"},
    {IMAGE, "conv2d {out: -2, kernel: 3}", "got '-2'"},
    {IMAGE, "conv2d {out: 3.5, kernel: 3}", "key 'out': expected a whole number"},
    {IMAGE, "conv2d {out: 3, kernel: 0}", "key 'kernel': expected a whole number or a list"},
    {IMAGE, "conv2d {out: 3, kernel: [3, 3, 3]}", "layer conv2d1: kernel takes one number or [h"},
    {IMAGE, "conv2d {out: 3, kernel: []}", "layer conv2d1: kernel is an empty list"},
    {IMAGE, "conv2d {out: 3, kernel: 3, strid: 2}", "unknown key 'strid'; did you mean 'stride'?"},
    {IMAGE, "conv2d {out: 3, kernel: 3, stride: 0}", "key 'stride'"},
    {IMAGE, "conv2d {out: 3, kernel: 3, bias: 1}", "key 'bias': expected true or false, got '1'"},
    {IMAGE, "conv2d {out: 3, kernel: [3, 6]}", "a kernel that spans 6 does not fit the width of 5"},
    {IMAGE, "conv2d {out: 3, kernel: 7}", "a kernel that spans 7 does not fit the height of 6"},
    {IMAGE, "conv2d {out: 3, kernel: 3, dilation: 3}", "a kernel that spans 7 does not fit"},
    {IMAGE, "conv2d {out: 6, kernel: 1, groups: 3}", "groups must divide both the 4 input"},
    {IMAGE, "conv2d {out: 3, kernel: 1, groups: 2}", "and the 3 output channels; 2 does not"},
    {IMAGE, "conv2d {out: 1048576, kernel: 65536, padding: 65536}", "its weight would have more"},
    {IMAGE, "conv2d {out: 1048576, kernel: 1, padding: 65536}", "its output would have more"},
    {ROW, "conv2d {out: 3, kernel: 1}", "needs images (N, C, H, W) but gets (N, 7)"},
    {IMAGE, "linear {out: 3}", "layer linear1: needs rows (N, F) or sequences of rows"},
    {IMAGE, "layernorm", "sequences of rows (N, T, F) but gets (N, 4, 6, 5); put flatten"},
    {IMAGE, "attention {heads: 1}", "needs sequences of rows (N, T, F) but gets (N, 4, 6, 5)"},
    {SEQUENCE, "attention {heads: 2, kv_heads: 3}", "heads: 2 is no multiple of kv_heads, 3"},
    {SEQUENCE, "attention {heads: 2}", "rows of 9 do not divide into 2 queries and 2 keys and"},
    {SEQUENCE, "positions {length: 4}", "sequences of 5 positions, and rows for 4"},
    {ROW, "positions", "layer positions1: needs sequences of rows (N, T, F) but gets (N, 7)"},
    {SEQUENCE, "embedding {vocab: 3, out: 2}", "needs sequences of tokens (N, T) but gets (N, 5"},
    {ROW, "linear {out: 3}; embedding {vocab: 3, out: 2}", "takes whole numbers, such as tokens"},
    {ROW, "embedding {vocab: 3, out: 2}; linear {out: 3}; tie", "each must have one parameter"},
    {ROW, "embedding {vocab: 3, out: 2}; linear {out: 4, bias: false}; tie",
     "layer linear2 cannot be tied to embedding1.weight: its weight has the shape (4, 2), not (3"},
    {SEQUENCE, "attention {heads: 0}", "key 'heads'"},
    {SEQUENCE, "attention {heads: 1, dropout: 1.5}",
     "key 'dropout': expected a number from 0 to 1"},
    {LONG_SEQUENCE, "attention {heads: 1, dropout: 0.1}",
     "1 heads over 131073 positions have more weights than a sample has random numbers"},
    {SEQUENCE, "rotary {heads: 2}",
     "do not divide into 2 queries and 2 keys and values of an even"},
    {ROW, "rotary {heads: 1}", "needs sequences of rows (N, T, F)"},
    {SEQUENCE, "rotary {heads: 1, theta: 0.5}", "key 'theta': expected a number from 1"},
    {IMAGE, "rmsnorm", "needs rows"},
    {ROW, "keep; linear {out: 3}; mul", "layer mul2: cannot multiply (N, 3) and (N, "},
    {ROW, "concat", "all need as many positions"},
    {ROW, "patches", "needs images"},
    {ROW, "class_token", "needs sequences of rows (N, T, F)"},
    {IMAGE, "first", "needs sequences of rows (N, T, F)"},
    {ROW, "linear {out: 0}", "key 'out'"},
    {IMAGE, "maxpool", "the key 'kernel' is missing"},
    {IMAGE, "maxpool {kernel: 7}", "does not fit the height"},
    {IMAGE, "maxpool {kernel: 2, padding: 2}", "padding 2 is more than half of the kernel's 2"},
    {ROW, "maxpool {kernel: 1}", "needs images"},
    {IMAGE, "avgpool {kernel: [2, 6]}", "does not fit the width"},
    {IMAGE, "avgpool {kernel: 2, count_include_pad: maybe}", "expected true or false"},
    {IMAGE, "maxpool {kernel: 2, count_include_pad: true}", "unknown key 'count_include_pad'"},
    {IMAGE, "adaptive_avgpool {size: 0}", "key 'size'"},
    {ROW, "adaptive_avgpool {size: 1}", "needs images"},
    {IMAGE, "batchnorm {eps: 0}", "key 'eps': expected a number from"},
    {IMAGE, "batchnorm {momentum: 1.5}", "key 'momentum': expected a number from 0 to 1"},
    {IMAGE, "dropout {p: 1.01}", "key 'p': expected a number from 0 to 1, got '1.01'"},
    {IMAGE, "dropout {p: nan}", "key 'p'"},
    {ROW, "dropout2d {p: 0.5}", "needs images"},
    {IMAGE, "keep; maxpool {kernel: 2}; add", "layer add2: "},
    {IMAGE, "log_softmax", "needs rows"},
    {IMAGE, "nll_loss", "needs rows"},
    {IMAGE, "cross_entropy", "needs rows"},
    {ROW, "cross_entropy {label_smoothing: -0.1}", "key 'label_smoothing'"},
};

static void ops_impossible_shapes_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
        harness *h = NULL;
        co_status st = harness_create(&h, &refusals[i].sample, 2, refusals[i].net);

        if (st != CO_E_USAGE || !strstr(co_error_message(), refusals[i].message))
            fail_msg("%s: status %d, message: %s", refusals[i].net, (int)st,
                     st ? co_error_message() : "none");
        assert_null(h);
    }
}

/* Builds, plans and runs with the k-th allocation failing, for every k until none fails. */
static void ops_failed_allocation_is_an_error(void **state)
{
    (void)state;
    for (const ops_case *c = cases_net; c->name; c++) {
        const harness_mode mode = {.backends = co_backends, .training = true};
        co_status st = CO_E_NOMEM;
        uint64_t k;

        for (k = 1; st != CO_OK && k < 10000; k++) {
            harness_result result = {0};
            harness *h = NULL;

            co_mem_fail_at(k);
            st = harness_create(&h, &c->sample, c->batch, c->net);
            if (st == CO_OK)
                st = harness_measure(&result, h, &mode, false);
            co_mem_fail_at(0);
            if (st != CO_OK && st != CO_E_NOMEM)
                fail_msg("%s: allocation %d failed: status %d, %s", c->name, (int)k, (int)st,
                         co_error_message());
            harness_result_free(&result);
            harness_destroy(h);
        }
        assert_int_equal(st, CO_OK);
        assert_true(k > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ops_impossible_shapes_are_refused),
        cmocka_unit_test(ops_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
