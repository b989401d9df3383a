/*
 * flatten.c - each sample as one row.
 *
 * In the plain layout the bytes stay as they are, so this is a copy, or nothing at all where the
 * plan places the output over the input.
 */
#include "backends/ref/ref.h"

const co_kernel co_ref_flatten = {
    .op = "flatten",
    .forward = co_copy_forward,
    .backward = co_copy_backward,
    .in_place = true,
};
