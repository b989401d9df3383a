/*
 * cases_pool.c - windows that fit exactly, leave a remainder, overlap, and reach into the padding.
 */
#include "cases.h"

#define POOL(name, batch, c, h, w, net)                                                            \
    {                                                                                              \
        name, batch, {3, {c, h, w}}, net, false                                                    \
    }

const ops_case cases_pool[] = {
    POOL("maxpool 2", 2, 3, 6, 4, "maxpool {kernel: 2}"),
    POOL("maxpool 2 of an odd image", 2, 3, 5, 7, "maxpool {kernel: 2}"),
    POOL("maxpool overlapping", 2, 3, 7, 7, "maxpool {kernel: 3, stride: 2}"),
    POOL("maxpool of resnet", 1, 4, 9, 8, "maxpool {kernel: 3, stride: 2, padding: 1}"),
    POOL("maxpool stride 1", 1, 2, 5, 5, "maxpool {kernel: 3, stride: 1, padding: 1}"),
    POOL("maxpool gaps", 1, 2, 8, 8, "maxpool {kernel: 2, stride: 3}"),
    POOL("maxpool uneven", 2, 2, 6, 9, "maxpool {kernel: [2, 3], padding: [1, 0]}"),
    POOL("maxpool all", 3, 5, 4, 3, "maxpool {kernel: [4, 3]}"),
    POOL("maxpool 1", 1, 2, 3, 3, "maxpool {kernel: 1}"),
    POOL("maxpool vector + 1 channels", 1, 17, 4, 4, "maxpool {kernel: 2}"),
    POOL("maxpool whole vectors", 2, 16, 4, 4, "maxpool {kernel: 2}"),
    POOL("maxpool of blocks, overlapping", 2, 33, 9, 8,
         "maxpool {kernel: 3, stride: 2, padding: 1}"),
    POOL("maxpool of a wide image, overlapping", 1, 3, 6, 21,
         "maxpool {kernel: 3, stride: 2, padding: 1}"),
    POOL("maxpool of a wide image", 1, 3, 4, 18, "maxpool {kernel: 2}"),
    POOL("maxpool of a wide image, stride 1", 1, 3, 4, 11, "maxpool {kernel: [1, 3], stride: 1}"),
    POOL("avgpool of blocks, overlapping", 2, 33, 9, 8,
         "avgpool {kernel: 3, stride: 2, padding: 1, count_include_pad: false}"),
    POOL("avgpool 2", 2, 3, 6, 4, "avgpool {kernel: 2}"),
    POOL("avgpool 2 of an odd image", 2, 3, 5, 7, "avgpool {kernel: 2}"),
    POOL("avgpool overlapping", 2, 3, 7, 7, "avgpool {kernel: 3, stride: 2}"),
    POOL("avgpool padded", 1, 4, 9, 8, "avgpool {kernel: 3, stride: 2, padding: 1}"),
    POOL("avgpool padded, inside only", 1, 4, 9, 8,
         "avgpool {kernel: 3, stride: 2, padding: 1, count_include_pad: false}"),
    POOL("avgpool uneven", 2, 2, 6, 9, "avgpool {kernel: [2, 3], padding: [1, 0]}"),
    POOL("avgpool vector + 1 channels", 1, 17, 4, 4, "avgpool {kernel: 2}"),
    POOL("avgpool whole vectors", 2, 16, 5, 4, "avgpool {kernel: 3, stride: 2, padding: 1}"),
    POOL("maxpool whole vectors, overlapping", 2, 8, 5, 6,
         "maxpool {kernel: 3, stride: 2, padding: 1}"),
    POOL("adaptive whole vectors, overlapping", 2, 16, 7, 5, "adaptive_avgpool {size: [3, 4]}"),
    POOL("adaptive to 1", 2, 5, 7, 6, "adaptive_avgpool {size: 1}"),
    POOL("adaptive to a divisor", 2, 3, 6, 6, "adaptive_avgpool {size: [3, 2]}"),
    POOL("adaptive with overlap", 2, 3, 7, 5, "adaptive_avgpool {size: [3, 4]}"),
    POOL("adaptive to the same", 1, 2, 4, 5, "adaptive_avgpool {size: [4, 5]}"),
    POOL("adaptive to a larger one", 1, 2, 3, 3, "adaptive_avgpool {size: [7, 4]}"),
    {0},
};
