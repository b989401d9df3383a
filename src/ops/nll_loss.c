/*
 * nll_loss.c - negative log-likelihood of the right class, from log-probabilities.
 */
#include "ops/rules.h"

const co_op co_op_nll_loss = {
    .name = "nll_loss",
    .summary = "negative log-likelihood, after log_softmax",
    .precision = CO_PRECISION_WIDE,
    .n_in = 2,
    .n_out = 1,
    .saves = CO_SAVES_IN,
    .grad_in = 1,
    .indices = 2,
    .is_loss = true,
    .target = CO_TARGET_LABEL,
    .shape = rules_shape_loss,
};
