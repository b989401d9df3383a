/* cases_linear.c - from one input and output up to sizes that are no multiple of a vector. */
#include "cases.h"

#define LINEAR(name, batch, f, attrs)                                                              \
    {                                                                                              \
        name, batch, {1, {f}}, "linear {" attrs "}", false                                         \
    }

const ops_case cases_linear[] = {
    LINEAR("linear 1 to 1", 1, 1, "out: 1"),
    LINEAR("linear batch 1", 1, 50, "out: 10"),
    LINEAR("linear first of mnist-net", 5, 320, "out: 50"),
    LINEAR("linear odd", 3, 13, "out: 7"),
    LINEAR("linear vector + 1", 7, 17, "out: 33"),
    LINEAR("linear whole vectors", 16, 64, "out: 32"),
    LINEAR("linear many to 1", 6, 31, "out: 1"),
    LINEAR("linear 1 to many", 6, 1, "out: 31"),
    LINEAR("linear long rows", 3, 1101, "out: 3"),
    LINEAR("linear many outputs", 3, 197, "out: 131"),
    LINEAR("linear many samples", 133, 193, "out: 3"),
    LINEAR("linear more samples", 201, 84, "out: 21"),
    LINEAR("linear many of all", 66, 195, "out: 129"),
    LINEAR("linear in blocks", 97, 91, "out: 93"),
    LINEAR("linear no bias", 4, 9, "out: 5, bias: false"),
    {0},
};
