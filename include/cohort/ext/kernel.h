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

/** How the elements of a tensor (N, C, ...) lie in memory. */
typedef enum co_format {
    CO_FORMAT_PLAIN,          /* row-major, dense */
    CO_FORMAT_CHANNEL_BLOCKS, /* (N, C / block, ..., block); channels that only pad are 0 */
    CO_FORMAT_CHANNELS_LAST,  /* (N, ..., C) */
    CO_FORMAT_SAMPLE_LANES,   /* (N / block, ..., block); what only pads is finite, and 0 in
                                 gradients */
    CO_FORMAT_OPAQUE          /* as `descriptor` says, which its owner alone understands */
} co_format;

/** A value: two tensors lie alike if their shapes and layouts are equal. Zeros are the plain one.
 */
typedef struct co_layout {
    co_format format;
    int block;               /* of blocks and lanes; else 0 */
    const co_backend *owner; /* of an opaque one; else NULL */
    const void *descriptor;  /* likewise; lives as long as the plan */
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
    size_t bytes; /* of `data`; a layout may pad. 0 while planning: plain size */
    void *data;   /* NULL before bind, and for a gradient nobody needs */
} co_tensor;

#define CO_CALL_MAX_FUSED 2

/** One node in one plan, with those behind it that its kernel takes over. Indices follow the op:
 *  in[0] is its first input. */
typedef struct co_call {
    const co_op *op;
    const char *name; /* the node's, for messages */
    const void *attr;
    /** Ops that follow, pointwise or pooling, done in this call; ended by NULL. out[0] is the
     * result of the last. A sum among them takes what it adds from the next in[] behind the op's
     * own (n_in counts it), and has its gradient in grad_in there. */
    const co_op *fused[CO_CALL_MAX_FUSED + 1];
    const void *fused_attr[CO_CALL_MAX_FUSED];
    co_shape
        made; /* what the op itself makes of in[]: out[0]'s shape, but for a fused op that pools */
    uint32_t node; /* index in the graph: part of the random stream */
    int threads;   /* cores that the call may use; 0: as many as OpenMP likes */
    bool training;
    bool over_ranks;       /* training: statistics of a batch are of all ranks, by co_run.reduce */
    unsigned round_params; /* bit i: parameter i is to be rounded to the tensors' 16 bits */
    bool direct_convolution; /* by its definition: no algorithm that rounds otherwise */
    int n_in, n_out, n_param;
    co_tensor *in[CO_OP_MAX_IN];        /* read in forward; in backward only if the op saves them */
    co_tensor *out[CO_OP_MAX_OUT];      /* plan sets layout and bytes */
    co_tensor *grad_in[CO_OP_MAX_IN];   /* NULL: not needed. plan_backward sets layout and bytes */
    co_tensor *grad_out[CO_OP_MAX_OUT]; /* a loss has none: its gradient is co_run_grad_scale */
    co_tensor *grad_more; /* NULL, or a second part of grad_out[0]; only with adds_gradients */
    bool adds_gradients;  /* set by plan: backward adds grad_more to grad_out[0] itself */
    co_tensor param[CO_OP_MAX_PARAM];      /* plain, in the flat store; buffers too */
    co_tensor grad_param[CO_OP_MAX_PARAM]; /* plain, in the flat store; data NULL for buffers */
    size_t workspace_bytes;                /* set by plan: kept from forward to backward */
    size_t scratch_bytes;                  /* set by plan: valid within one forward or backward */
    void *workspace;
    void *scratch;
    /** Of the device that the plan is on, before bind: forward and backward put their work on it,
     *  and CO_OK means accepted; what they were given may be touched until the queue has passed.
     *  NULL: the host, where all is done when they return. */
    co_queue *queue;
    const co_kernel *kernel;
    void *self; /* the kernel's self_size bytes, zeroed before plan */
} co_call;

/** One pass through a plan. All of it is the same in every step: what is not, the two pointers lead
 *  to, in memory of the plan's device, and is read when the work is done. */
typedef struct co_run {
    uint64_t seed;
    const co_step_values *values;
    const uint32_t *sample; /* (N) index of each sample in the data set, for random streams */
    bool accumulate;        /* add to grad_param instead of overwriting it */
    /** With over_ranks: `v` (n) becomes its sum over all ranks. All ranks call it, in the same
     * order and with the same n. */
    co_status (*reduce)(void *arg, double *v, size_t n);
    void *reduce_arg;
    bool phantom; /* over_ranks: no sample counts; a rank without any keeps step with the others.
                     Its sums are 0, and so is every gradient; it moves running statistics */
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
    /** What tells it from its backend's other kernels of the op: "winograd". NULL: the only one. */
    const char *name;
    /** Formats of in[] and grad_out[] that it can be given beside the plain one, CO_READS of each;
     *  opaque ones are those of its backend. Others are made plain before. */
    unsigned reads;
    size_t self_size;
    /** Whether this kernel can run the node; *why is static. NULL: always. */
    bool (*supports)(const co_call *call, const char **why);
    /** Whether it does call->fused as well; the layouts of all in[] are known, and may be of any
     *  backend. Asked again with one op fewer until there is none. NULL: never. */
    bool (*fuses)(const co_call *call);
    /** May set out[i]->layout and ->bytes, workspace_bytes and scratch_bytes. The inputs' layouts
     *  are known, and are such that it reads. NULL: plain everywhere, no memory. */
    co_status (*plan)(co_call *call);
    /** The same for grad_in, with grad_out's layouts known. May raise scratch_bytes. NULL: plain.
     */
    co_status (*plan_backward)(co_call *call);
    /** Every pointer is final: make primitives. NULL: nothing to do. */
    co_status (*bind)(co_call *call);
    co_status (*forward)(co_call *call, const co_run *run);
    /** Write grad_in (overwrite) and grad_param (overwrite, or add if run->accumulate). */
    co_status (*backward)(co_call *call, const co_run *run);
    void (*fini)(co_call *call);
    /** out[0] may lie where in[0] did / grad_in[0] where grad_out[0] did (same bytes); and
     *  likewise with what a fused add brings. */
    bool in_place;
    /** Which tensors of 16 bits it computes with: bit CO_BF16, bit CO_F16. For others the plan
     *  gives it floats, and rounds what comes out. */
    unsigned half;
    /** Whether it runs a call with tensors of 16 bits faster where it is given floats than kernels
     *  do that compute with 16 bits: then the plan may leave them floats. NULL: never. */
    bool (*prefers_floats)(const co_call *call);
    /** Of tensors of 16 bits that it would take as floats: whether a kernel behind it that computes
     *  with 16 bits comes first. */
    bool yields_half;
};

struct co_backend {
    const char *name;
    const char *summary;
    const co_kernel *const *kernels; /* ended by NULL */
    /** Name of the device in whose memory its kernels work (co_device_ops.name). NULL: the host's.
     */
    const char *device;
    /** in[0] in any of the formats that it `reads` -> out[0] plain. NULL: none. */
    const co_kernel *unpack;
    /** Types of 16 bits that its kernels compute with on this CPU: bit CO_BF16, bit CO_F16. NULL:
     *  none. */
    unsigned (*half)(void);
    /** What it runs on here, for `cohort doctor`: "oneDNN 2.6.3, up to AVX-512". NULL: nothing to
     *  say. */
    void (*describe)(char *out, size_t size);
    /** What runs a call that is bound, forward or backward, for profiles: "jit_wino+2reorder".
     * NULL: the backend's name says it all. */
    void (*describe_call)(char *out, size_t size, const co_call *call, bool backward);
};

#ifdef __cplusplus
}
#endif
#endif
