/*
 * cases_net.c - sequences of ops as in networks: layouts change, tensors are read twice, results
 * overwrite inputs. A bias before batchnorm has no effect, and its gradient would be rounding
 * noise; so these have none.
 */
#include "cases.h"

/* Between two 1 x 1 convolutions, so that blocked layouts are both read and passed on. */
#define SMALL(name, batch, h, w, attrs)                                                            \
    {                                                                                              \
        "net small image, " name, batch, {3, {16, h, w}},                                          \
            "conv2d {out: 32, kernel: 1}; conv2d {out: 48, " attrs                                 \
            "}; conv2d {out: 16, kernel: 1}",                                                      \
            false                                                                                  \
    }

const ops_case cases_net[] = {
    SMALL("8 x 8 to 4 x 4", 2, 8, 8, "kernel: 3, stride: 2, padding: 1"),
    SMALL("4 x 4 to 2 x 2", 9, 4, 4, "kernel: 3, stride: 2, padding: 1"),
    SMALL("2 x 2", 3, 2, 2, "kernel: 3, padding: 1"),
    SMALL("2 x 2 to a pixel, no bias", 1, 2, 2, "kernel: 3, stride: 2, padding: 1, bias: false"),
    SMALL("a pixel", 15, 1, 1, "kernel: 3, padding: 1"),
    SMALL("a pixel of few", 5, 2, 2, "kernel: 1, stride: 2"),
    SMALL("3 x 4, mixed", 4, 3, 4, "kernel: [3, 5], padding: [2, 2], stride: [2, 1]"),
    SMALL("5 x 3, dilated", 3, 5, 3, "kernel: 3, dilation: 2, padding: 2"),
    SMALL("pixels that no tap sees", 2, 6, 5, "kernel: 2, stride: 4, padding: 1"),
    SMALL("an even number", 10, 3, 4, "kernel: 3, padding: 1, bias: false"),
    SMALL("more padding than image", 2, 2, 1, "kernel: 3, padding: 2"),
    {"net phases after another convolution",
     3,
     {3, {3, 13, 11}},
     "conv2d {out: 4, kernel: 1}; conv2d {out: 16, kernel: 5, stride: 2, padding: 2}",
     false},
    {"net two convolutions",
     2,
     {3, {3, 7, 7}},
     "conv2d {out: 5, kernel: 3}; conv2d {out: 4, kernel: 3}",
     false},
    {"net mnist-net",
     3,
     {3, {1, 28, 28}},
     "conv2d {out: 10, kernel: 5}; maxpool {kernel: 2}; relu;"
     "conv2d {out: 20, kernel: 5}; dropout2d {p: 0.5}; maxpool {kernel: 2}; relu; flatten;"
     "linear {out: 50}; relu; dropout {p: 0.5}; linear {out: 10}; log_softmax; nll_loss",
     true},
    {"net mnist-net with batch norm",
     4,
     {3, {1, 28, 28}},
     "conv2d {out: 10, kernel: 5, bias: false}; maxpool {kernel: 2}; batchnorm; relu;"
     "conv2d {out: 20, kernel: 5, bias: false}; batchnorm; dropout2d {p: 0.5};"
     "maxpool {kernel: 2}; relu; flatten; linear {out: 50, bias: false}; batchnorm; relu;"
     "dropout {p: 0.5}; linear {out: 10}; log_softmax; nll_loss",
     true},
    {"net lenet5",
     2,
     {3, {1, 28, 28}},
     "conv2d {out: 6, kernel: 5, padding: 2}; relu; maxpool {kernel: 2};"
     "conv2d {out: 16, kernel: 5}; relu; maxpool {kernel: 2}; flatten;"
     "linear {out: 120}; relu; linear {out: 84}; relu; linear {out: 10}; cross_entropy",
     true},
    {"net windows that leave rows and columns out",
     2,
     {3, {1, 32, 32}},
     "conv2d {out: 16, kernel: 5}; maxpool {kernel: 2}; relu;"
     "conv2d {out: 32, kernel: 5}; maxpool {kernel: 2}; relu; dropout {p: 0.4};"
     "maxpool {kernel: 2}; flatten; linear {out: 7}; cross_entropy",
     true},
    {"net windows that leave different rows and columns out",
     17,
     {3, {2, 21, 17}},
     "conv2d {out: 5, kernel: [3, 2], padding: 1}; relu; maxpool {kernel: 2};"
     "conv2d {out: 6, kernel: 3, dilation: 2, padding: 2}; maxpool {kernel: [2, 1]};"
     "dropout2d {p: 0.2}; avgpool {kernel: [3, 5]}; flatten; linear {out: 3}; cross_entropy",
     true},
    {"net rows read by one of two readers",
     3,
     {3, {1, 15, 14}},
     "conv2d {out: 4, kernel: 3}; maxpool {kernel: 2}; keep;"
     "conv2d {out: 4, kernel: 3, padding: 1}; add; maxpool {kernel: 4}; flatten; linear {out: 3};"
     "cross_entropy",
     true},
    {"net residual block",
     2,
     {3, {8, 6, 6}},
     "conv2d {out: 16, kernel: 3, padding: 1}; relu; keep;"
     "conv2d {out: 16, kernel: 3, padding: 1, bias: false}; batchnorm; relu;"
     "conv2d {out: 16, kernel: 3, padding: 1, bias: false}; batchnorm; add; relu;"
     "adaptive_avgpool {size: 1}; flatten; linear {out: 10}; cross_entropy {label_smoothing: 0.1}",
     true},
    {"net smooth residual block",
     3,
     {3, {4, 5, 5}},
     "keep; conv2d {out: 4, kernel: 3, padding: 1, bias: false}; batchnorm;"
     "conv2d {out: 4, kernel: 3, padding: 1}; add; avgpool {kernel: 2}; flatten; linear {out: 3};"
     "cross_entropy",
     false},
    {"net kept twice",
     2,
     {3, {3, 4, 4}},
     "keep; add; add; conv2d {out: 2, kernel: 3}; flatten",
     false},
    {"net pool between",
     2,
     {3, {3, 9, 9}},
     "conv2d {out: 17, kernel: 3}; avgpool {kernel: 3, stride: 2}; conv2d {out: 5, kernel: 2};"
     "adaptive_avgpool {size: [2, 1]}; flatten; dropout {p: 0.2}; linear {out: 6}; log_softmax",
     false},
    {"net overlapping maxima between",
     2,
     {3, {16, 9, 8}},
     "conv2d {out: 40, kernel: 1}; maxpool {kernel: 3, stride: 2, padding: 1};"
     "conv2d {out: 33, kernel: 2, padding: 1}; maxpool {kernel: 2}; conv2d {out: 16, kernel: 1}",
     true},
    {"net means between",
     2,
     {3, {16, 8, 7}},
     "conv2d {out: 40, kernel: 1}; avgpool {kernel: 3, stride: 2, padding: 1};"
     "conv2d {out: 16, kernel: 1}",
     false},
    {"net phases before blocks",
     2,
     {3, {3, 23, 21}},
     "conv2d {out: 64, kernel: 7, stride: 2, padding: 3, bias: false}; batchnorm; relu;"
     "conv2d {out: 16, kernel: 3, padding: 1}",
     true},
    {"net groups between",
     2,
     {3, {8, 6, 6}},
     "conv2d {out: 8, kernel: 3, groups: 8, padding: 1, bias: false}; batchnorm;"
     "conv2d {out: 12, kernel: 1};"
     "conv2d {out: 12, kernel: 3, groups: 3, stride: 2}; flatten; linear {out: 4}; cross_entropy",
     false},
    {"net two blocks of samples",
     29,
     {3, {2, 7, 6}},
     "conv2d {out: 5, kernel: 3, padding: 1, bias: false}; batchnorm; relu; dropout2d {p: 0.3};"
     "maxpool {kernel: 2}; keep; conv2d {out: 5, kernel: 3, padding: 1}; add; dropout {p: 0.2};"
     "flatten; linear {out: 6}; cross_entropy",
     true},
    {"net of sequences",
     2,
     {2, {5, 8}},
     "rmsnorm; keep; linear {out: 8}; concat; rotary {heads: 2}; attention {heads: 2};"
     "linear {out: 8}; silu; mul; flatten; linear {out: 3}; cross_entropy",
     false},
    {0},
};
