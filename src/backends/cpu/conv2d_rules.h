/* conv2d_rules.h - properties of a convolution, for kernels of several backends. */
#ifndef CO_BACKENDS_CPU_CONV2D_RULES_H
#define CO_BACKENDS_CPU_CONV2D_RULES_H

#include <cohort/ext/kernel.h>

/* In one dimension: the taps that meet the image, and the padding before and after. */
typedef struct conv2d_reach {
    int64_t begin, taps, before, after;
} conv2d_reach;

/* Leave out taps of dimension i (0: rows) that only meet padding, like most of a 3 x 3 kernel on a
   1 x 1 image. Returns whether there are any. */
bool conv2d_trim(conv2d_reach *out, const co_call *call, int i);
bool conv2d_is_trimmed(const co_call *call);
/* Whether Winograd's algorithm in fp32 is worthwhile; if not, *why. */
bool conv2d_suits_winograd(const co_call *call, const char **why);
/* Whether convolution by its definition comes before the kernels of other backends, and before that
   of small images; if not, *why. */
bool conv2d_suits_direct(const co_call *call, const char **why);

#endif
