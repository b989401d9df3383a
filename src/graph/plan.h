/*
 * plan.h - a graph compiled for one batch size: kernels chosen, memory laid out, ready to run.
 * A step allocates nothing.
 */
#ifndef CO_GRAPH_PLAN_H
#define CO_GRAPH_PLAN_H

#include <cohort/ext/kernel.h>

#include "graph/graph.h"

typedef struct co_plan co_plan;

/* Which numbers of a step have 16 bits. Parameters and their gradients have 32 always: what a layer
   multiplies by is rounded when it is used. */
typedef struct co_plan_precision {
    co_dtype low;     /* CO_BF16 or CO_F16; CO_F32: none */
    bool everything;  /* all but the loss; else as each op likes it (co_op.precision) */
    bool norm_params; /* scales and shifts of norms are rounded, too */
} co_plan_precision;

/* Memory in which several plans lie over one another, as large as the largest. What a plan leaves
   there, the next one that runs overwrites. Zero is empty; outlives its plans. */
typedef struct co_plan_block {
    co_device *device;      /* borrowed: the store's; set by the first plan */
    void *memory, *scratch; /* owned */
    size_t bytes, scratch_bytes;
    uint64_t moves; /* counts how often either has moved to grow; the plans that were there before
                       may no longer run, only be destroyed */
} co_plan_block;

void co_plan_block_free(co_plan_block *block);

/* A kernel for a node; NULL: the first one that supports it. */
typedef struct co_plan_pick {
    const co_backend *backend;
    const co_kernel *kernel;
} co_plan_pick;

#define CO_PLAN_MAX_PICKS 16 /* kernels of all backends for an op */
#define CO_PLAN_PICK_TEXT 64

/* "cpu/winograd", or "onednn" for a kernel without a name. */
void co_plan_pick_text(char out[CO_PLAN_PICK_TEXT], const co_plan_pick *pick);

typedef struct co_plan_options {
    int64_t batch;
    bool training;                     /* with backward */
    const co_backend *const *backends; /* in order of preference, ended by NULL */
    int threads;                       /* co_call has it */
    bool direct_convolution;           /* co_call has it */
    bool over_ranks;                   /* co_call has it */
    int64_t decode;                    /* co_call has it; of a graph after co_graph_decode */
    bool recompute; /* training: keep what goes into the blocks of the graph, and compute the rest
                       of them again in the backward pass (Chen et al., arXiv:1604.06174) */
    int64_t logit_rows; /* of a network that predicts a label at each position: no more rows of
                           logits than this in memory at once, where that can be; 0: all */
    co_plan_precision precision;
    co_plan_block *block;     /* borrowed; NULL: memory of its own */
    bool no_reuse;            /* tests: every tensor has its own memory */
    const co_plan_pick *pick; /* borrowed, (n_node): kernels of `backends`; NULL: none for all */
    bool must_pick;  /* CO_E_UNSUPPORTED names the layer that its pick cannot run; else the first
                        kernel that supports it does */
    bool list_picks; /* co_plan_picks is wanted */
} co_plan_options;

/* `graph` (finished) and `store` are borrowed and outlive the plan, whose memory is of the store's
   device and whose work goes on the store's queue. CO_E_UNSUPPORTED names the node and each
   backend's reason when no kernel takes it, or a backend that is not of that device. */
co_status co_plan_create(co_plan **out, const co_graph *graph, co_store *store,
                         const co_plan_options *options);
void co_plan_destroy(co_plan *plan);

int64_t co_plan_batch(const co_plan *plan);
/* Put `from` into an input of the graph: all `bytes` of it, plain, with the plan's batch in front.
   It is the queue's until the results have been asked for, or the queue has been waited for. NULL:
   zeros. */
co_status co_plan_feed(co_plan *plan, const char *name, const void *from, size_t bytes);
/* The first `bytes` of an input that has `all`; the rest are zeros. */
co_status co_plan_feed_padded(co_plan *plan, const char *name, const void *from, size_t bytes,
                              size_t all);
/* The indices of the first `count` samples, as co_plan_feed, in a plan for training or on a device;
   and where they are, (N), for co_run.sample. */
co_status co_plan_feed_samples(co_plan *plan, const uint32_t *from, uint64_t count);
const uint32_t *co_plan_samples(const co_plan *plan);
/* After forward: output (N, outputs) plain and loss of each sample (N), for the host to read until
   the next forward. Waits for the queue. */
