/*
 * kernels.h - Cohort's own kernels for small networks: one for each op over the loops of
 * kernels/sample_lanes.
 */
#ifndef CO_BACKENDS_CPU_SAMPLE_LANES_KERNELS_H
#define CO_BACKENDS_CPU_SAMPLE_LANES_KERNELS_H

#include "backends/backends.h"
#include "kernels/sample_lanes/sample_lanes.h"
#include "ops/ops.h"

/* A gradient in blocks; where its maxima were, or NULL if it is not of maxima. */
typedef struct sample_lanes_grad {
    const float *value;
    const uint8_t *place;
} sample_lanes_grad;

/* --- layout.c --- */
/* Elements of one sample, and blocks of the batch. */
int64_t sample_lanes_count(const co_tensor *tensor);
int64_t sample_lanes_blocks(const co_tensor *tensor);
/* Bytes of the tensor in this backend's layout. */
size_t sample_lanes_bytes(const co_tensor *tensor);
/* Whether the tensor lies in this backend's layout. */
bool sample_lanes_is_blocked(const co_tensor *tensor);
/* Give the tensor this backend's layout. */
void sample_lanes_block(co_tensor *tensor);
/* `supports` of kernels that keep the layout of their first input and do not enter it. */
bool sample_lanes_supports_blocked(const co_call *call, const char **why);
/* The tensor's values in blocks: its own memory, or packed into `room` if it is plain. */
const float *sample_lanes_read(const co_tensor *tensor, float *room);
/* Room that sample_lanes_read needs for the tensor. */
size_t sample_lanes_room(const co_tensor *tensor);
/* The values of a tensor in this layout, row-major. */
void sample_lanes_unpack(float *to, const co_tensor *tensor);
/* Zero the lanes behind the last sample. */
void sample_lanes_clear_rest(const co_tensor *tensor);
/* A kernel whose output lies as its input, and its gradient, too: plan and plan_backward. */
co_status sample_lanes_plan_alike(co_call *call);
co_status sample_lanes_plan_backward_alike(co_call *call);
/* Gradient of out[0], in blocks. */
const float *sample_lanes_grad_out(const co_call *call);

/* --- sparse.c --- */
/* `pool`: what follows the convolution, or NULL. */
void sample_lanes_sparse_describe(lanes_sparse *out, const co_call *call, const lanes_pool *pool);
/* Scratch for the backward pass of a call whose spots may be few; 0: it cannot use them. */
size_t sample_lanes_sparse_room(const lanes_sparse *sparse, const co_call *call);
/* Whether products with spots cost less than products with all of dy, for this dy. */
bool sample_lanes_sparse_pays(const lanes_sparse *sparse, const co_call *call,
                              const sample_lanes_grad *dy);
/* x, grad: in blocks. */
void sample_lanes_sparse_backward(const lanes_sparse *sparse, co_call *call, const float *x,
                                  const sample_lanes_grad *grad, char *room, const co_run *run);

/* --- maxpool.c --- */
/* Windows of a pooling from planes of (h, w) to planes of (oh, ow). */
lanes_pool sample_lanes_describe_pool(const co_pool_attr *attr, const int64_t *in,
                                      const int64_t *out);

extern const co_kernel co_cpu_lanes_conv2d, co_cpu_lanes_maxpool, co_cpu_lanes_relu,
    co_cpu_lanes_add, co_cpu_lanes_flatten, co_cpu_lanes_batchnorm, co_cpu_lanes_dropout,
    co_cpu_lanes_dropout2d;

#endif
