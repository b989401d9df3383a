/*
 * onednn.h - what the kernels of this folder share: layouts, and programs of primitives.
 *
 * A kernel plans by writing two short programs (forward, backward): steps that each execute one
 * primitive. Operands are given by the location of their address, which is known once the plan is
 * bound, so that binding and running are the same for all kernels.
 */
#ifndef CO_BACKENDS_ONEDNN_ONEDNN_H
#define CO_BACKENDS_ONEDNN_ONEDNN_H

#include <oneapi/dnnl/dnnl.h>

#include "backends/backends.h"
#include "core/isa.h"
#include "ops/ops.h"

#define ONEDNN_MAX_ARG  10
#define ONEDNN_MAX_STEP 12

/* Memory of a primitive. *base is read when the plan is bound. */
typedef struct onednn_operand {
    dnnl_memory_desc_t md;
    void *const *base;
    size_t offset;
} onednn_operand;

/* Whether a step runs when parameter gradients are overwritten, added to, or both. */
typedef enum onednn_when {
    ONEDNN_OVERWRITE = 1,
    ONEDNN_ACCUMULATE = 2,
    ONEDNN_ALWAYS = 3
} onednn_when;

/* A weight's gradient from blocks to rows: rows.c. */
typedef struct onednn_rows {
    int64_t blocks, in, taps; /* blocks of 16 output channels */
} onednn_rows;

typedef struct onednn_step {
    dnnl_primitive_t primitive; /* owned; NULL: `rows`, from base[0] to base[1] */
    onednn_rows rows;
    onednn_when when;
    int n_arg;
    dnnl_exec_arg_t arg[ONEDNN_MAX_ARG]; /* memories owned */
    void *const *base[ONEDNN_MAX_ARG];
    size_t offset[ONEDNN_MAX_ARG];
} onednn_step;

typedef struct onednn_program {
    int n;
    size_t scratch; /* bytes used of the call's */
    onednn_step step[ONEDNN_MAX_STEP];
} onednn_program;

/* First in the `self` of every kernel. */
typedef struct onednn_self {
    co_call *call;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_attr_t attr;       /* scratchpads are ours */
    bool small;                       /* synchronizing threads would take longer than computing */
    dnnl_primitive_desc_t forward_pd; /* backward primitives ask for it */
    const char *loops;                /* for profiles: code that runs besides primitives, or NULL */
    const char *back_loops;           /* of the backward pass, if not the same */
    dnnl_memory_desc_t out, grad_in;  /* descriptors of opaque layouts */
    onednn_program forward, backward;
} onednn_self;

/* An operand under oneDNN's name for it, DNNL_ARG_*. */
typedef struct onednn_arg {
    int id;
    const onednn_operand *operand;
} onednn_arg;

/* --- backend.c --- */
/* Set the number of threads that oneDNN starts for the calling thread: 1 for a small call, else
   those of `call`. Our loops use the same number. */
int onednn_use_threads(const co_call *call);
/* CO_OK, or the failure of `what` in this layer. */
co_status onednn_check(dnnl_status_t status, const co_call *call, const char *what);

/* Whether this process may use the level's instructions, and oneDNN's own limit allows them. */
bool onednn_has(co_isa level);

/* --- program.c: while planning --- */
/* First call in every plan. */
co_status onednn_begin(co_call *call);
/* Row-major; and the same in the format that the primitive prefers. */
dnnl_memory_desc_t onednn_plain(co_dtype dtype, int ndim, const int64_t *dim);
dnnl_memory_desc_t onednn_any(co_dtype dtype, int ndim, const int64_t *dim);
/* Of a tensor of the call, whatever its layout is. */
dnnl_memory_desc_t onednn_any_of(const co_tensor *tensor);
/* Whether a BF16 kernel may run the call: the CPU has instructions for it, and its parameters are
   not rounded. Always, for fp32. */
