/*
 * ops.h - the operators and their attributes. Kernels read the attributes; nobody else does.
 */
#ifndef CO_OPS_OPS_H
#define CO_OPS_OPS_H

#include <cohort/ext/op.h>

#include "core/plugin.h"

/* NULL-ended, in the order that `cohort list ops` prints. */
extern const co_op *const co_ops[];
extern const co_plugins co_op_plugins;
/* NULL if unknown. */
static inline const co_op *co_op_find(const char *name)
{
    return co_plugin_find(&co_op_plugins, name);
}

/* How conv2d and linear start: rules.h says what each choice means. */
typedef struct co_init_attr {
    int weight, bias;
    double std;
} co_init_attr;

/* conv2d: in (N, C, H, W); weight (out, C / groups, kh, kw), bias (out); out (N, out, OH, OW),
   OH = (H + 2 pad - dilation (kh - 1) - 1) / stride + 1. Cross-correlation, as everywhere in the
   field. */
typedef struct co_conv2d_attr {
    int64_t out;
    co_ints kernel, stride, padding, dilation; /* one number or (h, w); filled to two by check */
    int64_t groups;
    bool bias;
    co_init_attr init;
    int64_t k[2], s[2], p[2], d[2]; /* (h, w), set by check */
} co_conv2d_attr;

/* linear: in (N, F) or (N, T, F); weight (out, F), bias (out); out (N, out) or (N, T, out) =
   in * weight^T + bias. */
typedef struct co_linear_attr {
    int64_t out;
    bool bias;
    co_init_attr init;
} co_linear_attr;

/* embedding: in whole numbers (N, T) from 0 to vocab - 1; weight (vocab, out); out (N, T, out) with
   row in[n][t] of the weight. */
typedef struct co_embedding_attr {
    int64_t vocab, out;
    double init_std;
} co_embedding_attr;

/* positions: in (N, T, F); weight (length, F), T at most `length`; out[n][t] = in[n][t] +
   weight[t]. */
typedef struct co_positions_attr {
    int64_t length; /* 0: T */
    double init_std;
} co_positions_attr;

/* rotary: in (N, T, (heads + 2 kv_heads) D), D even, as attention reads it; out the same with each
   head of queries and keys rotated by its position t, values as they are. With h = D / 2 and the
   angle a = t theta^(-2 i / D), for i < h:
     out[i]     = in[i] cos a - in[i + h] sin a
     out[i + h] = in[i + h] cos a + in[i] sin a
   (Su et al., arXiv:2104.09864, whose pairs are neighbours; these halves are those of Hugging
   Face's models.) */
typedef struct co_rotary_attr {
    int64_t heads;
    int64_t kv_heads; /* set by check if it is 0 */
    double theta;
} co_rotary_attr;

/* maxpool, avgpool: windows over (H, W). Floor mode; avgpool counts the padding (PyTorch's
   default) unless count_include_pad is false; padding at most half the kernel. */
typedef struct co_pool_attr {
    co_ints kernel, stride, padding; /* stride defaults to the kernel */
    bool count_include_pad;          /* avgpool only */
    int64_t k[2], s[2], p[2];        /* set by check */
} co_pool_attr;

/* adaptive_avgpool: out (N, C, oh, ow); window i covers floor(i H / oh) .. ceil((i + 1) H / oh). */
typedef struct co_adaptive_pool_attr {
    co_ints size;
    int64_t o[2]; /* set by check */
} co_adaptive_pool_attr;

/* batchnorm: over (N, H, W) per channel, or over N for (N, F). weight, bias (C), buffers
   running_mean, running_var (C). Training normalises by the biased variance of the batch and
   updates running = (1 - momentum) running + momentum * batch, with the unbiased variance
   (PyTorch's rule; one value per channel: biased). Evaluation uses the running statistics.
   (Ioffe & Szegedy, arXiv:1502.03167.) */
typedef struct co_batchnorm_attr {
    double eps, momentum;
    bool zero_init; /* start with weight 0 */
} co_batchnorm_attr;

/* layernorm: over the last dimension of (N, F) or (N, T, F), by the biased variance: out =
   (in - mean) / sqrt(variance + eps) * weight + bias; weight, bias (F). (Ba et al.,
   arXiv:1607.06450.) */
