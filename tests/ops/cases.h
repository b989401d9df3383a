/*
 * cases.h - the table of operator cases, on which every backend is compared with ref and every
 * gradient with difference quotients.
 */
#ifndef CO_TESTS_OPS_CASES_H
#define CO_TESTS_OPS_CASES_H

#include "harness.h"

typedef struct ops_case {
    const char *name;
    int64_t batch;
    co_shape sample; /* (C, H, W) or (F) */
    const char *net; /* for harness_create */
    bool kinked; /* relu or maxpool between layers, or a steep function: no difference quotients */
} ops_case;

/* Each terminated by a case without a name. */
extern const ops_case cases_conv2d[], cases_linear[], cases_pool[], cases_batchnorm[],
    cases_pointwise[], cases_loss[], cases_net[], cases_batch[], cases_sequence[];

/* All of the above, NULL-terminated. */
extern const ops_case *const cases_all[];

/* The case's network with values filled in; fails the test on error. */
harness *cases_create(const ops_case *c);

#endif
