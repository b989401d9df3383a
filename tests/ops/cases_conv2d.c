/*
 * cases_conv2d.c - sizes on both sides of a vector's width, every attribute, and their mixtures.
 */
#include "cases.h"

#define CONV(name, batch, c, h, w, attrs)                                                          \
    {                                                                                              \
        name, batch, {3, {c, h, w}}, "conv2d {" attrs "}", false                                   \
    }

const ops_case cases_conv2d[] = {
    CONV("conv2d 1x1 image", 1, 1, 1, 1, "out: 1, kernel: 1"),
    CONV("conv2d pointwise", 3, 5, 4, 3, "out: 7, kernel: 1"),
    CONV("conv2d first of mnist-net", 2, 1, 28, 28, "out: 10, kernel: 5"),
    CONV("conv2d second of mnist-net", 3, 10, 12, 12, "out: 20, kernel: 5"),
    CONV("conv2d second of lenet5", 2, 6, 14, 14, "out: 16, kernel: 5"),
    CONV("conv2d first of lenet5", 1, 1, 28, 28, "out: 6, kernel: 5, padding: 2"),
    CONV("conv2d batch 1", 1, 3, 7, 9, "out: 5, kernel: 3"),
    CONV("conv2d vector + 1 channels", 2, 17, 5, 5, "out: 33, kernel: 3, padding: 1"),
    CONV("conv2d whole vectors", 4, 16, 8, 8, "out: 32, kernel: 3, padding: 1"),
    CONV("conv2d with work for several threads", 2, 40, 12, 12, "out: 40, kernel: 3, padding: 1"),
    CONV("conv2d of many tiles", 4, 32, 12, 12, "out: 48, kernel: 3, padding: 1"),
    CONV("conv2d of tiles with rests", 9, 16, 7, 6, "out: 16, kernel: 3, padding: 1, bias: false"),
    CONV("conv2d of tiles without padding", 6, 16, 11, 14, "out: 32, kernel: 3"),
    CONV("conv2d of tiles with much padding", 5, 16, 9, 10, "out: 48, kernel: 3, padding: [2, 1]"),
    CONV("conv2d of blocks, pointwise", 2, 48, 5, 4, "out: 32, kernel: 1, bias: false"),
    CONV("conv2d of blocks, strided", 2, 32, 5, 6, "out: 48, kernel: 3, padding: 1, stride: 2"),
    CONV("conv2d as large as the image", 3, 4, 5, 6, "out: 3, kernel: [5, 6]"),
    CONV("conv2d as large as the image, whole vectors", 3, 16, 2, 3, "out: 32, kernel: [2, 3]"),
    CONV("conv2d of a pixel", 5, 16, 1, 1, "out: 32, kernel: 3, padding: 1"),
    CONV("conv2d of a pixel, strided", 3, 5, 1, 1, "out: 7, kernel: 5, padding: 2, stride: 2"),
    CONV("conv2d of four pixels", 4, 32, 2, 2, "out: 16, kernel: 3, padding: 1, stride: 2"),
    CONV("conv2d of a row with taps to spare", 3, 4, 1, 6, "out: 5, kernel: 3, padding: 1"),
    CONV("conv2d of taps to spare in groups", 3, 4, 1, 2,
         "out: 6, kernel: 5, padding: 2, groups: 2"),
    CONV("conv2d of taps to spare, dilated", 3, 3, 2, 2,
         "out: 4, kernel: 3, dilation: 2, padding: 2"),
    CONV("conv2d flat kernel", 2, 3, 6, 7, "out: 4, kernel: [1, 3]"),
    CONV("conv2d tall kernel", 2, 3, 7, 6, "out: 4, kernel: [3, 1], padding: [1, 0]"),
    CONV("conv2d stride", 3, 3, 9, 8, "out: 6, kernel: 3, stride: 2"),
    CONV("conv2d stride with rest", 2, 3, 10, 11, "out: 6, kernel: 3, stride: [2, 3], padding: 1"),
    CONV("conv2d stride over kernel", 2, 2, 9, 9, "out: 3, kernel: 2, stride: 3"),
    CONV("conv2d first of resnet", 1, 3, 17, 19, "out: 8, kernel: 7, stride: 2, padding: 3"),
    CONV("conv2d shortcut of resnet", 2, 8, 7, 7, "out: 16, kernel: 1, stride: 2, bias: false"),
    CONV("conv2d wide padding", 2, 2, 3, 3, "out: 3, kernel: 3, padding: 2"),
    CONV("conv2d uneven padding", 2, 2, 5, 4, "out: 3, kernel: [3, 2], padding: [0, 1]"),
    CONV("conv2d dilation", 2, 3, 9, 9, "out: 4, kernel: 3, dilation: 2"),
    CONV("conv2d uneven dilation", 2, 3, 9, 8, "out: 4, kernel: 3, dilation: [3, 1], padding: 2"),
    CONV("conv2d dilation and stride", 2, 2, 11, 11,
         "out: 3, kernel: 3, dilation: 2, stride: 2, padding: 2"),
    CONV("conv2d no bias", 2, 3, 6, 6, "out: 5, kernel: 3, bias: false"),
    CONV("conv2d groups", 2, 6, 7, 7, "out: 9, kernel: 3, groups: 3"),
    CONV("conv2d groups without bias", 2, 4, 6, 6, "out: 8, kernel: 3, groups: 2, bias: false"),
    CONV("conv2d groups of a vector", 1, 16, 6, 6, "out: 16, kernel: 3, groups: 2, padding: 1"),
    CONV("conv2d depthwise", 2, 7, 6, 6, "out: 7, kernel: 3, groups: 7, padding: 1"),
    CONV("conv2d depthwise, two each", 2, 5, 6, 6, "out: 10, kernel: 3, groups: 5, stride: 2"),
    {0},
};
