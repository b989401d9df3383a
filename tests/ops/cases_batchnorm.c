/* cases_batchnorm.c - batchnorm of images and vectors, with few and many values per channel. */
#include "cases.h"

const ops_case cases_batchnorm[] = {
    {"batchnorm images", 3, {3, {5, 4, 3}}, "batchnorm", false},
    {"batchnorm batch 1", 1, {3, {3, 5, 5}}, "batchnorm", false},
    {"batchnorm vector + 1 channels", 2, {3, {17, 3, 3}}, "batchnorm", false},
    {"batchnorm whole vectors", 4, {3, {16, 4, 4}}, "batchnorm", false},
    {"batchnorm rows", 7, {1, {9}}, "batchnorm", false},
    {"batchnorm two rows", 2, {1, {5}}, "batchnorm {eps: 1e-2}", false},
    {"batchnorm slow", 3, {3, {2, 3, 3}}, "batchnorm {momentum: 0.01, eps: 1e-3}", false},
    {"batchnorm forgetting", 3, {3, {2, 3, 3}}, "batchnorm {momentum: 1}", false},
    {"batchnorm frozen", 3, {3, {2, 3, 3}}, "batchnorm {momentum: 0}", false},
    {"batchnorm, relu",
     3,
     {3, {16, 5, 4}},
     "conv2d {out: 24, kernel: 1, bias: false}; batchnorm; relu",
     true},
    {"batchnorm, add",
     2,
     {3, {16, 6, 6}},
     "conv2d {out: 32, kernel: 1}; keep; conv2d {out: 32, kernel: 1, bias: false}; batchnorm; add",
     false},
    {"batchnorm, add, relu",
     2,
     {3, {16, 12, 12}},
     "conv2d {out: 32, kernel: 1}; keep; conv2d {out: 32, kernel: 1, bias: false}; batchnorm; "
     "relu; "
     "conv2d {out: 32, kernel: 3, padding: 1, bias: false}; batchnorm; add; relu; conv2d {out: 4, "
     "kernel: 1}",
     true},
    {"batchnorm, relu, add",
     2,
     {3, {16, 7, 7}},
     "conv2d {out: 20, kernel: 1, bias: false}; batchnorm; relu; keep; conv2d {out: 20, kernel: 1, "
     "bias: false}; batchnorm; "
     "relu; add; conv2d {out: 17, kernel: 1}",
     true},
    {"two residual blocks",
     2,
     {3, {16, 8, 8}},
     "conv2d {out: 16, kernel: 1}; keep; conv2d {out: 16, kernel: 1, bias: false}; batchnorm; add; "
     "relu; keep; conv2d {out: 16, kernel: 3, padding: 1, bias: false}; batchnorm; relu; "
     "conv2d {out: 16, kernel: 1, bias: false}; batchnorm; add; relu; conv2d {out: 5, kernel: 1}",
     true},
    {"batchnorm, relu read twice",
     2,
     {3, {16, 4, 4}},
     "conv2d {out: 16, kernel: 1, bias: false}; batchnorm; keep; relu; add; relu",
     true},
    {"batchnorm, add to itself",
     2,
     {3, {16, 4, 4}},
     "conv2d {out: 16, kernel: 1, bias: false}; batchnorm; keep; add; relu",
     true},
    {"batchnorm, add the input", 2, {3, {16, 4, 4}}, "keep; batchnorm; add; relu", true},
    {0},
};
