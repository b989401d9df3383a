/*
 * plan.h - a graph compiled for one batch size: kernels chosen, memory laid out, ready to run.
 * A step allocates nothing.
 */
#ifndef CO_GRAPH_PLAN_H
#define CO_GRAPH_PLAN_H

#include <cohort/ext/kernel.h>

#include "graph/graph.h"

typedef struct co_plan co_plan;

typedef struct co_plan_options {
    int64_t batch;
    bool training;                     /* with backward */
    const co_backend *const *backends; /* in order of preference, ended by NULL */
    bool direct_convolution;           /* co_call has it */
    bool over_ranks;                   /* co_call has it */
    bool no_reuse;                     /* tests: every tensor has its own memory */
} co_plan_options;

/* `graph` (finished) and `store` are borrowed and outlive the plan. CO_E_UNSUPPORTED names the
   node and each backend's reason when no kernel takes it. */
co_status co_plan_create(co_plan **out, const co_graph *graph, co_store *store,
                         const co_plan_options *options);
void co_plan_destroy(co_plan *plan);

int64_t co_plan_batch(const co_plan *plan);
/* Where to put the input, (N, C, H, W) plain, and the labels, (N). */
float *co_plan_input(co_plan *plan);
int32_t *co_plan_label(co_plan *plan);
/* After forward: output (N, classes) plain and loss of each sample (N). */
const float *co_plan_output(const co_plan *plan);
const float *co_plan_loss(const co_plan *plan);

co_status co_plan_forward(co_plan *plan, const co_run *run);

/* Called when the gradients [begin, end) of the store are final, in order and without a hole:
   the first call has begin 0, the last one end == store->n. */
typedef co_status (*co_ready_fn)(void *arg, size_t begin, size_t end);
/* `ready` may be NULL. */
co_status co_plan_backward(co_plan *plan, const co_run *run, co_ready_fn ready, void *arg);

/* Bytes of activations with and without reuse; for reports and tests. */
void co_plan_memory(const co_plan *plan, size_t *used, size_t *unshared);
/* Name of the backend that runs a node of the graph. *why (may be NULL): what those before it said
   against it, "onednn: ...", or "" when it was the first. Borrowed. */
const char *co_plan_backend(const co_plan *plan, int node, const char **why);

#endif
