/*
 * cases_pointwise.c - ops that work on each element, or on each row, alone.
 */
#include "cases.h"

const ops_case cases_pointwise[] = {
    {"relu images", 2, {3, {3, 4, 3}}, "relu", false},
    {"relu rows", 3, {1, {17}}, "relu", false},
    {"relu of one", 1, {1, {1}}, "relu", false},
    {"gelu images", 2, {3, {3, 4, 3}}, "gelu", false},
    {"gelu rows", 3, {1, {17}}, "gelu", false},
    {"gelu between layers", 3, {1, {9}}, "linear {out: 17}; gelu; linear {out: 5}", false},
    {"tanh images", 2, {3, {3, 4, 3}}, "tanh", false},
    {"tanh rows", 3, {1, {17}}, "tanh", false},
    {"tanh between layers", 3, {1, {9}}, "linear {out: 17}; tanh; linear {out: 5}", false},
    {"add to itself", 2, {3, {3, 3, 5}}, "add", false},
    {"add rows", 5, {1, {7}}, "keep; linear {out: 7}; add", false},
    {"flatten images", 3, {3, {3, 5, 2}}, "flatten", false},
    {"flatten rows", 2, {1, {9}}, "flatten", false},
    {"scale images", 2, {3, {3, 4, 3}}, "scale {factor: -0.5}", false},
    {"scale after a convolution",
     2,
     {3, {3, 4, 3}},
     "conv2d {out: 16, kernel: 3}; scale {factor: 3}",
     false},
    {"scale rows", 3, {1, {17}}, "scale {factor: 0.125}", false},
    {"dropout images", 3, {3, {3, 5, 4}}, "dropout {p: 0.3}", false},
    {"dropout rows", 5, {1, {33}}, "dropout {p: 0.5}", false},
    {"dropout nothing", 2, {1, {9}}, "dropout {p: 0}", false},
    {"dropout all", 2, {1, {9}}, "dropout {p: 1}", false},
    {"dropout2d", 3, {3, {17, 3, 2}}, "dropout2d {p: 0.4}", false},
    {"dropout2d nothing", 2, {3, {3, 2, 2}}, "dropout2d {p: 0}", false},
    {"dropout2d all", 2, {3, {3, 2, 2}}, "dropout2d {p: 1}", false},
    {"log_softmax", 3, {1, {10}}, "log_softmax", false},
    {"log_softmax of one class", 2, {1, {1}}, "log_softmax", false},
    {"log_softmax vector + 1", 5, {1, {17}}, "log_softmax", false},
    {"log_softmax many", 2, {1, {1000}}, "log_softmax", false},
    {0},
};
