/*
 * onednn.h - what the kernels of this folder share: layouts, and programs of primitives.
 *
 * A kernel plans by writing two short programs (forward, backward): steps that each execute one
 * primitive. Operands are given by the location of their address, which is known once the plan is
 * bound, so that binding and running are the same for all kernels.
 */
#ifndef CO_BACKENDS_ONEDNN_ONEDNN_H
#define CO_BACKENDS_ONEDNN_ONEDNN_H

#include "backends/backends.h"
#include "backends/onednn/dnnl_api.h"
#include "core/isa.h"
#include "ops/ops.h"

#define ONEDNN_MAX_ARG  10
#define ONEDNN_MAX_STEP 12

/* Memory of a primitive. *base is read when the plan is bound. */
typedef struct onednn_operand {
    const_dnnl_memory_desc_t md; /* lives as long as the call */
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
    dnnl_primitive_attr_t attr; /* scratchpads are ours */
    bool small;         /* one thread: more would take longer to synchronize, or change bits */
    onednn_descs descs; /* all that the call's plans have described */
    dnnl_primitive_desc_t forward_pd; /* backward primitives ask for it */
    const char *loops;                /* for profiles: code that runs besides primitives, or NULL */
    const char *back_loops;           /* of the backward pass, if not the same */
    onednn_program forward, backward;
} onednn_self;

/* An operand under oneDNN's name for it, DNNL_ARG_*. */
typedef struct onednn_arg {
    int id;
    const onednn_operand *operand;
} onednn_arg;

/* --- backend.c --- */
/* Set the number of threads that oneDNN starts for the calling thread: 1 for a small call, else
   those of `call`. Our loops use the same number. Called before primitives are created, too, which
   are made for a number of threads. */
int onednn_use_threads(const co_call *call);
/* CO_OK, or the failure of `what` in this layer. */
co_status onednn_check(dnnl_status_t status, const co_call *call, const char *what);

/* Whether this process may use the level's instructions, and oneDNN's own limit allows them. */
bool onednn_has(co_isa level);

/* --- program.c: while planning --- */
/* First call in every plan. */
co_status onednn_begin(co_call *call);
/* Of a tensor: row-major; and in the format that the primitive prefers. */
const_dnnl_memory_desc_t onednn_plain(onednn_self *self, co_dtype dtype, int ndim,
                                      const int64_t *dim);
const_dnnl_memory_desc_t onednn_any(onednn_self *self, co_dtype dtype, int ndim,
                                    const int64_t *dim);
/* Of a tensor of the call, whatever its layout is. */
const_dnnl_memory_desc_t onednn_any_of(onednn_self *self, const co_tensor *tensor);
/* Whether a BF16 kernel may run the call: the CPU has instructions for it, and its parameters are
   not rounded. Always, for fp32. */
bool onednn_takes(const co_call *call, const char **why);
/* The same for kernels that multiply: where products of BF16 are slower than those of floats, the
   kernel runs in fp32. */
bool onednn_multiplies(const co_call *call, const char **why);
bool onednn_same(const_dnnl_memory_desc_t a, const_dnnl_memory_desc_t b);
/* A tensor of the call in its layout; `tensor` outlives the plan. */
onednn_operand onednn_tensor(onednn_self *self, const co_tensor *tensor);
/* The format that a primitive descriptor has chosen for DNNL_ARG_`arg`. */
const_dnnl_memory_desc_t onednn_chosen(const_dnnl_primitive_desc_t pd, int arg);
/* Let `tensor` have the format `md`. */
void onednn_set_format(onednn_self *self, co_tensor *tensor, const_dnnl_memory_desc_t md);
/* Let `tensor` have the layout of `other`. */
void onednn_like(co_tensor *tensor, const co_tensor *other);
/* Which kind of forward the call is. */
dnnl_prop_kind_t onednn_direction(const co_call *call);
/* What came of describing a primitive: `pd`, which is destroyed with the call, if `status` says so.
 */
co_status onednn_described(onednn_self *self, dnnl_status_t status,
                           const dnnl_primitive_desc_t *pd);
/* Memory of this format in the call's scratch area. */
onednn_operand onednn_scratch(onednn_self *self, onednn_program *program,
                              const_dnnl_memory_desc_t md);
/* Append a step. The scratchpad that the primitive asks for is added to the arguments. */
co_status onednn_add_step(onednn_self *self, onednn_program *program, onednn_when when,
                          const_dnnl_primitive_desc_t pd, const onednn_arg *arg, int n_arg);
/* to = from, or to += from. */
co_status onednn_add_reorder(onednn_self *self, onednn_program *program, onednn_when when,
                             const onednn_operand *from, const onednn_operand *to, bool sum);
/* Unless `x` has the format `md`, append a reorder into scratch and let `x` be the result. */
co_status onednn_convert(onednn_operand *x, onednn_self *self, onednn_program *program,
                         const_dnnl_memory_desc_t md);
/* A parameter's gradient in the format `md`: `work` is where the primitive writes it, and
   onednn_put_gradient reorders it from there to the flat store. `when` is one of the two ways. */
onednn_operand onednn_gradient(onednn_self *self, onednn_when when, const onednn_operand *store,
                               const_dnnl_memory_desc_t md);
co_status onednn_put_gradient(onednn_self *self, onednn_when when, const onednn_operand *work,
                              const onednn_operand *store);

/* --- saves_output.c: plans of ops with one input, whose backward reads the output --- */
/* Describe the primitive, forward in self->forward_pd, backward in *pd. */
typedef dnnl_status_t (*onednn_forward_desc_fn)(co_call *call, const_dnnl_memory_desc_t x,
                                                const_dnnl_memory_desc_t y);
typedef dnnl_status_t (*onednn_backward_desc_fn)(dnnl_primitive_desc_t *pd, onednn_self *self,
                                                 const_dnnl_memory_desc_t dx,
                                                 const_dnnl_memory_desc_t dy,
                                                 const_dnnl_memory_desc_t y);
co_status onednn_plan_saves_output(co_call *call, onednn_forward_desc_fn describe);
co_status onednn_plan_backward_saves_output(co_call *call, onednn_backward_desc_fn describe);

/* --- rows.c --- */
/* Whether it supports this reorder on this machine. */
bool onednn_find_rows(onednn_rows *out, onednn_self *self, const_dnnl_memory_desc_t from,
                      const_dnnl_memory_desc_t to);
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
