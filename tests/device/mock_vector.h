/* mock_vector.h - vector operations of the mock device: the host's, executed by workers. */
#ifndef TESTS_DEVICE_MOCK_VECTOR_H
#define TESTS_DEVICE_MOCK_VECTOR_H

#include <cohort/ext/optim.h>
#include <cohort/ext/vector.h>

#include "core/rng.h"

#define MOCK_CALL_POINTERS 7

/* A function to call and its arguments; which of them are used depends on `run`. */
typedef struct mock_call {
    void (*run)(const struct mock_call *call);
    void *p[MOCK_CALL_POINTERS]; /* as the device addresses them */
    size_t n, k;
    double a, b;
    int terms;
    bool more;
    co_dtype dtype;
    uint64_t first, missed;
    co_rng rng;
    co_vector_matrix shape;
    co_step_stage stage;
    co_loss_scale_rules rules;
    co_param_kind kind;
    const co_optimizer_ops *optimizer;
    const void *self; /* the optimizer's */
} mock_call;

extern const co_vector_ops mock_vector;
extern const co_device_optimizer mock_optimizers[]; /* mock_optim.c */

/* mock.c: called by a worker with pointers it may use. */
void mock_call_on(co_queue *queue, const mock_call *call);

#endif