co_status co_plan_results(const float **output, const float **loss, co_plan *plan);

/* The same for who waits later: queues copies of both to `to`, one after the other, which the
   device may copy to at its leisure and which has this many bytes. */
size_t co_plan_result_bytes(const co_plan *plan);
co_status co_plan_queue_results(const co_plan *plan, void *to);

/* With options.logit_rows the output may be NULL. Then this is, of each position, how many logits
   are above that of its label (-1 for a label of -1); else NULL. */
const int32_t *co_plan_places(const co_plan *plan);

/* The same where they lie in the plan, for who knows that it is on the host, or only passes them on
   to the device. No input of that name: NULL. */
void *co_plan_input(co_plan *plan, const char *name);
const float *co_plan_output(const co_plan *plan);
const float *co_plan_loss(const co_plan *plan);

co_status co_plan_forward(co_plan *plan, const co_run *run);
/* Say before a forward that a backward follows it, with the same values of the step and this
   co_run.accumulate: the gradient of what is done in parts (options.logit_rows) is then computed in
   the forward pass, and its logits are not computed twice. */
void co_plan_announce(co_plan *plan, bool accumulate);

/* Called when the gradients [begin, end) of the store are final, in order and without a hole:
   the first call has begin 0, the last one end == store->n. */
typedef co_status (*co_ready_fn)(void *arg, size_t begin, size_t end);
/* `ready` may be NULL. */
co_status co_plan_backward(co_plan *plan, const co_run *run, co_ready_fn ready, void *arg);

/* ---- for measurements: a plan is a sequence of steps, forward ones first ---- */

/* Notified before and after each step that forward and backward run. */
typedef struct co_plan_observer {
    void (*begin)(void *arg, const co_plan *plan, int step);
    void (*end)(void *arg, const co_plan *plan, int step);
    void *arg;
} co_plan_observer;

/* `observer` is borrowed; NULL: nobody is notified. */
void co_plan_observe(co_plan *plan, const co_plan_observer *observer);

/* What a step does. Steps that only change a layout have the op "unpack", and the name of the node
   whose result they read. */
typedef struct co_plan_step {
    const char *name;    /* of the node; borrowed */
    const co_call *call; /* borrowed */
    const co_call *seen; /* by the kernel: `call`, or the same in floats; borrowed */
    const co_backend *backend;
    bool backward; /* part of the backward pass */
    bool gradient; /* runs the kernel's backward: the rest prepares or adds up, or is done again */
    bool again;    /* a forward step that runs a second time (co_plan_options.recompute) */
    int times;     /* how often it runs in a pass: once, or once for each part (logit_rows) */
} co_plan_step;

int co_plan_step_count(const co_plan *plan);
void co_plan_step_at(co_plan_step *out, const co_plan *plan, int step);
/* This step alone, on what the last forward and backward left: for measuring, in a plan without
   reuse of memory. */
co_status co_plan_run_step(co_plan *plan, int step, const co_run *run);

/* Bytes of activations with and without reuse; for reports and tests. */
void co_plan_memory(const co_plan *plan, size_t *used, size_t *unshared);
/* Name of the backend that runs a node of the graph. *why (may be NULL): what the kernels before it
   said against it, "cpu winograd: ...; onednn: ...", or "" when it was the first. Borrowed. */
const char *co_plan_backend(const co_plan *plan, int node, const char **why);
/* What runs a node of the graph, in the words of its backend: a kernel's name, or the primitives
   that a library has chosen. "": the backend's name says it all. */
void co_plan_describe(char *out, size_t size, const co_plan *plan, int node);
/* The kernel's name among those of its backend for the op, or NULL. */
const char *co_plan_kernel(const co_plan *plan, int node);
/* The kernel that runs a node of the graph. */
co_plan_pick co_plan_picked(const co_plan *plan, int node);
/* With list_picks: the kernels that can run a node where it is in this plan, in their order;
   returns how many: 0 for a node that is done in the call of another. Borrowed. */
int co_plan_picks(const co_plan_pick **out, const co_plan *plan, int node);
/* The call that does a node. Borrowed. */
const co_call *co_plan_call(const co_plan *plan, int node);
/* Whether each node can be run by its pick: compiles the forward pass, and takes no memory for it.
 */
co_status co_plan_check_picks(const co_graph *graph, co_store *store,
                              const co_plan_options *options);

#endif
