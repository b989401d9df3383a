/* test_worked.h - a case with its expected values. */
#ifndef CO_TESTS_OPS_TEST_WORKED_H
#define CO_TESTS_OPS_TEST_WORKED_H

#include <cohort/types.h>

typedef struct worked_case {
    const char *name, *net;
    int64_t batch;
    co_shape sample;
    /* Output, loss of each sample (of nets that end in a loss), gradients of the input and of each
       parameter, buffers after one step, and the output in evaluation. */
    const float *value;
    size_t n;
} worked_case;

#endif
