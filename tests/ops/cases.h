/*
 * cases.h - the one table of operator cases: every backend against ref, and every gradient against
 * difference quotients, run over it.
 */
#ifndef CO_TESTS_OPS_CASES_H
#define CO_TESTS_OPS_CASES_H

#include "harness.h"

typedef struct ops_case {
    const char *name;
    int64_t batch;
    co_shape sample; /* (C, H, W) or (F) */
    const char *net; /* for harness_create */
    bool kinked;     /* relu or maxpool in the middle: no difference quotient there */
} ops_case;

/* Each ended by a case without a name. */
extern const ops_case cases_conv2d[], cases_linear[], cases_pool[], cases_batchnorm[],
    cases_pointwise[], cases_loss[], cases_net[], cases_batch[];

/* All of the above, ended by NULL. */
extern const ops_case *const cases_all[];

/* The case and, filled, its network; fails the test when it cannot be made. */
harness *cases_create(const ops_case *c);

#endif
