/*
 * ext/kernel.h - what the author of a compute backend fills in.
 *
 * A backend is a list of kernels, of which several may be for one op. For each node of a plan the
 * first kernel that supports it wins, over the backends in their order and the kernels of each in
 * theirs. The life of a kernel in a plan:
 *
 *   supports -> plan -> plan_backward (training only) -> bind -> {forward, backward}... -> fini
 *
 * plan and plan_backward choose layouts and ask for memory; from bind on every pointer is fixed.
 */
#ifndef COHORT_EXT_KERNEL_H
#define COHORT_EXT_KERNEL_H

#include <cohort/ext/device.h>
#include <cohort/ext/op.h>
#include <cohort/ext/step.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct co_kernel co_kernel;
typedef struct co_backend co_backend;

/** The order of the elements of a tensor (N, C, ...) in memory. */
typedef enum co_format {
    CO_FORMAT_PLAIN,          /* row-major, dense */
    CO_FORMAT_CHANNEL_BLOCKS, /* (N, C / block, ..., block); padding channels are 0 */
    CO_FORMAT_CHANNELS_LAST,  /* (N, ..., C) */
    CO_FORMAT_SAMPLE_LANES,   /* (N / block, ..., block); padding is finite in values, and 0 in
                                 gradients */
    CO_FORMAT_OPAQUE          /* described by `descriptor`, which only its owner understands */
} co_format;

/** A value: two tensors have the same arrangement if their shapes and layouts are equal. All zero
 * is the plain layout. */
typedef struct co_layout {
    co_format format;
    int block;               /* size of the blocks of channels or samples; else 0 */
    const co_backend *owner; /* owner of an opaque layout; else NULL */
    const void *descriptor;  /* of an opaque layout; lives as long as the plan */
} co_layout;

static inline bool co_layout_same(const co_layout *a, const co_layout *b)
{
    return a->format == b->format && a->block == b->block && a->owner == b->owner &&
           a->descriptor == b->descriptor;
}

/** A tensor as a kernel sees it. */
typedef struct co_tensor {
    co_shape shape;
    co_dtype dtype;
    co_layout layout;
    co_extent read; /* see co_tensor_part_read */
    size_t bytes;   /* size of `data`; a layout may pad. 0 while planning: the plain size */
    void *data;     /* NULL before bind, and for a gradient nobody needs */
} co_tensor;

/** The part of an image (N, C, H, W) that any result depends on. The kernel that makes the tensor
 * may leave zeros in the rest, where its gradient is 0. */
static inline co_extent co_tensor_part_read(const co_tensor *t)
{
    const co_extent whole = {t->shape.dim[2], t->shape.dim[3]};

    return t->read.rows ? t->read : whole;
}

#define CO_CALL_MAX_FUSED 2

/** One node in one plan, with the following ones that its kernel takes over. Indices are those of
 *  the op: in[0] is its first input. */
