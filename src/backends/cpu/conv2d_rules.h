/*
 * conv2d_rules.h - questions of kernels of several backends about a convolution.
 */
#ifndef CO_BACKENDS_CPU_CONV2D_RULES_H
#define CO_BACKENDS_CPU_CONV2D_RULES_H

#include <cohort/ext/kernel.h>

/* In one dimension: the taps that meet the image, and their padding before and after. */
typedef struct conv2d_reach {
    int64_t begin, taps, before, after;
} conv2d_reach;

/* Leaves out taps of dimension i (0: rows) that only meet padding, as most of a 3 x 3 kernel on an
   image of 1 x 1 do. Returns whether there are any. */
bool conv2d_trim(conv2d_reach *out, const co_call *call, int i);
bool conv2d_is_trimmed(const co_call *call);
/* Whether Winograd's algorithm, with sums in fp32, is worth trying for a convolution; *why not. */
bool conv2d_suits_winograd(const co_call *call, const char **why);

#endif
