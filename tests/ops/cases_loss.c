/* cases_loss.c - losses, after the layers they are used with. */
#include "cases.h"

const ops_case cases_loss[] = {
    {"nll_loss", 4, {1, {10}}, "nll_loss", false},
    {"nll_loss batch 1", 1, {1, {3}}, "nll_loss", false},
    {"nll_loss of log_softmax", 7, {1, {10}}, "log_softmax; nll_loss", false},
    {"cross_entropy", 4, {1, {10}}, "cross_entropy", false},
    {"cross_entropy batch 1", 1, {1, {2}}, "cross_entropy", false},
    {"cross_entropy one class", 2, {1, {1}}, "cross_entropy", false},
    {"cross_entropy vector + 1", 5, {1, {17}}, "cross_entropy", false},
    {"cross_entropy smoothed", 4, {1, {10}}, "cross_entropy {label_smoothing: 0.1}", false},
    {"cross_entropy all smooth", 3, {1, {5}}, "cross_entropy {label_smoothing: 1}", false},
    {"mse_loss", 4, {1, {10}}, "mse_loss", false},
    {"mse_loss batch 1", 1, {1, {1}}, "mse_loss", false},
    {"mse_loss vector + 1", 5, {1, {17}}, "mse_loss", false},
    {"mse_loss of images", 3, {3, {2, 3, 5}}, "mse_loss", false},
    {"l1_loss", 4, {1, {10}}, "l1_loss", false},
    {"l1_loss vector + 1", 4, {1, {17}}, "l1_loss", false},
    {"l1_loss of images", 3, {3, {2, 3, 5}}, "l1_loss", false},
    {"bce_with_logits_loss", 4, {1, {10}}, "bce_with_logits_loss", false},
    {"bce_with_logits_loss batch 1", 1, {1, {1}}, "bce_with_logits_loss", false},
    {"bce_with_logits_loss vector + 1", 5, {1, {17}}, "bce_with_logits_loss", false},
    {"bce_with_logits_loss of images", 3, {3, {2, 3, 5}}, "bce_with_logits_loss", false},
    {0},
};
