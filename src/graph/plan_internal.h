/*
 * plan_internal.h - a plan while it is made: calls in order, tensors with their life times.
 *
 * compile.c makes the forward calls, autograd.c the backward ones, memory.c places tensors,
 * plan.c runs the result.
 */
#ifndef CO_GRAPH_PLAN_INTERNAL_H
#define CO_GRAPH_PLAN_INTERNAL_H

#include "graph/plan.h"

/* A piece of memory of the plan, alive from the step that writes it to the last one that reads. */
typedef struct plan_tensor {
    co_tensor tensor; /* first: a co_tensor * in a co_call is a plan_tensor * */
    int first, last;  /* steps */
    bool pinned;      /* alive all the time: the caller reads or writes it between calls */
    size_t offset;
    struct plan_tensor *alias; /* lies where this one does; NULL: on its own */
    struct plan_tensor *next;
} plan_tensor;

typedef struct plan_call {
    co_call call;
    const co_backend *backend;
    const char *refusals;   /* of the backends before it; "": none */
    bool live;              /* the kernel's plan has been entered: fini is due */
    plan_tensor *workspace; /* NULL: none */
    struct plan_call *next;
} plan_call;

typedef struct plan_step {
    plan_call *pc;
    bool backward;
    size_t ready_end; /* gradients below this are final after the step */
} plan_step;

struct co_plan {
    const co_graph *graph; /* borrowed */
    co_store *store;       /* borrowed */
    co_plan_options options;
    co_arena *arena;
    plan_tensor *tensors;  /* list, newest first */
    plan_call *calls;      /* list, newest first */
    plan_call **node_call; /* (n_node) */
    plan_tensor **value;   /* (n_var) forward tensors */
    plan_tensor **plain;   /* (n_var) the same in the plain layout; NULL: not needed so far */
    plan_step *step;
    int n_step, cap_step;
    int n_forward; /* steps below are forward */
    void *memory;
    void *scratch;
    size_t used, unshared;
    const co_plan_observer *observer; /* borrowed; NULL: none */
};

/* --- compile.c --- */
co_status plan_compile_forward(co_plan *plan);
/* A new tensor of this shape, with the plan's batch as dimension 0. */
plan_tensor *plan_new_tensor(co_plan *plan, const co_shape *shape, co_dtype dtype);
/* Choose a kernel for a call whose op, attr, name and in[] are set; unpack inputs that it cannot
   read; make out[]; append its forward step. `out` gets the call. */
co_status plan_add_call(plan_call **out, co_plan *plan, const co_call *init);
co_status plan_add_step(co_plan *plan, plan_call *pc, bool backward, size_t ready_end);
/* *tensor in a layout that `backend` reads: itself, or a plain copy made by a new step. */
co_status plan_make_readable(plan_tensor **tensor, co_plan *plan, const co_backend *backend);

/* --- autograd.c --- */
co_status plan_compile_backward(co_plan *plan);

/* --- memory.c --- */
co_status plan_place_memory(co_plan *plan);

#endif