bool onednn_takes(const co_call *call, const char **why);
bool onednn_same(const dnnl_memory_desc_t *a, const dnnl_memory_desc_t *b);
/* A tensor of the call in its layout; `tensor` outlives the plan. */
onednn_operand onednn_tensor(const co_tensor *tensor);
/* The format that a primitive descriptor has chosen for DNNL_ARG_`arg`. */
dnnl_memory_desc_t onednn_chosen(const_dnnl_primitive_desc_t pd, int arg);
/* Let `tensor` have the format `md`; `own` becomes its descriptor if it is not a named layout. */
void onednn_set_format(co_tensor *tensor, dnnl_memory_desc_t *own, const dnnl_memory_desc_t *md);
/* Of the layout, which is no opaque one, for images of this type and size. */
dnnl_memory_desc_t onednn_named(const co_layout *layout, dnnl_data_type_t type, int ndim,
                                const int64_t *dim);
/* Let `tensor` have the layout of `other`. */
void onednn_like(co_tensor *tensor, const co_tensor *other);
/* Which kind of forward the call is. */
dnnl_prop_kind_t onednn_direction(const co_call *call);
/* Describe a primitive from one of oneDNN's operation descriptors. */
co_status onednn_describe(dnnl_primitive_desc_t *out, onednn_self *self, const void *op_desc);
/* Memory of this format in the call's scratch area. */
onednn_operand onednn_scratch(onednn_self *self, onednn_program *program,
                              const dnnl_memory_desc_t *md);
/* Append a step. The scratchpad that the primitive asks for is added to the arguments. */
co_status onednn_add_step(onednn_self *self, onednn_program *program, onednn_when when,
                          const_dnnl_primitive_desc_t pd, const onednn_arg *arg, int n_arg);
/* to = from, or to += from. */
co_status onednn_add_reorder(onednn_self *self, onednn_program *program, onednn_when when,
                             const onednn_operand *from, const onednn_operand *to, bool sum);
/* Unless `x` has the format `md`, append a reorder into scratch and let `x` be the result. */
co_status onednn_convert(onednn_operand *x, onednn_self *self, onednn_program *program,
                         const dnnl_memory_desc_t *md);
/* A parameter's gradient in the format `md`: `work` is where the primitive writes it, and
   onednn_put_gradient reorders it from there to the flat store. `when` is one of the two ways. */
onednn_operand onednn_gradient(onednn_self *self, onednn_when when, const onednn_operand *store,
                               const dnnl_memory_desc_t *md);
co_status onednn_put_gradient(onednn_self *self, onednn_when when, const onednn_operand *work,
                              const onednn_operand *store);

/* --- rows.c --- */
/* Whether it supports this reorder on this machine. */
bool onednn_find_rows(onednn_rows *out, const dnnl_memory_desc_t *from,
                      const dnnl_memory_desc_t *to);
/* to = from, or to += from. */
void onednn_run_rows(const onednn_rows *rows, float *to, const float *from, bool add, int threads);

/* --- program.c: the rest of a kernel's life --- */
co_status onednn_bind(co_call *call);
co_status onednn_forward(co_call *call, const co_run *run);
co_status onednn_backward(co_call *call, const co_run *run);
void onednn_fini(co_call *call);
/* The primitives of a call that is bound, for profiles. */
void onednn_describe_call(char *out, size_t size, const co_call *call, bool backward);

#define ONEDNN_HALF (1u << CO_BF16) /* co_kernel.half */
#define ONEDNN_READS                                                                               \
    (CO_READS(CO_FORMAT_CHANNEL_BLOCKS) | CO_READS(CO_FORMAT_CHANNELS_LAST) |                      \
     CO_READS(CO_FORMAT_OPAQUE))

extern const co_kernel co_onednn_conv2d, co_onednn_linear, co_onednn_maxpool, co_onednn_avgpool,
    co_onednn_relu, co_onednn_add, co_onednn_flatten, co_onednn_batchnorm, co_onednn_log_softmax,
    co_onednn_unpack;

#endif
