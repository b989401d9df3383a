/*
 * ext/op.h - what the author of an operator fills in: shapes, parameters, what backward needs.
 *
 * An op knows no kernel, no layout and no rank. Kernels (ext/kernel.h) do the work.
 */
#ifndef COHORT_EXT_OP_H
#define COHORT_EXT_OP_H

#include <cohort/ext/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CO_OP_MAX_IN    4
#define CO_OP_MAX_OUT   2
#define CO_OP_MAX_PARAM 4

typedef enum co_init_kind {
    CO_INIT_ZERO,
    CO_INIT_ONE,
    CO_INIT_UNIFORM, /* U(-scale, scale) */
    CO_INIT_NORMAL   /* N(0, scale^2) */
} co_init_kind;

/** A parameter (trained) or a buffer (kept, such as running statistics) of an op. */
typedef struct co_param_spec {
    const char *name; /* "weight"; the name of the node and a dot are put before it */
    co_shape shape;
    co_init_kind init;
    double scale;
    bool buffer; /* not trained, no gradient */
} co_param_spec;

/** Which forward tensors an op's backward reads, besides its parameters and the workspace that
 *  a kernel asks for. */
typedef enum co_saves { CO_SAVES_NONE = 0, CO_SAVES_IN = 1, CO_SAVES_OUT = 2 } co_saves;

/** Arithmetic operations for one batch, by the definition of the op and not by the algorithm of a
 *  kernel: a multiplication and an addition are two. */
typedef struct co_op_work {
    double forward;
    double backward_in;    /* for the gradient of its inputs */
    double backward_param; /* for that of its parameters */
} co_op_work;

/** A part of an image (N, C, H, W): its first rows and columns. */
typedef struct co_extent {
    int64_t rows, columns;
} co_extent;

/** The type in which an op computes under mixed precision. */
typedef enum co_op_precision {
    CO_PRECISION_FOLLOW = 0, /* that of its inputs; of two types the wider */
    CO_PRECISION_LOW,        /* gains most in speed: half precision */
    CO_PRECISION_WIDE        /* loses most in accuracy: fp32 */
} co_op_precision;

/** How a result at a position of a sequence, (N, T, ...), depends on positions of the inputs. */
typedef enum co_along {
    CO_ALONG_ANY = 0, /* in any way: not to be computed position by position */
    CO_ALONG_NONE,    /* on the same position alone */
    CO_ALONG_EARLIER  /* also on which it is, or on earlier ones: kernels with `decodes` compute it
                         position by position */
} co_along;

/** What a loss compares its input 0 with. It is its input 1, which is a field of every batch. */
typedef enum co_target {
    CO_TARGET_NONE = 0,
    CO_TARGET_LABEL,  /* field "label", I32: the class of each row of input 0, from 0; (N), or of
                         sequences (N, T), where a label of -1 is left out */
    CO_TARGET_VALUES, /* field "target", F32: of the shape of input 0 */
    CO_TARGET_BINARY  /* the same, with values 1 for a label that applies and 0 for one that does
                         not; predicted where input 0 is above 0 */
} co_target;

/** Limits on what `write_onnx` of an op adds. */
#define CO_ONNX_MAX_NODES     20
#define CO_ONNX_MAX_CONSTANTS 16

/** Writes an op as nodes of an ONNX graph. Calls do not fail: if memory runs out, the export fails
 *  later. Strings and arrays that are passed are copied; returned names are valid until the export
 *  ends. */
typedef struct co_onnx co_onnx;
struct co_onnx {
    const char *const *in; /* names of the op's inputs, parameters and buffers, ended by NULL */
    /** Add a node of the ONNX operator `type` with the inputs `in`, ended by NULL; returns the name
     *  of its output. `part` is "" for the node whose output is the op's; for others, such as
     *  "/erf", it is appended to the layer's name. */
    const char *(*node)(co_onnx *to, const char *type, const char *part, const char *const *in);
    /** Set an attribute of the last node; at most 8 for each. */
    void (*set_int)(co_onnx *to, const char *name, int64_t v);
    void (*set_ints)(co_onnx *to, const char *name, const int64_t *v, size_t n);
    void (*set_float)(co_onnx *to, const char *name, double v);
    /** Add a constant tensor; returns its name, the layer's with `part` appended. *values are
     * zeros, to be overwritten, row-major; NULL if memory runs out. */
    const char *(*constant)(co_onnx *to, const char *part, const co_shape *shape, float **values);
    /** Add a constant of n whole numbers, such as a shape; returns its name, as above. */
    const char *(*constant_ints)(co_onnx *to, const char *part, const int64_t *v, size_t n);
};

typedef struct co_op {
    const char *name;
    const char *summary;
    const co_key *keys; /* attributes; NULL: none */
    size_t attr_size;
    const char *bare; /* key that a bare value sets, `maxpool: 2`; NULL: none */
    int n_in;
    int n_out;
    unsigned saves;   /* co_saves flags */
    unsigned grad_in; /* bit i: input i gets a gradient */
    unsigned indices; /* bit i: input i holds whole numbers (I32), such as tokens or labels */
    bool is_norm;     /* its parameters scale and shift a normalised value: see norm_weight_decay */
    bool pointwise;   /* no parameters, elementwise: kernels of other ops may apply it to their
                         result (ext/kernel.h, fuses) */
    bool pools;       /* one input, no parameters, fewer elements: likewise, in fp32 */
    bool is_sum; /* pointwise, out = in[0] + in[1]: fused into another op, the other addend is one
                    more input of that call */
    co_op_precision precision;
    co_along along;
    bool is_loss;     /* out 0 is the loss of each sample, (N), of a sequence the mean over its
                         positions: the root of backward */
    co_target target; /* of a loss */

    /** Check attributes once, and fill in those that depend on others (NULL: nothing to do). */
    co_status (*check)(void *attr);
    /** Shapes of the outputs from those of the inputs; dimension 0 is the batch. */
    co_status (*shape)(co_shape *out, const co_shape *in, const void *attr);
    /** Parameters and buffers, in the order in which kernels see them; returns how many.
     *  NULL: none. */
    int (*params)(co_param_spec *out, const co_shape *in, const void *attr);
    /** Whole numbers in input 0 are from 0 to this - 1; batches are checked for it. NULL: any. */
    int64_t (*limit)(const void *attr);
    /** Of CO_ALONG_EARLIER: floats that decoding keeps of each position. NULL: none. */
    int64_t (*keeps)(const co_shape *in, const void *attr);
    /** The amount of work, for profiles; shapes with the batch in dimension 0. NULL: one operation
     *  for each element of out[0], forward and backward. */
    void (*work)(co_op_work *out, const co_shape *in, const co_shape *out_shape, const void *attr);

    /** The receptive field of a part of the result: the part of each input that is an image on
     *  which `out` of out[0], an image too, depends. May be more than the image has. NULL: all. */
    co_extent (*receptive)(co_extent out, const void *attr);

    /** The ONNX operator (opset 13) that computes the op in inference from the same inputs,
     *  parameters and buffers, without attributes. "Identity": the output is the input. */
    const char *onnx;
    /** Otherwise: writes the op as nodes; shapes as for `work`. If both are NULL, networks with the
     *  op are not exported; losses have neither, and are left out. */
    void (*write_onnx)(co_onnx *to, const co_shape *in, const co_shape *out, const void *attr);
} co_op;

#ifdef __cplusplus
}
#endif
#endif
