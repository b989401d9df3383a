/*
 * norm.h - batch norm by the loops of kernels/batchnorm.
 */
#ifndef CO_BACKENDS_ONEDNN_NORM_H
#define CO_BACKENDS_ONEDNN_NORM_H

#include "backends/onednn/onednn.h"
#include "kernels/batchnorm/batchnorm.h"

/* --- norm.c: the life of a batch norm where norm_supports says yes --- */
typedef struct norm {
    onednn_self base;
    const norm_loops *loops; /* NULL: oneDNN's own kernel runs the call */
    norm_tail tail;
    int64_t n, channels, blocks, plane;
    int64_t together, parts;            /* planes that are added up in one go, of how many parts */
    size_t part_at[2];                  /* in scratch: partial sums, forward and backward */
    onednn_operand grad_out, grad_more; /* as the input lies */
} norm;

bool norm_supports(const co_call *call);
bool norm_fuses(const co_call *call);
co_status norm_plan(co_call *call);
co_status norm_plan_backward(co_call *call);
co_status norm_forward(co_call *call, const co_run *run);
co_status norm_backward(co_call *call, const co_run *run);

#endif