typedef struct co_call {
    const co_op *op;
    const char *name; /* the node's, for messages */
    const void *attr;
    /** Ops of following nodes, pointwise or pooling, that this call performs; ended by NULL. out[0]
     *  is the result of the last. A sum among them takes its addend from the next in[] after the
     *  op's own (n_in counts it), and has its gradient in grad_in there. */
    const co_op *fused[CO_CALL_MAX_FUSED + 1];
    const void *fused_attr[CO_CALL_MAX_FUSED];
    co_shape unfused_shape; /* of the op's own result: that of out[0], unless a fused op pools */
    uint32_t node;          /* index in the graph: part of the random stream */
    int threads;            /* cores that the call may use; 0: OpenMP's default */
    bool training;
    bool over_ranks;         /* training: batch statistics over all ranks, by co_run.reduce */
    unsigned round_params;   /* bit i: round parameter i to the half precision of the tensors */
    bool direct_convolution; /* by the definition: no algorithm with other rounding */
    int64_t decode; /* 0; or tensors (N, T, ...) have T = 1, their N samples are positions of one
                       sequence, one after the other, and this many positions are kept */
    int n_in, n_out, n_param;
    co_tensor *in[CO_OP_MAX_IN];        /* read in forward; in backward only if the op saves them */
    co_tensor *out[CO_OP_MAX_OUT];      /* plan sets layout and bytes */
    co_tensor *grad_in[CO_OP_MAX_IN];   /* NULL: not needed. plan_backward sets layout and bytes */
    co_tensor *grad_out[CO_OP_MAX_OUT]; /* a loss has none: its gradient is co_run_grad_scale */
    co_tensor *grad_out_extra; /* NULL, or a second part of grad_out[0]; only with adds_gradients */
    bool adds_gradients;       /* set by plan: backward adds grad_out_extra to grad_out[0] itself */
    /** In backward: the call that made in[0], of a kernel that `chains`, with an op fused;
     * grad_in[0] becomes the gradient of that op's input, from what that call has in its workspace.
     * There `grad_chained` is then true: grad_out[0] is that gradient. plan_backward may set NULL.
     */
    struct co_call *chained;
    bool grad_chained;
    co_tensor param[CO_OP_MAX_PARAM];      /* plain, in the flat store; buffers too */
    co_tensor grad_param[CO_OP_MAX_PARAM]; /* plain, in the flat store; data NULL for buffers */
    size_t workspace_bytes;                /* set by plan: kept from forward to backward */
    size_t scratch_bytes;                  /* set by plan: valid within one forward or backward */
    size_t thread_scratch_bytes;           /* the same for each of the threads of a loop */
    void *workspace;
    void *scratch;
    /** Thread t of a loop, of `threads` at most, has thread_scratch + t * thread_scratch_step. It
     *  is the same in all calls of a plan, and stays in the caches of that thread's core. */
    void *thread_scratch;
    size_t thread_scratch_step;
    /** Queue of the plan's device, from the beginning: forward and backward put their work on it,
     * and CO_OK means accepted; their operands belong to the work until the queue has passed. NULL:
     * the host, where all work is done on return. */
    co_queue *queue;
    const co_kernel *kernel;
    void *self; /* the kernel's self_size bytes, zeroed before plan */
} co_call;

/** Where a pass that decodes is in its sequence. */
typedef struct co_decoding {
    int64_t position;   /* of its first sample */
    float *const *kept; /* (nodes) memory that lives from pass to pass: (co_call.decode,
                           co_op.keeps); NULL: the op keeps nothing */
} co_decoding;

/** One pass through a plan. All of it is the same in every step: what is not, the two pointers lead
 *  to, in memory of the plan's device, and is read when the work is done. */
typedef struct co_run {
    uint64_t seed;
    const co_step_values *values;
    const uint32_t *sample; /* (N) index of each sample in the data set, for random streams */
    bool accumulate;        /* add to grad_param instead of overwriting it */
    /** With over_ranks: replaces `v` (n), in memory of the plan's device, by its sum over all
     * ranks, on the plan's queue. All ranks call it, in the same order and with the same n. */
    co_status (*reduce)(void *arg, double *v, size_t n);
    void *reduce_arg;
    const co_decoding *decoding; /* of a call with `decode`; else NULL */
    bool phantom; /* over_ranks: the samples do not count; a rank without samples takes part in the
                     sums. Its sums and gradients are 0, and it updates running statistics */
} co_run;

/** d objective / d loss of one sample, for a kernel of a loss where it may read memory of the
 * device. */
static inline float co_run_grad_scale(const co_run *run)
{
    return run->phantom ? 0 : run->values->grad_scale;
}

/** co_kernel.reads */
#define CO_READS(format) (1u << (format))

