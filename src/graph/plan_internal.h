/*
 * plan_internal.h - a plan while it is made: calls in order, tensors with their life times.
 *
 * compile.c makes the forward calls, autograd.c the backward ones, memory.c places tensors,
 * plan.c runs the result.
 */
#ifndef CO_GRAPH_PLAN_INTERNAL_H
#define CO_GRAPH_PLAN_INTERNAL_H

#include "graph/plan.h"

/* The steps from `first` to `last`; none: first is -1. */
typedef struct plan_life {
    int first, last;
} plan_life;

/* A piece of memory of the plan, alive from the step that writes it to the last one that reads. */
typedef struct plan_tensor {
    co_tensor tensor; /* first: a co_tensor * in a co_call is a plan_tensor * */
    plan_life life;
    int block;       /* of the node that it was made for (co_node.block); 0: none */
    bool recomputed; /* it dies in the forward pass, and is written again in the backward pass */
    plan_life again; /* there; at the same place */
    bool pinned;     /* alive all the time: the caller reads or writes it between calls */
    size_t offset;
    struct plan_tensor *alias; /* is where this one is; NULL: on its own */
    struct plan_tensor *next;
} plan_tensor;

typedef struct plan_upcast plan_upcast; /* upcast.c */

typedef struct plan_call {
    co_call call;
    const co_backend *backend;
    const co_kernel *kernel; /* the backend's; call.kernel is that, or plan_upcast_kernel */
    const char *refusals;    /* of the kernels before it; "": none */
    co_plan_pick *can;       /* (n_can) with options.list_picks; else NULL */
    int n_can;
    bool live;              /* the kernel's plan has been entered: fini is due */
    plan_tensor *workspace; /* NULL: none */
    plan_tensor *buffers;   /* recomputed: buffers as they were before it ran again; else NULL */
    plan_upcast *upcast;    /* upcast: an fp32 kernel on 16-bit tensors; else NULL */
    struct plan_call *next;
} plan_call;

typedef struct plan_step {
    plan_call *pc;
    bool backward;
    size_t ready_end; /* gradients below this are final after the step */
    bool adds;        /* backward: a later node has left its part of the parameter's gradient */
    int block;        /* of the node that it was made for (co_node.block) */
    bool again;       /* the same forward step as one before */
} plan_step;

/* The last layer and its loss, done for some positions at a time (parts.c). */
typedef struct plan_parts {
    int64_t all, length, rows; /* positions of the batch, of a sample, of a part */
    int first, backward, end;  /* steps of a part: forward, then backward */
    plan_tensor *x, *label, *loss, *row_loss, *place, *dx; /* of all; dx NULL: not needed */
    plan_tensor *part_x, *part_label, *part_logits, *part_loss, *part_dx;
    bool announced, adds; /* what the caller has said of the next backward pass */
    bool done;            /* the backward steps have run in the forward pass */
} plan_parts;

