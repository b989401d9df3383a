/*
 * cases_batch.c - batches around the width of a vector, for kernels whose lanes are samples.
 */
#include "cases.h"

const ops_case cases_batch[] = {
    {"batch of a vector", 16, {3, {1, 6, 7}}, "conv2d {out: 5, kernel: 3}", false},
    {"batch of a vector - 1", 15, {3, {3, 5, 5}}, "conv2d {out: 6, kernel: 3, padding: 1}", false},
    {"batch of two vectors - 3",
     29,
     {3, {2, 5, 4}},
     "conv2d {out: 4, kernel: [2, 3], padding: [0, 2], bias: false}",
     false},
    {"batch of two vectors",
     32,
     {3, {2, 6, 6}},
     "conv2d {out: 3, kernel: 3, dilation: [2, 1], padding: [1, 1]}; conv2d {out: 2, kernel: 2}",
     false},
    {"batch through max pooling",
     16,
     {3, {1, 9, 8}},
     "conv2d {out: 3, kernel: 2}; maxpool {kernel: 3, stride: 2, padding: 1}; relu;"
     "maxpool {kernel: [2, 1], stride: [1, 2]}",
     true},
    {"batch through max pooling of large windows",
     16,
     {3, {1, 18, 18}},
     "conv2d {out: 2, kernel: 1}; maxpool {kernel: 17, stride: 1}",
     true},
    {"batch through dropout",
     15,
     {3, {2, 6, 6}},
     "conv2d {out: 5, kernel: 3}; dropout {p: 0.3}; dropout2d {p: 0.4}; flatten",
     false},
    {"batch through batchnorm",
     13,
     {3, {2, 4, 5}},
     "conv2d {out: 3, kernel: 2, bias: false}; batchnorm; conv2d {out: 4, kernel: 2}",
     false},
    {"batch through a residual",
     14,
     {3, {3, 5, 5}},
     "conv2d {out: 4, kernel: 3, padding: 1}; keep; conv2d {out: 4, kernel: 3, padding: 1}; add;"
     "add; flatten; linear {out: 3}; cross_entropy",
     false},
    {"batch from layout to layout",
     16,
     {3, {3, 6, 6}},
     "conv2d {out: 8, kernel: 3}; avgpool {kernel: 2, stride: 1}; conv2d {out: 36, kernel: 2};"
     "conv2d {out: 4, kernel: 2}; flatten; linear {out: 5}; log_softmax; nll_loss",
     false},
    {0},
};