typedef struct co_layernorm_attr {
    double eps;
    bool bias;
} co_layernorm_attr;

/* rmsnorm: over the last dimension of (N, F) or (N, T, F): out = in / sqrt(mean of in^2 + eps) *
   weight; weight (F). (Zhang & Sennrich, arXiv:1910.07467.) */
typedef struct co_rmsnorm_attr {
    double eps;
} co_rmsnorm_attr;

/* attention: in (N, T, (heads + 2 kv_heads) D): of each position the queries of all heads, then the
   keys, then the values, D numbers each; out (N, T, heads D). Head h with the queries q, and the
   keys k and values v of head h kv_heads / heads (rounded down):
     out[t] = sum_s p[t][s] v[s],   p[t] = softmax over s of q[t] . k[s] / sqrt(D)
   where s goes over all positions, or up to t if it is causal. In training p[t][s] is dropped after
   the softmax as element (h, t, s) of (heads, T, T) is by dropout: word (h T + t) T + s of its
   sample. (Vaswani et al., arXiv:1706.03762; shared keys: Ainslie et al., arXiv:2305.13245.) */
typedef struct co_attention_attr {
    int64_t heads;
    int64_t kv_heads; /* set by check if it is 0 */
    double dropout;   /* probability */
    bool causal;
} co_attention_attr;

/* dropout: zero each element with probability p, scale the rest by 1 / (1 - p); identity in
   evaluation. dropout2d: whole channels of (N, C, H, W).
   Element e of sample s in node m is dropped when word e of
   (seed, CO_RNG_DROPOUT | m << 8, step, sample) < p as a unit number, compared as doubles; e counts
   within the sample, row-major (dropout2d: e is the channel). (Srivastava et al., JMLR 2014;
   Tompson et al. 2015.) */
typedef struct co_dropout_attr {
    double p;
} co_dropout_attr;

/* gelu: out = in P(in), P the normal distribution; or, by the hyperbolic tangent,
   out = in (1 + tanh(sqrt(2 / pi) (in + 0.044715 in^3))) / 2. (Hendrycks & Gimpel,
   arXiv:1606.08415.) */
enum { CO_GELU_EXACT, CO_GELU_TANH };
typedef struct co_gelu_attr {
    int approximate;
} co_gelu_attr;

/* scale: out = factor * in. */
typedef struct co_scale_attr {
    double factor;
} co_scale_attr;

/* silu: out = in / (1 + exp(-in)) (Elfwing et al., arXiv:1702.03118). mul: the product of two
   inputs of one shape. concat: three inputs (N, T, A), (N, T, B), (N, T, C) to rows of A + B + C.
   No attributes. */
/* patches: in (N, C, H, W), out (N, H W, C). class_token: in (N, T, F), weight (F), out
   (N, T + 1, F), whose first rows are the weight. first: in (N, T, F), out (N, F). No attributes.
 */
/* relu, add (two inputs of one shape), flatten ((N, ...) -> (N, F)), log_softmax (over F of
   (N, F)): no attributes. */

/* nll_loss: in log-probabilities (N, C), labels (N); out (N) = -in[n, label]. */
/* cross_entropy: in logits (N, C), labels (N); out (N) = sum_c q_c * -log_softmax(in)[n, c],
   q = (1 - smoothing) onehot + smoothing / C (Szegedy et al., arXiv:1512.00567). Of sequences,
   logits (N, T, C) and labels (N, T): the sum over the positions of a sample, divided by T; a
   position with the label -1 adds nothing. */
typedef struct co_cross_entropy_attr {
    double label_smoothing;
} co_cross_entropy_attr;

/* mse_loss: in values (N, ...), targets of the same shape; out (N) = mean of (in - target)^2 over
   the elements of a sample.
   bce_with_logits_loss: in logits (N, ...), targets of the same shape, each from 0 to 1; out (N) =
   mean of -t log s(in) - (1 - t) log(1 - s(in)), s the sigmoid: each element a yes or no of its
   own. No attributes. */

#define OP(name) extern const co_op co_op_##name;
#include "ops/list.h"
#undef OP

#endif