struct co_plan {
    const co_graph *graph; /* borrowed */
    co_store *store;       /* borrowed */
    co_plan_options options;
    co_arena *arena;
    plan_tensor *tensors;  /* list, newest first */
    plan_call *calls;      /* list, newest first */
    plan_call **node_call; /* (n_node) nodes done in one call share it */
    plan_tensor **value;   /* (n_var) forward tensors */
    plan_tensor **plain;   /* (n_var) the same in the plain layout; NULL: not needed so far */
    plan_tensor **cast;    /* (n_var) the same of another type; NULL: likewise */
    plan_tensor *samples;  /* pinned; in training, else NULL */
    const bool *wanted;    /* (n_var) in training: tensors that depend on a parameter */
    plan_parts *parts;     /* NULL: all logits are in memory */
    plan_step *step;
    int n_step, cap_step;
    int node_block;       /* of the node that is compiled */
    int n_forward;        /* steps below are forward */
    co_plan_block own;    /* empty where the options have one */
    co_plan_block *block; /* where it lies */
    void *results; /* pinned, where the host may not touch the plan's memory: output, then loss */
    size_t thread_scratch, thread_scratch_step; /* in the scratch of `block` */
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
/* *tensor in a layout that the kernel reads, NULL: in the plain one: itself, or a plain copy made
   by a new step. */
co_status plan_make_readable(plan_tensor **tensor, co_plan *plan, const co_kernel *kernel,
                             const co_backend *backend);

/* A call whose kernel is known; in[] and out[] are set. Appends its forward step. */
co_status plan_add_kernel(plan_call **out, co_plan *plan, const co_call *init,
                          const co_kernel *kernel, const co_backend *backend);

/* The call of a node, but for its tensors, whose type is *dtype. */
co_call plan_describe_node(co_dtype *dtype, const co_plan *plan, int index);

/* --- parts.c --- */
/* Whether the plan's last two nodes are done in parts, as its options ask for. */
bool plan_has_parts(const co_plan *plan);
/* Append the steps of a part. */
co_status plan_compile_parts(co_plan *plan);
/* After lives have been found. */
void plan_extend_parts(const co_plan *plan);
/* All parts, with or without their backward steps. */
co_status plan_run_parts(co_plan *plan, const co_run *run, bool backward);

/* --- choose.c --- */
/* Set the kernel of a call whose op, inputs and outputs are set. */
co_status plan_choose_kernel(plan_call *pc, co_plan *plan);
bool plan_kernel_supports(const co_kernel *kernel, const co_call *call, const char **why);
/* Whether a node that could have tensors of 16 bits, as in `narrow`, is faster as in `wide`. */
bool plan_prefers_wide(const co_plan *plan, const co_call *narrow, const co_call *wide);
/* Whether the first kernel that takes the node in fp32 computes in half precision, too. */
bool plan_takes_half(const co_plan *plan, const co_call *narrow, const co_call *wide);
/* Whether that kernel rounds its result to `low` itself. */
bool plan_rounds(const co_plan *plan, const co_call *wide, co_dtype low);
/* The kernels that can run the call, in their order; returns how many, `most` at most. */
int plan_list_kernels(co_plan_pick *out, int most, const co_plan *plan, const plan_call *pc);

/* --- cast.c --- */
/* The type in which a node of the graph has its tensors; its inputs' are known. */
co_dtype plan_node_dtype(const co_plan *plan, const co_node *node);
/* Which parameters a node that computes in `dtype` rounds to it: bit i for parameter i. */
unsigned plan_rounded_params(const co_plan *plan, const co_node *node, co_dtype dtype);
/* *in: tensor `var` of the graph in this type, if it is of floats at all. */
co_status plan_cast_input(co_tensor **in, co_plan *plan, int var, co_dtype dtype);
/* *tensor in this type: itself, or what a new step makes of it. */
co_status plan_cast(plan_tensor **tensor, co_plan *plan, co_dtype dtype);
/* Who changes types in a plan: the host, or a backend of the plan's device. */
typedef co_status (*plan_convert_fn)(co_queue *queue, void *to, co_dtype to_type, const void *from,
                                     co_dtype from_type, size_t n);
/* NULL: nobody on that device. */
plan_convert_fn plan_find_convert(const co_store *store, const co_plan_options *options);
/* Elements in memory, whatever the layout is; one of the types has 16 bits. */
co_status plan_convert(plan_convert_fn convert, co_queue *queue, co_tensor *to,
                       const co_tensor *from);

/* --- upcast.c --- */
bool plan_is_half(const co_call *call);
/* Whether the kernel computes with tensors of the call's types. */
bool plan_kernel_takes(const co_kernel *kernel, const co_call *call);
/* Let pc->upcast have the same call with tensors of floats, for kernels to look at. */
co_status plan_upcast_prepare(plan_call *pc, co_plan *plan);
co_call *plan_upcast_call(plan_upcast *upcast);
/* The call's kernel becomes plan_upcast_kernel, which runs `kernel`. */
co_status plan_upcast_use(plan_call *pc, co_plan *plan, const co_kernel *kernel);
extern const co_kernel plan_upcast_kernel;

/* --- fuse.c --- */
/* Add to a call what its kernel may take over, `fused` and its inputs; of a node, all else set. */
void plan_offer_fusion(co_call *call, const co_plan *plan);
/* Leave in it what the kernel takes. */
void plan_limit_fusion(const co_plan *plan, plan_call *pc, const co_kernel *kernel);
/* Let the call be that of the nodes it does, and its output their last one's. */
void plan_settle_fusion(co_plan *plan, plan_call *pc);
/* Whether a node is the only one that reads a tensor of the graph. */
bool plan_reads_alone(const co_graph *graph, int node, int var);
/* How many inputs the fused ops bring. */
int plan_count_added(const co_call *call);
/* The var that is input i of a node's call. */
int plan_find_input(const co_plan *plan, const co_call *call, int i);

/* --- autograd.c --- */
/* (n_var) which tensors depend on a parameter, so that their gradients are needed; NULL: no memory.
 */
const bool *plan_find_wanted(const co_plan *plan);
co_status plan_compile_backward(co_plan *plan);

/* --- recompute.c --- */
/* With options.recompute: find what is recomputed, after the forward pass. */
void plan_find_recomputed(co_plan *plan);
/* Append the forward steps of a block that its backward pass needs again. */
co_status plan_recompute_block(co_plan *plan, int block);
/* Run a step's forward again: buffers, such as running statistics, stay as they are. */
co_status plan_run_again(const co_plan *plan, const plan_step *step, const co_run *run);

/* --- memory.c --- */
co_status plan_place_memory(co_plan *plan);

#endif
