/*
 * bits_per_byte.c - of text: the mean cross entropy of a byte, to the base of 2; it compares models
 * whatever their tokens are. Bytes of a token are the mean over the test split.
 */
#include <math.h>

#include "metrics/metrics.h"

static double bits_per_byte_finish(const co_sum *sums, const co_metric_form *form)
{
    return co_metric_position_loss(sums) / log(2) / form->bytes_per_token;
}

const co_metric co_metric_bits_per_byte = {
    .name = "bits_per_byte",
    .summary =
        "mean loss of a byte of text in bits; where these are known, always; lower is better",
    .targets = CO_METRIC_OF(CO_TARGET_LABEL),
    .sequences = true,
    .text = true,
    .lower = true,
    .sums = 2,
    .accumulate = co_metric_accumulate_positions,
    .finish = bits_per_byte_finish,
};
