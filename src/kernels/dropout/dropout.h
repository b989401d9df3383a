/*
 * dropout.h - drop elements, or whole channels, of one sample whose random numbers have been drawn,
 * in any layout that reorder.h has places for.
 */
#ifndef CO_KERNELS_DROPOUT_H
#define CO_KERNELS_DROPOUT_H

#include <stdbool.h>

#include "kernels/reorder/reorder.h"

/* y = u < probability ? 0 : x / (1 - probability), where u is (C, plane), or (C) where whole
   channels are dropped. y may be x. What pads blocks of channels is left alone. */
void dropout_apply(float *y, const float *x, const reorder_places *places, const float *u,
                   double probability, bool channels);

#endif
