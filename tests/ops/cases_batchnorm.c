/*
 * cases_batchnorm.c - over images and rows, few values in a channel and many.
 */
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
    {0},
};