struct co_kernel {
    const char *op;
    /** Its name among the kernels of its backend for the op: "winograd". NULL: the only one. */
    const char *name;
    /** Formats of in[] and grad_out[] that it reads besides the plain one, CO_READS of each; opaque
     *  layouts only of its own backend. Tensors in others are unpacked before. */
    unsigned reads;
    size_t self_size;
    /** Whether this kernel can run the node; *why is static. NULL: always. */
    bool (*supports)(const co_call *call, const char **why);
    /** Its backward computes gradients through an op that another call of this kernel has fused,
     *  where it is the only one that reads the result (co_call.chained). */
    bool chains;
    /** Whether it performs call->fused as well; the layouts of all in[] are known, and may be of
     * any backend. Called again with one op fewer until none is left. NULL: never. */
    bool (*fuses)(const co_call *call);
    /** May set out[i]->layout and ->bytes, workspace_bytes and (thread_)scratch_bytes. The inputs'
     *  layouts are known, and it reads them. NULL: plain everywhere, no memory. */
    co_status (*plan)(co_call *call);
    /** The same for grad_in, with grad_out's layouts known. May raise both scratch_bytes. NULL:
     * plain.
     */
    co_status (*plan_backward)(co_call *call);
    /** All pointers are final: create primitives. NULL: nothing to do. */
    co_status (*bind)(co_call *call);
    co_status (*forward)(co_call *call, const co_run *run);
    /** Write grad_in (overwrite) and grad_param (overwrite, or add if run->accumulate). */
    co_status (*backward)(co_call *call, const co_run *run);
    void (*fini)(co_call *call);
    /** out[0] may use the memory of in[0] / grad_in[0] that of grad_out[0] (same bytes); the same
     *  holds for the addend of a fused sum. */
    bool in_place;
    /** Runs calls with `decode`, too. Of an op of CO_ALONG_EARLIER no other kernel does. */
    bool decodes;
    /** Half-precision types that it computes in: bit CO_BF16, bit CO_F16. For others the plan
     *  converts its inputs to fp32 and rounds its results. */
    unsigned half;
    /** Half-precision types that it rounds out[0] to, and reads grad_out[0] in, where in[0] is of
     *  floats and stays so: bit CO_BF16, bit CO_F16. A plan makes use of it where a single op reads
     *  the result, and reads it in that type: with the same numbers, without a pass to convert. */
    unsigned rounds;
    /** Whether it runs a call on half-precision tensors faster in fp32 than kernels that compute in
     *  half precision: then the plan may leave the tensors in fp32. NULL: never. */
    bool (*prefers_fp32)(const co_call *call);
    /** Whether, for half-precision tensors that it would take in fp32, a later kernel that computes
     *  in half precision is preferred. */
    bool yields_half;
};

struct co_backend {
    const char *name;
    const char *summary;
    const co_kernel *const *kernels; /* ended by NULL */
    /** Name of the device in whose memory its kernels work (co_device_ops.name). NULL: the host's.
     */
    const char *device;
    /** in[0] in any of the formats of `reads` -> out[0] plain. NULL: none. */
    const co_kernel *unpack;
    /** Half-precision types that its kernels compute in on this CPU: bit CO_BF16, bit CO_F16. NULL:
     *  none. */
    unsigned (*half)(void);
    /** Converts `n` elements of `from`, fp32 or half precision, to the other kind at `to`: rounded
     *  to nearest, ties to even, or exact. In memory of `device`, on its queue. NULL: on the host
     *  its own loops; on a device plans with half-precision tensors are refused. */
    co_status (*convert)(co_queue *queue, void *to, co_dtype to_type, const void *from,
                         co_dtype from_type, size_t n);
    /** A description of the library and instructions in use, for `cohort doctor`: "oneDNN 2.6.3, up
     *  to AVX-512". NULL: none. */
    void (*describe)(char *out, size_t size);
    /** Implementations that run a bound call, forward or backward, for profiles:
     *  "jit_wino+2reorder". NULL: the backend's name is enough. */
    void (*describe_call)(char *out, size_t size, const co_call *call, bool backward);
};

#ifdef __cplusplus
}
#endif
#endif
